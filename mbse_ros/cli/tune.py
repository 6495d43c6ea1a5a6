# SPDX-License-Identifier: Apache-2.0
"""``mbse tune``: process noises of a filter by maximum likelihood of its innovations on logs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import SettingError
from .arguments import Backend, Json, Namespace, Sources, check_sensors, names_of, refuse_options, sources_of

if TYPE_CHECKING:
    from ..dynamics.model import Model
    from ..estimators.filters.analysis.tuning import Log, Quality, TuningResult
    from ..estimators.filters.observer import LinkageObserver
    from ..sources.map import SourceMap

STEP = 5e-3     # s, of a simulated log


@dataclass(frozen=True)
class TuningRequest:
    """What to tune on; ``sources``: one mechanism, for simulated logs, or bags and tables of ``mechanism``;
    ``namespace`` and ``maps``: where the bags have its channels."""

    sources: Sequence[str]
    estimator: str
    sensors: str
    mechanism: str | None = None
    seeds: int = 1
    duration: float = 10.0
    skip: float = 2.0
    dt: float | None = None
    namespace: str | None = None
    maps: SourceMap | None = None


def tune(
        sources: Annotated[list[str], typer.Argument(
            help='A mechanism, for simulated logs; or, with --mechanism, bags and CSV tables of its sensors.')],
        estimator: Annotated[str, typer.Option(help='Filter, by its name in Naya et al., review.')],
        sensors: Annotated[str, typer.Option(help="Names of the file's sensors, separated by commas.")],
        mechanism: Annotated[str | None, typer.Option(help='Mechanism that the logs are of.')] = None,
        seeds: Annotated[int, typer.Option(min=1, help='Simulated logs.')] = 1,
        duration: Annotated[float, typer.Option(help='Length of a simulated log, s.')] = 10.0,
        skip: Annotated[float, typer.Option(min=0, help='Start of each log that does not count, s.')] = 2.0,
        dt: Annotated[float | None, typer.Option(help="Step for recorded logs, s. [the samples']")] = None,
        json_: Json = None,
        map_: Sources = None,
        namespace: Namespace = None,
        backend: Backend = 'auto') -> None:
    """Find process noises of a filter by maximum likelihood.

    Shows NIS and whiteness of the innovations before and after. One search, in one process: its steps follow each
    other.
    """
    tune_command(TuningRequest(sources, estimator, sensors, mechanism, seeds, duration, skip, dt, namespace,
                               sources_of(map_)), json_, backend)


def tune_command(request: TuningRequest, json_file: Path | None, backend: str = 'auto') -> None:
    """Find the noises, print what the innovations are like before and after, write."""
    from ..description.load import load_mechanism
    from ..estimators.filters.analysis.tuning import tune as search
    from ..estimators.filters.defaults import default_noises
    from ..report.files import check_file, write_json
    check_file(json_file)
    if not STEP * 10 < request.duration <= 1000.0:
        raise SettingError('--duration', request.duration, f'seconds, more than {STEP * 10:g} and up to 1000')
    chosen = names_of(request.sensors, '--sensors', 1)
    mechanism = request.mechanism if recorded(request) else None
    if mechanism is None:
        refuse_options('bags, with --mechanism', {'namespace': request.namespace,
                                                  'sources': request.maps and request.maps.file})
    check_sensors(load_mechanism(request.sources[0] if mechanism is None else mechanism), chosen)
    observer, logs = _simulated(request, chosen, backend) if mechanism is None else (
        _recorded(request, mechanism, chosen, backend))
    noises = default_noises(request.estimator, observer.model.description.name)
    tuned = search(observer, logs, noises, request.skip)
    write_json(json_file, summary_of(request, observer, tuned))
    show(request, observer, tuned)


def recorded(request: TuningRequest) -> bool:
    """Whether the sources are logs; raises SettingError for what does not go together."""
    from ..description.load import SUFFIXES
    if request.mechanism is not None:
        return True
    name = request.sources[0]
    if len(request.sources) > 1 or name.lower().endswith('.csv') or Path(name).is_dir() or (
            Path(name).is_file() and Path(name).suffix not in SUFFIXES):
        raise SettingError('--mechanism', None, 'the mechanism that the logs are of')
    return False


def _simulated(request: TuningRequest, chosen: list[str], backend: str) -> tuple[LinkageObserver, list[Log]]:
    """Logs of a true mechanism, as in Naya et al., review, for a filter whose model is wrong."""
    import numpy as np

    from ..dynamics.model import load_model
    from ..estimators.filters.analysis.tuning import Log
    from ..estimators.filters.defaults import default_stddev
    from ..simulation.three_simulations import noisy, true_motion, wrong_model, wrong_start
    model = load_model(request.sources[0], backend=backend)
    if not model.degrees_of_freedom:
        raise SettingError('mechanism', request.sources[0], 'a mechanism with degrees of freedom left to estimate')
    wrong = wrong_model(model)
    observer = _observer(wrong, request, chosen, backend)
    truth = true_motion(model, request.duration, STEP)
    outputs, start = truth.sensors(observer.sensors), wrong_start(wrong)
    stddev = default_stddev(observer.filter, model.description.name)
    times, still = truth.motion.t[1:], np.zeros_like(start)
    return observer, [Log(times, noisy(outputs, observer.stddev, seed), start, still, stddev)
                      for seed in range(request.seeds)]


def _recorded(request: TuningRequest, mechanism: str, chosen: list[str], backend: str
              ) -> tuple[LinkageObserver, list[Log]]:
    """Logs out of files; the filter starts where the mechanism's file says."""
    from ..dynamics.model import load_model
    from ..estimators.filters.analysis.tuning import Log
    from ..estimators.filters.defaults import default_stddev
    from ..offline.sensor_table import read_sensors
    model = load_model(mechanism, backend=backend)
    observer = _observer(model, request, chosen, backend)
    stddev, start, logs = default_stddev(observer.filter, model.description.name), model.start, []
    for source in request.sources:
        table = read_sensors(Path(source), model, observer.problem.channels, request.dt, request.namespace,
                             request.maps)
        for warning in table.warnings:
            typer.echo(f'warning: {source}: {warning}', err=True)
        logs.append(Log(table.t + table.t[1], table.values, start.q, start.qd, stddev, table.inputs))
    return observer, logs


def _observer(model: Model, request: TuningRequest, chosen: list[str], backend: str) -> LinkageObserver:
    from ..estimators.filters.defaults import default_noises
    from ..estimators.filters.observer import LinkageObserver
    noises = default_noises(request.estimator, model.description.name)
    return LinkageObserver(model, request.estimator, chosen, noises, backend=backend)


def summary_of(request: TuningRequest, observer: LinkageObserver, tuned: TuningResult) -> dict[str, Any]:
    """The result as JSON."""
    return {'mechanism': observer.model.description.name, 'estimator': request.estimator,
            'sensors': observer.sensors, 'sources': [str(source) for source in request.sources],
            'noises': tuned.after.noises, 'stddev_log10': tuned.stddev_log10, 'converged': tuned.converged,
            'before': asdict(tuned.before), 'after': asdict(tuned.after)}


def show(request: TuningRequest, observer: LinkageObserver, tuned: TuningResult) -> None:
    """Noises, then the innovations, before and after."""
    from ..report.sections import print_table, wide_console
    from ..report.text import number
    console, before, after = wide_console(), tuned.before, tuned.after
    names = [observer.problem.system.names[i] for i in observer.problem.z]
    rows = [[f'{noise} {_place(names, k, len(values))}', number(before.noises[noise][k]), number(values[k]),
             _factor(tuned.stddev_log10[noise][k], values[k])]
            for noise, values in after.noises.items() for k in range(len(values))]
    print_table(console, f'{request.estimator} on {observer.model.description.name}: process noises',
                ['noise', 'before', 'after', '1 sigma, times or divided by'], rows)
    rows = [['log-likelihood', f'{before.log_likelihood:.1f}', f'{after.log_likelihood:.1f}'],
            [f'mean NIS ({number(after.expected)} expected)', number(before.nis), number(after.nis)]]
    for channel in observer.problem.channels:
        rows += [[f'{channel}: Ljung-Box p', *_both(before, after, 'ljung_box', channel)],
                 [f'{channel}: autocorrelation at lag 1', *_both(before, after, 'autocorrelation', channel)]]
    print_table(console, 'innovations', ['', 'before', 'after'], rows)
    if not tuned.converged:
        console.print('the search was stopped before it settled')


def _factor(stddev_log10: float, value: float) -> str:
    """Spread of a noise as a factor."""
    from ..report.text import number
    if not math.isfinite(stddev_log10):
        return 'not determined by the logs'
    return number(10.0 ** stddev_log10) if value else '–'


def _place(names: Sequence[str], k: int, count: int) -> str:
    return f'({names[k]})' if count == len(names) else f'({k + 1})'


def _both(before: Quality, after: Quality, what: str, channel: str) -> list[str]:
    from ..report.text import number
    return [number(getattr(item, what)[channel]) for item in (before, after)]
