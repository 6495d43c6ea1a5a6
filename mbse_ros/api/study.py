# SPDX-License-Identifier: Apache-2.0
"""``study``: many runs of several filters on any mechanism, yours beside ours, against a simulated truth or on logs."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..description.model import fingerprint
from ..dynamics.model import Model
from ..errors import MbseError, SettingError, check_names, check_positive
from ..filters.filters import START, default_stddev
from ..offline.consistency import bounds
from ..report.compare import COLORS
from ..report.data import Table
from ..report.files import write_json, write_table
from ..report.result import Answer
from ..report.text import number
from ..resources import write_whole
from ..simulation.three_simulations import wrong_model
from ..studies.many import kept, many
from ..workers import processors
from .checked import checked
from .load import Loadable, model_of
from .observer import Estimator, Observer
from .our_filter import OurFilter
from .samples import Samples
from .simulate import simulate_motion

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEYS = 'study', 'filter', 'run'
MEANS = 'nees', 'nees_inside', 'nis', 'lost', 'us_per_sample'


@dataclass(frozen=True)
class StudyCase:
    """One run of one filter: all that decides its numbers. ``log``: a table instead of a simulation."""

    study: str
    mechanism: str
    filter: Estimator
    sensors: tuple[str, ...]
    run: int
    seed: int
    duration: float
    rate: float
    start: tuple[float, float]
    gravity: float
    skip: float
    log: str = ''


@dataclass(frozen=True)
class Study(Answer):
    """``rows``: of each filter and run its RMSE by coordinate, mean NEES and share of it inside 95 %, mean NIS per
    sample, share of instants LOST, cost, or why it ``failed``; SI. ``asked``: by what it was made, with the seed."""

    rows: tuple[Mapping[str, Any], ...]
    asked: Mapping[str, Any]
    warnings: tuple[str, ...] = ()

    @property
    def filters(self) -> tuple[str, ...]:
        """Names, in the order in which they were asked for."""
        return tuple(self.asked['filters'])

    def column(self, filter_: str, name: str) -> np.ndarray:
        """A number of the runs (r,) of a filter that did not fail, such as 'nees' or 'rmse theta'; raises SettingError
        for an unknown one."""
        known = sorted({key for row in self.rows for key in row if key not in (*KEYS, 'failed')})
        if name not in known:
            raise SettingError('name', name, f'one of {", ".join(known)}')
        return np.array([row[name] for row in self.rows if row['filter'] == filter_ and not row['failed']
                         and row.get(name) is not None], dtype=float)

    def nees_bounds(self, runs: int) -> tuple[float, float]:
        """Between which the mean NEES of one instant over so many runs lies with 95 %, if a filter is consistent."""
        d = 2 * len(self.asked['coordinates'])
        low, high = bounds(d * runs)
        return low / runs, high / runs

    def tables(self) -> list[Table]:
        """One line for each filter: medians over its runs."""
        errors = [f'rmse {name}' for name in self.asked['coordinates']] if self.asked['truth'] else []
        names = [*errors, *(name for name in MEANS if self.asked['truth'] or not name.startswith('nees'))]
        rows = []
        for who in self.filters:
            own = [row for row in self.rows if row['filter'] == who]
            cells = [self.column(who, name) if any(name in row for row in own) else np.zeros(0) for name in names]
            rows.append([who, f'{sum(bool(row["failed"]) for row in own)} of {len(own)}',
                         *('–' if not len(cell) else number(float(np.median(cell))) for cell in cells)])
        return [Table(f'{self.asked["mechanism"]}, {", ".join(self.asked["sensors"])}: medians of the runs, SI',
                      ['filter', 'failed', *names], rows)]

    def _values(self, full: bool) -> dict[str, Any]:
        return {**self.asked, 'rows': list(self.rows)}

    def plot(self) -> Figure:
        """RMSE and NEES (on logs NIS) of all runs by filter, on logarithmic axes, with what is expected."""
        from matplotlib import pyplot  # here, because it takes its time to import

        from ..report.plots import style_axes, with_fonts
        truth, freedom = self.asked['truth'], 2 * len(self.asked['coordinates'])
        shown: list[tuple[str, int | None]] = [(f'rmse {name}', None) for name in self.asked['coordinates']
                                               ] if truth else []
        shown.append(('nees', freedom) if truth else ('nis', 1))
        figure, axes = pyplot.subplots(1, len(shown), figsize=(3.4 * len(shown), 3.0), squeeze=False, layout='tight')
        for ax, (name, expected) in zip(axes.flat, shown):
            style_axes(ax)
            for k, who in enumerate(self.filters):
                found = self.column(who, name)
                ax.plot(k + np.linspace(-0.2, 0.2, len(found)), found, '.', color=COLORS[k % len(COLORS)])
                ax.plot([k - 0.3, k + 0.3], 2 * [float(np.median(found)) if len(found) else np.nan], 'k-', linewidth=1)
            if expected:
                ax.axhline(expected, color='#888888', linestyle='--', linewidth=1)
            ax.set_yscale('log')
            ax.set_ylabel(name.upper() if expected else name)
            ax.set_xticks(range(len(self.filters)), self.filters, rotation=30, ha='right')
        return with_fonts(figure)

    def report(self, folder: str | Path) -> Path:
        """Write ``study.json``, ``runs.csv`` and ``study.pdf`` into a folder; gives it. Raises OSError."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        write_json(place / 'study.json', self.to_json())
        names = sorted({key for row in self.rows for key in row} - {*KEYS, 'failed'})
        write_table(place / 'runs.csv', ['filter number', 'run', 'failed', *names], [
            np.array([self.filters.index(row['filter']) for row in self.rows], dtype=float),
            np.array([row['run'] for row in self.rows], dtype=float),
            np.array([bool(row['failed']) for row in self.rows], dtype=float),
            *(np.array([np.nan if row.get(name) is None else row[name] for row in self.rows], dtype=float)
              for name in names)])
        write_whole(place / 'study.pdf', lambda part: self.plot().savefig(part, format='pdf'))
        return place


@checked
def study(mechanism: Loadable, filters: Sequence[Estimator], sensors: Sequence[str] | None = None, runs: int = 50, *,
          jobs: int | str = 'auto', cluster: str | None = None, duration: float = 5.0, rate: float = 200.0,
          seed: int = 1, start: tuple[float, float] = (0.1, 0.1), gravity: float = 0.0, skip: float = 1.0,
          logs: Sequence[str | Path | Samples] = (), file: str | Path | None = None) -> Study:
    """Run all ``filters`` (names, or classes of yours) on the same drawn samples of a mechanism (a name, a path, or
    what ``load`` gave from a file).

    Each run draws the noise of the ``sensors`` (default all) at ``rate``, Hz, over ``duration``, s, and the filter's
    ``start``: standard deviations of independent positions and velocities, SI, which the filter knows. ``gravity``:
    m/s^2 that the filter's model lacks. Run k draws by ``[seed, k]``, whatever else is run. Numbers are from ``skip`` s
    on. ``logs``: Samples, or tables and bags, instead: they have no truth, only NIS. ``jobs``: processes, 'auto': all
    processors, 1 for filters of the script itself. ``file``: a JSON line for each run, written at once; the same study
    goes on from it. Raises SettingError; an error of a filter is a failed run.

    >>> found = study('four_bar', ['UKF', 'errorEKF_FE'], ['encoder'], runs=2, jobs=1, duration=2.0)
    >>> found.column('UKF', 'nees').shape
    (2,)
    """
    model = model_of(mechanism)
    chosen = tuple(model.description.mechanical_sensors if sensors is None else sensors)
    check_names(sensors=chosen)
    check_positive(duration=duration, rate=rate)
    names = [of if isinstance(of, str) else getattr(of, '__name__', str(of)) for of in filters]
    if isinstance(filters, str) or not filters or len(set(names)) < len(names):
        raise SettingError('filters', names, 'one filter or more, each name once')
    if runs < 1 or seed < 0:
        raise SettingError('runs' if runs < 1 else 'seed', runs if runs < 1 else seed, 'a whole number from 1 on'
                           if runs < 1 else 'a whole number from 0 on')
    asked = {'mechanism': model.description.name, 'sensors': list(chosen), 'filters': names, 'runs': runs,
             'seed': seed, 'duration': duration, 'rate': rate, 'start': list(start), 'gravity': gravity, 'skip': skip,
             'coordinates': list(model.independent), 'truth': not logs}
    said = {key: value for key, value in asked.items() if key not in ('filters', 'runs')}
    key = sha256(json.dumps([said, fingerprint(model.description)]).encode()).hexdigest()[:12]
    place = str(mechanism) if isinstance(mechanism, (str, Path)) else model.description.file
    where = [str(log) for log in logs if not isinstance(log, Samples)]
    if len(where) < len(logs) and (file is not None or jobs not in (1, 'auto')):
        raise SettingError('logs', 'Samples', 'paths of tables or bags, for several jobs or a file')
    own = any(getattr(of, '__module__', '') == '__main__' for of in filters)
    count = (1 if own or logs else processors()) if jobs == 'auto' else jobs
    if not isinstance(count, int):
        raise SettingError('jobs', jobs, "a number of processes, or 'auto'")
    if own and (count > 1 or cluster):
        raise SettingError('jobs', jobs, 'filters in a module that processes can import, or 1 for those of a script')
    if logs:
        rows = [_row(name, key, k, partial(_of_log, model, of, chosen, log, skip))
                for k, log in enumerate(logs) for of, name in zip(filters, names)]
        return Study(tuple(rows), asked, _warnings(rows))
    cases = {(key, name, k): StudyCase(key, os.fspath(place), of, chosen, k, seed, duration, rate,
                                       (float(start[0]), float(start[1])), gravity, skip)
             for k in range(runs) for of, name in zip(filters, names)}
    if file is None:
        rows = many(run_case, cases.values(), min(count, len(cases)), cluster, 'runs', apart=True)
    else:
        rows = kept(run_case, cases, KEYS, Path(file), count, cluster)
        by = {tuple(row[name] for name in KEYS): row for row in rows}
        rows = [by[case] for case in cases]
    return Study(tuple(rows), asked, _warnings(rows))


def run_case(case: StudyCase) -> dict[str, Any]:
    """The row of one run."""
    name = case.filter if isinstance(case.filter, str) else case.filter.__name__
    return _row(name, case.study, case.run, partial(_of_truth, case))


def _row(name: str, key: str, run: int, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    row: dict[str, Any] = {'study': key, 'filter': name, 'run': run, 'failed': ''}
    try:
        return row | make()
    except (MbseError, np.linalg.LinAlgError, ValueError, FloatingPointError) as error:
        if isinstance(error, SettingError):     # what was asked for, not what came of it
            raise
        return row | {'failed': f'{type(error).__name__}: {error}'}


@cache
def _truth(mechanism: str, sensors: tuple[str, ...], duration: float, rate: float) -> Any:
    """The true motion, and its samples without noise."""
    dt = 1.0 / (rate * max(1, round(1000.0 / rate)))        # about a millisecond, a whole part of the period
    return simulate_motion(model_of(mechanism), duration, dt, sensors=sensors, rate=rate, noise=0.0)


@cache
def _observer(mechanism: str, of: Estimator, sensors: tuple[str, ...], gravity: float) -> Observer:
    model: Model = model_of(mechanism)
    return Observer(wrong_model(model, gravity) if gravity else model, of, sensors)


def _of_truth(case: StudyCase) -> dict[str, Any]:
    truth = _truth(case.mechanism, case.sensors, case.duration, case.rate)
    observer = _observer(case.mechanism, case.filter, case.sensors, case.gravity)
    model, draw = truth.model, np.random.default_rng([case.seed, case.run])
    g, off = len(model.z), np.repeat(case.start, len(model.z)) * draw.standard_normal(2 * len(model.z))
    stddev = np.array([model.description.sensors[name.partition('.')[0]].noise for name in observer.channels])
    samples = truth.samples.columns(observer.channels)
    spread = (default_stddev(observer.core.observer.filter, model.description.name)
              if isinstance(observer.core, OurFilter) else np.full(len(observer.names), START))
    for kind, value in zip(('position', 'velocity'), case.start):
        for name in model.independent:
            if f'{kind}/{name}' in observer.names:
                spread[observer.names.index(f'{kind}/{name}')] = value
    z, zd = truth.q[0, model.z] + off[:g], truth.qd[0, model.z] + off[g:]
    observer.start(z.tolist(), zd.tolist(), spread.tolist())
    noise = stddev * draw.standard_normal(samples.shape)
    begin = time.process_time()
    with np.errstate(all='ignore'):
        found = observer.run(truth.samples.t, samples + noise, observer.inputs(truth.samples))
    cost = (time.process_time() - begin) / len(found.t) * 1e6
    table = found.consistency(truth, case.skip)
    errors = {f'rmse {name}': table.rmse.get(f'position/{name}') for name in model.independent}
    return _plain({**errors, 'nees': table.nees_mean, 'nees_inside': table.nees_inside, 'nis': table.nis_mean,
                   'whiteness': min(table.whiteness.values(), default=np.nan),
                   'lost': found.status.count('lost') / len(found.t), 'us_per_sample': cost})


def _of_log(model: Model, of: Estimator, sensors: tuple[str, ...], log: str | Path | Samples, skip: float
            ) -> dict[str, Any]:
    """Of a real log, without a truth."""
    from .bags import read_sensors  # here, as it takes its time to import
    observer = Observer(model, of, sensors)
    begin = time.process_time()
    if isinstance(log, Samples):
        found = observer.run(log)
    else:
        table = read_sensors(Path(log), model, observer.channels)
        found = observer.run(table.t, table.values, table.inputs)
    cost = (time.process_time() - begin) / len(found.t) * 1e6
    of_log = found.consistency(None, skip)
    return _plain({'nis': of_log.nis_mean, 'whiteness': min(of_log.whiteness.values(), default=np.nan),
                   'lost': found.status.count('lost') / len(found.t), 'us_per_sample': cost})


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers of JSON: None where one is not known."""
    return {name: None if value is None or not np.isfinite(value) else float(value) for name, value in row.items()}


def _warnings(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The first failure of each filter."""
    first: dict[str, str] = {}
    for row in rows:
        if row['failed']:
            first.setdefault(row['filter'], f'{row["filter"]}, run {row["run"]}: {row["failed"]}')
    return tuple(first.values())
