# SPDX-License-Identifier: Apache-2.0
"""``mbse estimate BAG --mechanism M``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import typer

from ...bags.messages import header, linkage_message
from ...bags.writer import BagWriter
from ...description.load import load_mechanism
from ...description.model import fingerprint
from ...dynamics.model import load_model
from ...offline.linkage import LinkageLog, estimate_linkage_bag, linkage_settings
from ..described import check_sensors
from ..logs import Answer, LogRequest, cost, cost_line, hand_over


def estimate_linkage(mechanism: str, estimator: str, request: LogRequest) -> None:
    """Estimate, print, and write what was asked for."""
    request.check_outputs()
    settings = linkage_settings([f'linkage.estimator={estimator}', *request.words])
    description = load_mechanism(mechanism)
    note = check_sensors(description, request.sensors)
    if note:
        typer.echo(f'note: {note}', err=True)
    log = estimate_linkage_bag(request.bag, load_model(description, backend=request.backend), settings, request.sensors,
                               request.step, request.namespace, request.backend)
    hand_over(Answer(log.warnings, summary(log), as_json(log, request.full), lambda folder: write_states(log, folder)),
              request)


def errors(log: LinkageLog) -> dict[str, float]:
    """RMSE of the independent coordinates against the truth in the bag, by name; empty where there is none."""
    error = (log.column('q') - log.truth)[:, log.model.z]
    known = np.isfinite(error).all(axis=1)
    if not known.any():
        return {}
    return dict(zip(log.model.independent, np.sqrt(np.mean(error[known] ** 2, axis=0)).tolist()))


def summary(log: LinkageLog) -> list[str]:
    """The end, how well it fits, and the cost."""
    last, health = log.estimates[-1], log.stage.health()
    lines = [f'{last.estimator} on {log.model.description.name}: {", ".join(log.stage.channels)}; '
             f'{len(log.estimates)} instants of {log.step:g} s']
    for k, name in enumerate(last.names):
        lines.append(f'  {name} {last.mean[k]:.6g} +- {math.sqrt(max(last.covariance[k, k], 0.0)):.2g}')
    lines += [f'  added force {name} {value:.5g}' for name, value in zip(log.model.independent, last.force)]
    lines.append(f'{last.status.name.lower()}{": " if last.reason else ""}{last.reason}; NIS per measurement '
                 f'{health.mean_nis:.3g}, whiteness {health.whiteness:.2g}')
    lines += [f'RMSE against the truth: {name} {value:.3g}' for name, value in errors(log).items()]
    return [*lines, cost_line(log.seconds, log.log_seconds)]


def as_json(log: LinkageLog, full: bool) -> dict[str, Any]:
    """The end, how well it fits, the cost, and in ``full`` the state over time."""
    last, health = log.estimates[-1], log.stage.health()
    result: dict[str, Any] = {
        'mechanism': log.model.description.name, 'estimator': last.estimator, 'channels': log.stage.channels,
        'instants': len(log.estimates), 'names': last.names, 'mean': last.mean,
        'stddev': np.sqrt(np.diag(last.covariance)), 'force': last.force, 'status': last.status.name.lower(),
        'dropped': log.stage.dropped, 'rmse': errors(log), 'mean_nis': health.mean_nis, 'whiteness': health.whiteness,
        'cost': cost(log.seconds, log.log_seconds)}
    if full:
        result['state'] = {
            'stamp_ns': log.column('stamp_ns'), 'mean': [e.mean for e in log.estimates],
            'stddev': [np.sqrt(np.diag(e.covariance)) for e in log.estimates], 'force': log.column('force'),
            'status': [e.status.name.lower() for e in log.estimates]}
    return result


def write_states(log: LinkageLog, folder: Path) -> None:
    """States and all coordinates as a bag, as the node would publish them."""
    name, model, machine = log.model.description.name, log.model, fingerprint(log.model.description)
    with BagWriter(folder, frame=name) as writer:
        for e in log.estimates:
            kind, message = linkage_message(e, name, log.stage.channels, machine)
            writer.write('linkage_state', kind, e.stamp_ns, message)
            writer.write('estimated/joint_states', 'sensor_msgs/msg/JointState', e.stamp_ns, {
                'header': header(e.stamp_ns, name), 'name': list(model.names), 'position': e.q, 'velocity': e.qd})
