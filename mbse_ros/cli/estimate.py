# SPDX-License-Identifier: Apache-2.0
"""``mbse estimate``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import typer

from ..bags.writer import BagWriter
from ..errors import BagError, SettingError
from ..machine import load_machine
from ..streams.records import PayloadStatus
from ..report.json_file import check_json_file, write_json
from ..offline.bag import Estimate, estimate_bag, parse_tuning


def estimate_command(bag: Path, machine: str, valve: str | None, output: Path | None, json_file: Path | None,
                     full: bool, report: Path | None, words: Sequence[str], namespace: str | None,
                     backend: str) -> None:
    """Estimate, print, and write what was asked for."""
    check_outputs(output, json_file, report)
    estimate = estimate_bag(bag, load_machine(machine, valve), parse_tuning(words), namespace, backend)
    for warning in estimate.warnings:
        typer.echo(f'warning: {warning}', err=True)
    if output is not None:
        write_estimates(estimate, output)
    write_json(json_file, as_json(estimate, full), None if full else 2)
    if report is not None:
        from ..report.writer import write_report
        from .report_run import report_run
        facts = {'Bag': str(bag)} | ({'Tuning': ', '.join(words)} if words else {})
        run = report_run(estimate, f'Estimate from {bag.resolve().name}', facts)
        typer.echo(f'report: {write_report(run, report)}')
    typer.echo(summary(estimate))


def check_outputs(output: Path | None, json_file: Path | None, report: Path | None) -> None:
    """Refuse, before the work, what cannot be written; raises BagError or SettingError."""
    if output is not None and output.exists():
        raise BagError(str(output), 'exists already and is not overwritten')
    check_json_file(json_file)
    if report is not None and report.exists() and not report.is_dir():
        raise SettingError('--report', str(report), 'a folder')


def summary(estimate: Estimate) -> str:
    """The answer, what became of it at the end of the log, and the cost."""
    payload = estimate.outputs[-1].payload
    if not math.isfinite(payload.mass):
        answer = f'payload unknown: {payload.reason or "no sample of it can be trusted yet"}'
    else:
        answer = f'payload {payload.mass:.2f} kg, 95 % interval {_interval(payload.lower, payload.upper)}'
        answer += f', from {payload.samples} samples of the mass'
        if payload.status is not PayloadStatus.UPDATING:
            answer += f'\nheld at the end of the log: {payload.reason}'
    return (f'{answer}\n{estimate.log_seconds:.1f} s of data in {estimate.seconds:.3f} s '
            f'({100 * estimate.seconds / estimate.log_seconds:.2f} % of real time)')


def _interval(lower: float, upper: float) -> str:
    return f'{lower:.2f} to {upper:.2f} kg' if math.isfinite(upper - lower) else 'not known yet'


def as_json(estimate: Estimate, full: bool) -> dict[str, Any]:
    """The fixed machine-readable form; a value that is not known is null."""
    payload = estimate.outputs[-1].payload
    result: dict[str, Any] = {
        'payload': {'mass': _number(payload.mass), 'stddev': _number(payload.stddev),
                    'interval': [_number(payload.lower), _number(payload.upper)],
                    'status': payload.status.name.lower(), 'samples': payload.samples},
        'cost': {'seconds': estimate.seconds, 'real_time_share': estimate.seconds / estimate.log_seconds}}
    if full:
        result['state'] = _state(estimate)
    return result


def _state(estimate: Estimate) -> dict[str, Any]:
    """State at the stamps: kinds of entries, each (n, entries), their standard deviations, and the payload's track."""
    names = estimate.outputs[0].state.names
    mean = np.array([o.state.mean[-1] for o in estimate.outputs])
    stddev = np.sqrt(np.array([np.diag(o.state.covariance) for o in estimate.outputs]))
    state: dict[str, Any] = {'stamp_ns': estimate.stamps_ns.tolist(), 'names': list(names)}
    for kind in dict.fromkeys(name.split('/')[0] for name in names):
        columns = [i for i, name in enumerate(names) if name.startswith(kind + '/')]
        state[kind] = _rows(mean[:, columns])
        state[f'{kind}_stddev'] = _rows(stddev[:, columns])
    for item in ('mass', 'lower', 'upper'):
        state[f'payload_{item}'] = [_number(getattr(o.payload, item)) for o in estimate.outputs]
    state['payload_status'] = [o.payload.status.name.lower() for o in estimate.outputs]
    return state


def _rows(array: np.ndarray) -> list[list[float | None]]:
    return [[_number(value) for value in row] for row in array.tolist()]


def _number(value: float) -> float | None:
    """JSON knows no NaN."""
    return value if math.isfinite(value) else None


def write_estimates(estimate: Estimate, folder: Path) -> None:
    """Segments, states and payloads as a bag."""
    with BagWriter(folder, frame=estimate.machine.name) as writer:
        for out in estimate.outputs:
            writer.write_record(out.segment)
            writer.write_record(out.state)
            writer.write_record(out.payload)
