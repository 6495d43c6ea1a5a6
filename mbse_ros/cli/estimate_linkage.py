# SPDX-License-Identifier: Apache-2.0
"""``mbse estimate BAG --mechanism M``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import typer

from ..bags.messages import header, linkage_message
from ..bags.writer import BagWriter
from ..description.load import load_mechanism
from ..dynamics.model import load_model
from ..report.json_file import write_json
from .described import check_sensors
from .estimate import check_outputs
from .linkage_bag import LinkageLog, estimate_linkage_bag, linkage_settings


def estimate_linkage_command(bag: Path, mechanism: str, estimator: str, sensors: str, step: float | None,
                             output: Path | None, json_file: Path | None, full: bool, words: Sequence[str],
                             namespace: str | None, backend: str) -> None:
    """Estimate, print, and write what was asked for."""
    check_outputs(output, json_file, None)
    settings = linkage_settings(words, estimator=estimator)
    names = [name for name in sensors.replace(',', ' ').split() if name]
    description = load_mechanism(mechanism)
    note = check_sensors(description, names)
    if note:
        typer.echo(f'note: {note}', err=True)
    model = load_model(description, backend=backend)
    log = estimate_linkage_bag(bag, model, settings, names, step, (), namespace, backend)
    for warning in log.warnings:
        typer.echo(f'warning: {warning}', err=True)
    if output is not None:
        write_states(log, output)
    write_json(json_file, as_json(log, full), None if full else 2)
    typer.echo(summary(log))


def errors(log: LinkageLog) -> dict[str, float]:
    """RMSE of the independent coordinates against the truth in the bag, by name; empty where there is none."""
    z = log.model.z
    error = np.array([e.q[z] for e in log.estimates]) - log.truth[:, z]
    known = np.isfinite(error).all(axis=1)
    if not known.any():
        return {}
    return dict(zip(log.model.independent, np.sqrt(np.mean(error[known] ** 2, axis=0)).tolist()))


def summary(log: LinkageLog) -> str:
    """The end, how well it fits, and the cost."""
    last, health = log.estimates[-1], log.stage.health()
    lines = [f'{last.estimator} on {log.model.description.name}: {", ".join(log.stage.channels)}; '
             f'{len(log.estimates)} instants of {log.stage.step_ns * 1e-9:g} s']
    for k, name in enumerate(last.names):
        lines.append(f'  {name} {last.mean[k]:.6g} +- {math.sqrt(max(last.covariance[k, k], 0.0)):.2g}')
    lines += [f'  added force {name} {value:.5g}' for name, value in zip(log.model.independent, last.force)]
    lines.append(f'{last.status.name.lower()}{": " if last.reason else ""}{last.reason}; NIS per measurement '
                 f'{health.mean_nis:.3g}, whiteness {health.whiteness:.2g}')
    lines += [f'RMSE against the truth: {name} {value:.3g}' for name, value in errors(log).items()]
    lines.append(f'{log.log_seconds:.1f} s of data in {log.seconds:.3f} s '
                 f'({100 * log.seconds / log.log_seconds:.2f} % of real time)')
    return '\n'.join(lines)


def as_json(log: LinkageLog, full: bool) -> dict[str, Any]:
    """The fixed machine-readable form; a value that is not known is null."""
    last, health = log.estimates[-1], log.stage.health()
    result: dict[str, Any] = {
        'mechanism': log.model.description.name, 'estimator': last.estimator, 'channels': list(log.stage.channels),
        'instants': len(log.estimates), 'names': list(last.names), 'mean': _numbers(last.mean),
        'stddev': _numbers(np.sqrt(np.diag(last.covariance))), 'force': _numbers(last.force),
        'status': last.status.name.lower(), 'dropped': log.stage.dropped, 'rmse': errors(log),
        'mean_nis': _numbers([health.mean_nis])[0], 'whiteness': _numbers([health.whiteness])[0],
        'cost': {'seconds': log.seconds, 'real_time_share': log.seconds / log.log_seconds}}
    if full:
        result['state'] = {
            'stamp_ns': [e.stamp_ns for e in log.estimates], 'mean': [_numbers(e.mean) for e in log.estimates],
            'stddev': [_numbers(np.sqrt(np.diag(e.covariance))) for e in log.estimates],
            'force': [_numbers(e.force) for e in log.estimates],
            'status': [e.status.name.lower() for e in log.estimates]}
    return result


def _numbers(values: Sequence[float]) -> list[float | None]:
    return [float(value) if math.isfinite(value) else None for value in values]


def write_states(log: LinkageLog, folder: Path) -> None:
    """States and all coordinates as a bag, as the node would publish them."""
    name, model = log.model.description.name, log.model
    with BagWriter(folder, frame=name) as writer:
        for e in log.estimates:
            kind, message = linkage_message(e, name, log.stage.channels)
            writer.write('linkage_state', kind, e.stamp_ns, message)
            writer.write('estimated/joint_states', 'sensor_msgs/msg/JointState', e.stamp_ns, {
                'header': header(e.stamp_ns, name), 'name': list(model.names), 'position': e.q, 'velocity': e.qd})
