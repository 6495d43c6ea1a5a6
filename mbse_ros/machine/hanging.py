# SPDX-License-Identifier: Apache-2.0
"""A load that hangs from a machine: which way is down, and along which axes its hook makes it swing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from ..errors import DescriptionError

if TYPE_CHECKING:
    from .machine import Machine

MOVES = 1e-9        # m by m or rad of a coordinate: an axis along which the hook moves less is none


def hook(machine: Machine) -> ca.SX:
    """Place (d,) of the payload's point, from which a load hangs, in the machine's frame, m."""
    payload, system = machine.payload_data, machine.system
    return system.frames[payload.body].at(system.values.vector(payload.center))


def down(machine: Machine) -> np.ndarray:
    """The axis of the machine's frame, with its sign, that is nearest to gravity (d,); raises DescriptionError."""
    gravity = np.array([item.value for item in machine.description.gravity])
    if not gravity.any():
        raise DescriptionError(machine.description.file, 'gravity', gravity.tolist(),
                               'gravity above 0, or no `payload.hanging`')
    k = int(np.argmax(np.abs(gravity)))
    return np.sign(gravity[k]) * np.eye(len(gravity))[k]


def swing_axes(machine: Machine) -> tuple[str, ...]:
    """Horizontal axes of the machine's frame along which a load swings: those along which the machine moves its hook;
    none where no load hangs. Raises DescriptionError where the machine moves it straight up and down."""
    payload = machine.description.payload
    if payload is None or payload.hanging is None:
        return ()
    q, across, moved = machine.system.q, down(machine) == 0.0, np.zeros(machine.description.dimension)
    J = ca.Function('hook', [q, machine.parameters.symbol], [ca.jacobian(hook(machine), q) @ machine.reduced.R])
    start = machine.model.start.q
    for shift in (0.0, 0.05, -0.05):        # an axis that is still in one pose may move in the next
        near = start + shift * (1.0 + np.arange(len(start)) % 3)
        moved = np.maximum(moved, np.abs(J(near, machine.parameters.mean).full()).max(axis=1))
    found = tuple(axis for axis, size, flat in zip('xyz', moved, across) if flat and size > MOVES)
    if not found:
        raise DescriptionError(machine.description.file, 'payload.hanging', payload.hanging.value,
                               'a hook that the machine also moves horizontally, or no `hanging`')
    return found
