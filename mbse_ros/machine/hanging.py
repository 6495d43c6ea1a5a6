# SPDX-License-Identifier: Apache-2.0
"""A load that hangs from a machine: which way is down, and along which axes its hook makes it swing."""

from __future__ import annotations

import casadi as ca
import numpy as np

from ..description.machine_parts import Payload
from ..description.model import MechanismDescription
from ..errors import DescriptionError
from ..mechanism.assembly import MechanismSystem
from .parameters import Parameters

MOVES = 1e-9        # m by m or rad of a coordinate: an axis along which the hook moves less is none


def hook(payload: Payload, system: MechanismSystem) -> ca.SX:
    """Place (d,) of the payload's point, from which a load hangs, in the machine's frame, m."""
    return system.frames[payload.body].at(system.values.vector(payload.center))


def down(description: MechanismDescription) -> np.ndarray:
    """The axis of the machine's frame, with its sign, that is nearest to gravity (d,); raises DescriptionError."""
    gravity = np.array([item.value for item in description.gravity])
    if not gravity.any():
        raise DescriptionError(description.file, 'gravity', gravity.tolist(),
                               'gravity above 0, or no `payload.hanging`')
    k = int(np.argmax(np.abs(gravity)))
    return np.sign(gravity[k]) * np.eye(len(gravity))[k]


def swing_axes(payload: Payload, system: MechanismSystem, R: ca.SX, parameters: Parameters, start: np.ndarray
               ) -> tuple[str, ...]:
    """Horizontal axes of the machine's frame along which a load swings: those along which the machine moves its hook.
    Raises DescriptionError where it moves it straight up and down.

    ``R`` (n, g): velocities of the coordinates by the independent ones; ``start`` (n,).
    """
    description = system.description
    q, across, moved = system.q, down(description) == 0.0, np.zeros(description.dimension)
    J = ca.Function('hook', [q, parameters.symbol], [ca.jacobian(hook(payload, system), q) @ R])
    for shift in (0.0, 0.05, -0.05):        # an axis that is still in one pose may move in the next
        near = start + shift * (1.0 + np.arange(len(start)) % 3)
        moved = np.maximum(moved, np.abs(J(near, parameters.mean).full()).max(axis=1))
    found = tuple(axis for axis, size, flat in zip('xyz', moved, across) if flat and size > MOVES)
    if not found:
        raise DescriptionError(description.file, 'payload.hanging', payload.hanging and payload.hanging.value,
                               'a hook that the machine also moves horizontally, or no `hanging`')
    return found
