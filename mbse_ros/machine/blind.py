# SPDX-License-Identifier: Apache-2.0
"""Motions that the position sensors of a machine do not see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from ..mechanism.sensors import sensor_model

if TYPE_CHECKING:
    from .machine import Machine

SEEN = 1e-6     # smallest share of a motion that counts as seen
POSITIONS = ('encoder', 'inclinometer', 'distance')


def blind_motion(machine: Machine) -> str:
    """Names of the independent coordinates that move where no position sensor changes, at the start; '' for none."""
    system, model = machine.system, machine.model
    kinds = [sensor.kind for sensor in machine.description.sensors.values()]
    outputs = sensor_model(system)
    owners = [name.partition('.')[0] for name in outputs.channels]
    rows = [i for i, name in enumerate(owners) if machine.description.sensors[name].kind in POSITIONS]
    if not kinds or not rows:
        return ', '.join(machine.coordinates)
    slopes = ca.Function('slopes', [system.q, system.qd, outputs.qdd, outputs.lam, system.u, system.t,
                                    system.values.symbol], [ca.jacobian(outputs.output[rows], system.q)])
    q = model.start.q
    n, m = system.n, system.m
    H = slopes(q, np.zeros(n), np.zeros(n), np.zeros(m), np.zeros(system.u.numel()), 0.0, model.parameters).full()
    R = np.column_stack([model.partition().velocity(q, unit) for unit in np.eye(len(machine.coordinates))])
    _, seen, motions = np.linalg.svd(H @ R / np.maximum(np.abs(H).max(axis=1, keepdims=True), 1e-12))
    full = np.zeros(len(motions))
    full[:len(seen)] = seen
    unseen = motions[full <= SEEN * max(full.max(), 1.0)]
    moving = np.abs(unseen).max(axis=0) > 1e-3 if len(unseen) else np.zeros(len(machine.coordinates), dtype=bool)
    return ', '.join(name for name, moves in zip(machine.coordinates, moving) if moves)
