# SPDX-License-Identifier: Apache-2.0
"""``tune``: process noises of a filter by maximum likelihood of its innovations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DescriptionError, SettingError, check_count, check_positive, refuse_options
from ..progress import lengthy
from ..report.data import Table
from ..report.result import Answer
from ..report.text import number
from .checked import checked
from .load import Loadable, loaded_sources, model_of
from .observer import Observer
from .samples import Samples

if TYPE_CHECKING:
    from ..dynamics.model import Model
    from ..filters.observer import LinkageObserver
    from ..filters.tuning import Log, Quality, TuningResult
    from ..sources.map import SourceMap

STEP = 5e-3     # s, of a simulated log


@dataclass(frozen=True)
class Tuned(Answer):
    """What a search found (``found``) for the filter of ``observer`` on ``sources``.

    ``after.noises``, ``before.noises`` by name with the quality of the innovations (log-likelihood, mean NIS,
    whiteness), ``stddev_log10`` of each noise, ``converged``.
    """

    found: TuningResult
    observer: LinkageObserver
    estimator: str
    sources: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def before(self) -> Quality:
        """The noises before, and what the innovations are like with them."""
        return self.found.before

    @property
    def after(self) -> Quality:
        """The noises found, and the same."""
        return self.found.after

    @property
    def stddev_log10(self) -> dict[str, Any]:
        """Standard deviations of the decimal logarithms of the noises, by name."""
        return self.found.stddev_log10

    @property
    def converged(self) -> bool:
        """Whether the search settled."""
        return self.found.converged

    def _values(self, full: bool) -> dict[str, Any]:
        return {'mechanism': self.observer.model.description.name, 'estimator': self.estimator,
                'sensors': self.observer.sensors, 'sources': self.sources, 'noises': self.after.noises,
                'stddev_log10': self.stddev_log10, 'converged': self.converged, 'before': asdict(self.before),
                'after': asdict(self.after)}

    def tables(self) -> list[Table]:
        """Noises, then the innovations, before and after."""
        before, after, of = self.before, self.after, self.observer.problem
        names = [of.system.names[i] for i in of.z]
        rows = [[f'{noise} {_place(names, k, len(values))}', number(before.noises[noise][k]), number(values[k]),
                 _factor(self.stddev_log10[noise][k], values[k])]
                for noise, values in after.noises.items() for k in range(len(values))]
        noises = Table(f'{self.estimator} on {self.observer.model.description.name}: process noises',
                       ['noise', 'before', 'after', '1 sigma, times or divided by'], rows)
        rows = [['log-likelihood', f'{before.log_likelihood:.1f}', f'{after.log_likelihood:.1f}'],
                [f'mean NIS ({number(after.expected)} expected)', number(before.nis), number(after.nis)]]
        for channel in of.channels:
            rows += [[f'{channel}: Ljung-Box p', *_both(before, after, 'ljung_box', channel)],
                     [f'{channel}: autocorrelation at lag 1', *_both(before, after, 'autocorrelation', channel)]]
        return [noises, Table('innovations', ['', 'before', 'after'], rows)]

    def summary(self) -> list[str]:
        """How much more likely the noises make the logs, and whether the search settled."""
        end = 'the search settled' if self.converged else 'the search was stopped before it settled'
        return [f'{self.estimator} on {self.observer.model.description.name}: log-likelihood '
                f'{self.after.log_likelihood:.1f}, before {self.before.log_likelihood:.1f}; {end}']


@checked
@lengthy('looking for the noises')
def tune(observer: Observer | Loadable | Sequence[str | Path], logs: Samples | Sequence[Samples] | None = None, *,
         z: Sequence[float] | None = None, zd: Sequence[float] | None = None,
         stddev: float | Sequence[float] | None = None, skip: float = 2.0, estimator: str | None = None,
         sensors: Sequence[str] = (), mechanism: Loadable | None = None, seeds: int = 1, duration: float = 10.0,
         dt: float | None = None, sources: str | Path | None = None, namespace: str | None = None,
         backend: str = 'auto') -> Tuned:
    """Find the noises of a filter that make logs most likely; the first ``skip`` seconds of each do not count.

    ``observer``: one of ours with its ``logs``; it keeps the noises. Every log starts at ``z``, ``zd``, ``stddev`` as
    of ``Observer.start``.

    Or as ``mbse tune``: a mechanism, not a machine, for simulated logs of it with so many ``seeds``, ``duration``, s,
    each, and a filter whose model is wrong as in Naya et al., review; or bags and CSV tables of a ``mechanism``, in
    steps of ``dt``, s (default the samples'), on topics of a ``namespace``, or by the map ``sources``. ``estimator``:
    the filter, ``sensors``: names of the file's.
    Raises SettingError, BagError, DescriptionError.

    >>> observer, motion = Observer('four_bar', 'errorEKF', ['encoder']), simulate('four_bar', 5.0, sensors=['encoder'])
    >>> tuned = tune(observer, motion.samples)
    >>> bool(tuned.after.log_likelihood > tuned.before.log_likelihood)
    True
    """
    from ..filters.tuning import tune as search  # here, as it takes its time to import
    if skip < 0:
        raise SettingError('skip', skip, 'seconds from 0')
    if isinstance(observer, Observer):
        refuse_options('mechanisms and logs in files', {'estimator': estimator, 'sensors': sensors or None,
                                                        'mechanism': mechanism, 'dt': dt, 'sources': sources,
                                                        'namespace': namespace})
        return _of_observer(observer, logs, z, zd, stddev, skip)
    check_count(seeds=seeds)
    if dt is not None:
        check_positive(dt=dt)
    refuse_options('an Observer', {'logs': logs, 'z': z, 'zd': zd, 'stddev': stddev})
    if not STEP * 10 < duration <= 1000.0:
        raise SettingError('duration', duration, f'seconds, more than {STEP * 10:g} and up to 1000')
    if estimator is None or not sensors:
        raise SettingError('estimator' if estimator is None else 'sensors', None, 'the filter, and sensors of the file')
    from ..filters.filters import default_noises
    files = [item for item in observer] if isinstance(observer, Sequence) and not isinstance(observer, str) else (
        [observer])
    of, odd = mechanism_of_logs(files, mechanism), list[str]()
    if mechanism is None:
        refuse_options('bags, with a mechanism', {'namespace': namespace, 'sources': sources, 'dt': dt})
        filter_, found = _simulated(of, estimator, sensors, seeds, duration, backend)
    else:
        filter_ = _observer(model_of(of, backend), estimator, sensors, backend)
        found, odd = _recorded(files, filter_, dt, namespace, loaded_sources(sources))
    noises = default_noises(estimator, filter_.model.description.name)
    return Tuned(search(filter_, found, noises, skip), filter_, estimator, tuple(map(_name_of, files)), tuple(odd))


def _of_observer(observer: Observer, logs: Samples | Sequence[Samples] | None, z: Sequence[float] | None,
                 zd: Sequence[float] | None, stddev: float | Sequence[float] | None, skip: float) -> Tuned:
    from ..filters.tuning import Log
    from ..filters.tuning import tune as search
    from .our_filter import OurFilter
    core = observer.core
    if not isinstance(core, OurFilter):
        raise SettingError('observer', observer.estimator, 'one of our filters: its noises are known by name')
    samples = [logs] if isinstance(logs, Samples) else list(logs or ())
    if not samples:
        raise SettingError('logs', [], 'Samples of one log or more')
    observer.start(z, zd, stddev)
    q, qd, spread = core.started
    found = search(core.observer, [Log(item.t, item.columns(observer.channels), q, qd, spread, observer.inputs(item))
                                   for item in samples], core.noises, skip)
    core.noises = {name: np.array(values) for name, values in found.after.noises.items()}
    core.observer.tune(core.noises, core.gate)      # the search counts all samples
    if z is zd is stddev is None:
        observer.reset()
    else:
        observer.start(z, zd, stddev)
    return Tuned(found, core.observer, core.observer.filter.name)


def mechanism_of_logs(sources: Sequence[Any], mechanism: Loadable | None) -> Loadable:
    """The mechanism of logs; without one the only source, for simulated logs. Raises SettingError for what are logs."""
    from ..description.load import SUFFIXES
    if mechanism is not None:
        return mechanism
    if not sources:
        raise SettingError('observer', [], 'an Observer, a mechanism, or logs')
    name = str(sources[0])
    if len(sources) > 1 or isinstance(sources[0], (str, Path)) and (
            name.lower().endswith('.csv') or Path(name).is_dir() or (
                Path(name).is_file() and Path(name).suffix not in SUFFIXES)):
        raise SettingError('mechanism', None, 'the mechanism that the logs are of')
    found: Loadable = sources[0]
    return found


def _name_of(source: Any) -> str:
    return str(source) if isinstance(source, (str, Path)) else str(source.description.name)


def _simulated(mechanism: Loadable, estimator: str, sensors: Sequence[str], seeds: int, duration: float, backend: str
               ) -> tuple[LinkageObserver, list[Log]]:
    """Logs of a true mechanism, as in Naya et al., review, for a filter whose model is wrong."""
    from ..filters.filters import default_stddev
    from ..filters.tuning import Log
    from ..simulation.three_simulations import noisy, true_motion, wrong_model, wrong_start
    model = model_of(mechanism, backend)
    if not model.degrees_of_freedom:
        raise SettingError('mechanism', model.description.name,
                           'a mechanism with degrees of freedom left to estimate')
    machine = model.description
    if machine.cylinders:       # nothing would carry it, nor stop it at the ends of its strokes
        raise DescriptionError(machine.file, 'cylinders', [*machine.cylinders],
                               'none, for simulated logs: without its hydraulics the machine falls; give bags of it: '
                               f'mbse tune BAG --mechanism {machine.name}')
    wrong = wrong_model(model)
    observer = _observer(wrong, estimator, sensors, backend)
    truth = true_motion(model, duration, STEP)
    outputs, start = truth.sensors(observer.sensors), wrong_start(wrong)
    stddev = default_stddev(observer.filter, model.description.name)
    times, still = truth.motion.t[1:], np.zeros_like(start)
    return observer, [Log(times, noisy(outputs, observer.stddev, seed), start, still, stddev) for seed in range(seeds)]


def _recorded(files: Sequence[Any], observer: LinkageObserver, dt: float | None, namespace: str | None,
              maps: SourceMap | None) -> tuple[list[Log], list[str]]:
    """Logs out of files, and what was odd about them; the filter starts where the mechanism's file says."""
    from ..filters.filters import default_stddev
    from ..filters.tuning import Log
    from .bags import read_sensors
    model = observer.model
    stddev, start, logs, odd = default_stddev(observer.filter, model.description.name), model.start, [], []
    for file in files:
        table = read_sensors(Path(file), model, observer.problem.channels, dt, namespace, maps)
        odd += [f'{file}: {warning}' for warning in table.warnings]
        logs.append(Log(table.t + table.t[1], table.values, start.q, start.qd, stddev, table.inputs))
    return logs, odd


def _observer(model: Model, estimator: str, sensors: Sequence[str], backend: str) -> LinkageObserver:
    from ..filters.filters import default_noises
    from ..filters.observer import LinkageObserver
    noises = default_noises(estimator, model.description.name)
    return LinkageObserver(model, estimator, sensors, noises, backend=backend)


def _factor(stddev_log10: float, value: float) -> str:
    """Spread of a noise as a factor."""
    if not math.isfinite(stddev_log10):
        return 'not determined by the logs'
    return number(10.0 ** stddev_log10) if value else '–'


def _place(names: Sequence[str], k: int, count: int) -> str:
    return f'({names[k]})' if count == len(names) else f'({k + 1})'


def _both(before: Quality, after: Quality, what: str, channel: str) -> list[str]:
    return [number(getattr(item, what)[channel]) for item in (before, after)]
