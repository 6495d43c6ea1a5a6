# SPDX-License-Identifier: Apache-2.0
"""``mbse estimate`` of a machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import typer

from ...bags.writer import BagWriter
from ...description.model import fingerprint
from ...machine import Machine, load_machine
from ...machine.equations import why_unweighed
from ...offline.bag import KINDS, Estimate, estimate_bag, parse_tuning
from ...offline.log_loads import WeighedLoad
from ...payload.center import center_of
from ...scale.table import mass_text, remark_of
from ...streams.pipeline import Output
from ...streams.records import PayloadStatus
from ..arguments import machine_name
from ..logs import Answer, LogRequest, cost, cost_line, hand_over, wall_time
from .held import held_lines, held_seconds

LARGEST = 3     # causes of the uncertainty in the answer
UNKNOWN = math.nan, math.nan


def estimate_machine(machine: str | None, valve: str | None, request: LogRequest) -> None:
    """Estimate, print, and write what was asked for."""
    request.check_outputs()
    tuning, states = parse_tuning(request.words, KINDS), request.full or request.report is not None
    described = load_machine(machine_name(machine, [request.bag], request.namespace), valve)
    with written(described, request.output) as take:
        estimate = estimate_bag(request.bag, described, tuning, request.namespace, request.backend, request.sources,
                                states, take, None, request.every)
    if request.report is not None:
        from ...report.writer import write_report
        from .report_run import report_run
        facts = {'Bag': str(request.bag)} | ({'Tuning': ', '.join(request.words)} if request.words else {})
        run = report_run(estimate, f'Estimate from {request.bag.resolve().name}', facts)
        typer.echo(f'report: {write_report(run, request.report)}')
    hand_over(Answer(estimate.warnings, summary(estimate), as_json(estimate, request.full)), request)


def summary(estimate: Estimate) -> list[str]:
    """The answer, what became of it at the end of the log, and the cost."""
    payload, unweighed = estimate.last.payload, why_unweighed(estimate.machine)
    if unweighed:
        lines = [f'no mass: {unweighed}']
    elif not math.isfinite(payload.mass):
        lines = [f'payload unknown: {payload.reason or "no sample of it can be trusted yet"}',
                 *held_lines(estimate.track)]
    else:
        known = math.isfinite(payload.upper - payload.lower)
        interval = f'{payload.lower:.2f} to {payload.upper:.2f} kg' if known else 'not known yet'
        doubt = 'not trusted: ' if estimate.doubts else ''
        lines = [f'payload {doubt}{payload.mass:.2f} kg, 95 % interval {interval}, from {payload.samples} samples of '
                 'the mass']
        causes = [f'{cause} {cause.kg:.2g} kg' for cause in estimate.budget[:LARGEST] if cause.kg > 0.0]
        if known and causes:
            lines.append(f'largest causes of the interval, 1 sigma: {", ".join(causes)}')
        if payload.lower > 0.0 and any(name.startswith('moment/') for name in estimate.last.state.names):
            places = ', '.join(f'{axis} {1e3 * value:.0f} mm (1 sigma {1e3 * stddev:.0f})'
                               for axis, (value, stddev) in _centre(estimate).items() if stddev > 0.0)
            lines.append(f'its centre in the frame of {estimate.machine.payload_data.body}: {places}')
        if payload.status is not PayloadStatus.UPDATING:
            lines.append(f'held at the end of the log: {payload.reason}')
    lines += [f'not trusted: {doubt}' for doubt in estimate.doubts]
    lines += [f'load {k}: {load_text(load)}' for k, load in enumerate(estimate.loads, 1)]
    lines += [f'loads are not counted: {estimate.uncounted}'] if estimate.uncounted and not unweighed else []
    return [*lines, cost_line(estimate.seconds, estimate.log_seconds)]


def load_text(load: WeighedLoad) -> str:
    """One load in words."""
    return ', '.join(filter(None, [
        f'{load.start:.1f} to {load.end:.1f} s', f'{mass_text(load.record.mass)} kg', remark_of(load.record, set()),
        wall_time(load.record.data['start_ns'], load.record.data['end_ns'])]))


def _centre(estimate: Estimate) -> dict[str, tuple[float, float]]:
    """Where the load is at the end of the log, see ``center_of``."""
    state = estimate.last.state
    return center_of(estimate.machine, state.names, state.mean[-1], state.covariance)


def as_json(estimate: Estimate, full: bool) -> dict[str, Any]:
    """Payload at the end, cost, and in ``full`` the state at the stamps."""
    payload = estimate.last.payload
    doubtful = estimate.doubts and payload.status is not PayloadStatus.NO_DATA
    status = PayloadStatus.IMPLAUSIBLE if doubtful else payload.status
    centre = list(_centre(estimate).values()) if estimate.machine.description.payload is not None else [UNKNOWN]
    result: dict[str, Any] = {
        'payload': {'mass': payload.mass, 'stddev': payload.stddev, 'interval': [payload.lower, payload.upper],
                    'status': status.name.lower(), 'faults': payload.faults.words, 'samples': payload.samples,
                    **({'trusted': False, 'doubts': list(estimate.doubts)} if estimate.doubts else {}),
                    'seconds': {status.name.lower(): seconds
                                for status, seconds in held_seconds(estimate.track).items()},
                    'centre': [centre[0][0], centre[-1][0]], 'centre_stddev': [centre[0][1], centre[-1][1]],
                    'budget': [{'cause': cause.cause, 'kg': cause.kg, 'assumed': cause.assumed}
                               for cause in estimate.budget],
                    'loads': [load.values() for load in estimate.loads]},
        'cost': cost(estimate.seconds, estimate.log_seconds)}
    return result | ({'state': _state(estimate)} if full else {})


def _state(estimate: Estimate) -> dict[str, Any]:
    """Kinds of entries, each (n, entries), their standard deviations, and the payload's track."""
    names, states, stddev = estimate.last.state.names, estimate.states, estimate.stddev
    state: dict[str, Any] = {'stamp_ns': estimate.stamps_ns, 'names': names}
    for kind in dict.fromkeys(name.split('/')[0] for name in names):
        columns = [i for i, name in enumerate(names) if name.startswith(kind + '/')]
        state |= {kind: states.mean[:, columns], f'{kind}_stddev': stddev[:, columns]}
    for item in ('mass', 'lower', 'upper'):
        state[f'payload_{item}'] = getattr(states, item)
    state['payload_status'] = estimate.track.status_words
    return state


@contextmanager
def written(machine: Machine, folder: Path | None) -> Iterator[Callable[[Output], None] | None]:
    """Gives what writes the records of an Output into a bag, which is made for the first one; None without a folder."""
    with ExitStack() as stack:
        writers: list[BagWriter] = []

        def take(output: Output) -> None:
            if not writers:
                assert folder is not None
                writers.append(stack.enter_context(BagWriter(folder, frame=machine.name,
                                                             machine=fingerprint(machine.description))))
            for record in (output.segment, output.state, output.payload):
                writers[0].write_record(record)
        yield take if folder is not None else None
