# SPDX-License-Identifier: Apache-2.0
"""``mbse simulate --runs``: many motions of a mechanism with numbers drawn at random; ends, quantiles over time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import typer

from ...api.simulate_batch import BatchSimulation, parameters_of, simulate_batch, starts_of
from ...dynamics.batch import Batch, simulate_runs
from ...dynamics.integrators import COMPILED
from ...dynamics.motion import step_count
from ...errors import SettingError
from ...report.files import check_file, check_folder, write_json
from ...studies.many import many
from ..arguments import independent_of
from .mechanism_simulate import SimulationRequest
from .runs_tables import failures_of, summary_of, write_arrays, write_ends, write_picture, write_quantiles
from .variations import Variation, varied_model

OUTPUTS = 100               # instants after the start, or as near to it as a divisor of the steps is
PART = 500                  # runs that a worker of a cluster makes at once
MOST_BYTES = 4 * 2 ** 30    # of the states kept


@dataclass(frozen=True)
class RunsRequest(SimulationRequest):
    """What to simulate so many times; ``vary``: NAME=STDDEV, ``outputs``: instants after the start."""

    runs: int = 1
    seed: int = 1
    vary: Sequence[str] = ()
    outputs: int | None = None
    states: bool = False
    jobs: int | None = None
    cluster: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scheme not in COMPILED:
            raise SettingError('--scheme', self.scheme, f'with --runs, one of {", ".join(COMPILED)}')
        for option, value, least in (('--runs', self.runs, 1), ('--seed', self.seed, 0),
                                     ('--jobs', self.jobs if self.jobs is not None else 1, 1)):
            if value < least:
                raise SettingError(option, value, f'a whole number from {least} on')
        if self.cluster is not None and self.jobs is not None:
            raise SettingError('--jobs', self.jobs, 'threads of this computer, or --cluster')

    @property
    def every(self) -> int:
        """Of so many steps the last one is kept; raises SettingError."""
        steps = step_count(self.duration, self.dt)
        if self.outputs is not None:
            if self.outputs < 1 or steps % self.outputs:
                raise SettingError('--outputs', self.outputs, f'a divisor of the {steps} steps')
            return steps // self.outputs
        divisors = [k for k in range(1, int(steps ** 0.5) + 1) if steps % k == 0]
        count = min([*divisors, *(steps // k for k in divisors)], key=lambda k: (abs(np.log(k / OUTPUTS)), k))
        return steps // count


def simulate_runs_of(request: RunsRequest, output: Path, json_file: Path | None = None) -> None:
    """Simulate and write; failed runs are reported; where none was completed, the error of the first is raised."""
    check_folder(output)
    check_file(json_file)
    every = request.every
    model, varied = varied_model(request.name, request.coordinates, independent_of(request.independent), request.vary)
    if request.runs > 1 and not any(item.stddev for item in varied) and not np.any(model.system.values.stddev):
        raise SettingError('--runs', request.runs, f'something that differs, --vary NAME=STDDEV: no number of '
                           f'{model.description.name} has a standard deviation')
    starts, parameters = _drawn(request, varied)
    kept = 16 * len(model.names) * request.runs * (step_count(request.duration, request.dt) // every + 1)
    if kept > MOST_BYTES:
        raise SettingError('--outputs', request.outputs, f'fewer instants, or fewer runs: {kept / 2 ** 30:.3g} GiB of '
                           f'states, at most {MOST_BYTES >> 30}')
    wall, processor = time.perf_counter(), time.process_time()
    if request.cluster is not None:
        result = BatchSimulation(model, _by_cluster(request))
    else:
        result = simulate_batch(model, request.duration, request.dt, request.scheme, runs=request.runs, starts=starts,
                                parameters=parameters, every=every, seed=request.seed, jobs=request.jobs,
                                options=request.options)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    output.mkdir(parents=True, exist_ok=True)
    summary = {**summary_of(request, result, varied), 'seed': request.seed, 'wall_s': wall, 'processor_s': processor,
               'us_per_step': 1e6 * processor / max(1, int(result.batch.steps.sum()))}
    write_ends(result, starts, output / 'ends.csv')
    write_quantiles(result, output / 'quantiles.csv')
    write_arrays(result, starts, request.states, output / 'runs.npz')
    write_json(output / 'summary.json', summary)
    write_json(json_file, summary)
    if request.pictures is not False and result.completed.any():
        write_picture(result, output / 'quantiles.png')
    _say(result, output)


def _drawn(request: RunsRequest, varied: Sequence[Variation]) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Starts and parameters (runs,) by name."""
    drawn = {item.name: item.drawn(request.seed, request.runs) for item in varied}
    starts, parameters = ({item.name: drawn[item.name] for item in varied if item.start is start}
                          for start in (True, False))
    return starts, parameters


def _by_cluster(request: RunsRequest) -> Batch:
    """All runs, so many at a time."""
    parts = many(partial(_part, request), range(0, request.runs, PART), cluster=request.cluster, what='parts')
    q, qd, steps, parameters = (np.concatenate([getattr(part, name) for part in parts])
                                for name in ('q', 'qd', 'steps', 'parameters'))
    return replace(parts[0], q=q, qd=qd, steps=steps, parameters=parameters,
                   failures=tuple(item for part in parts for item in part.failures))


def _part(request: RunsRequest, first: int) -> Batch:
    """The runs from the first on, of the numbers that are drawn for all, in one thread."""
    model, varied = varied_model(request.name, request.coordinates, independent_of(request.independent), request.vary)
    starts, parameters = _drawn(request, varied)
    rows = slice(first, first + PART)
    z, zd = starts_of(model, starts, request.runs)
    return simulate_runs(model, request.duration, request.dt, request.scheme, z=z[rows], zd=zd[rows],
                         parameters=parameters_of(model, parameters, request.runs, request.seed)[rows],
                         every=request.every, jobs=1, **request.options)


def _warn_of_signs(result: BatchSimulation) -> None:
    """A length or a mass below zero moves on as if it could be."""
    means = result.model.system.values.mean
    for (name, values), mean in zip(result.parameters.items(), means):
        if mean and (count := int((values * mean <= 0).sum())):
            typer.echo(f'warning: {name}: {count} of {len(values)} drawn numbers have not the sign of {mean:g}',
                       err=True)


def _say(result: BatchSimulation, output: Path) -> None:
    """One line on what was written, one for each kind of failure."""
    _warn_of_signs(result)
    for item in failures_of(result):
        typer.echo(f'warning: {item["runs"]} of {len(result.q)} runs failed by {item["error"]}, from '
                   f'{item["earliest_s"]:g} s on; run {item["first_run"]}: {item["reason"]}', err=True)
    typer.echo(f'wrote {output}: {int(result.completed.sum())} of {len(result.q)} runs complete over '
               f'{result.t[-1] - result.t[0]:g} s, {len(result.t)} instants')
    if not result.completed.any() and (first := result.batch.failures[0]) is not None:
        raise first
