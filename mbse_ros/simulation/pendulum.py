# SPDX-License-Identifier: Apache-2.0
"""The true machine of a load that hangs: one body more, on a pin or a cross of two, that nothing drives.

The observer knows nothing of this body: it has a formula of its own for the load's pull (``filters/force_balance``).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import casadi as ca
import numpy as np

from ..compiled import Kernel
from ..description.basics import ZERO, PointRef, Scalar
from ..description.model import Body, Joint, MechanismDescription
from ..machine import Machine
from ..machine.hanging import down

BODY, JOINT, PIN, HOOK = 'hanging_load', 'hanging_joint', 'pin', 'hanging_hook'
ROD = 1e-3          # kg at the load's centre: what hangs without a load still has inertia


class PendulumMachine(Machine):
    """A machine with the load as a body; its swing needs no sensor. ``passive`` names the load's coordinates."""

    def __init__(self, machine: Machine) -> None:
        self.passive = (JOINT,) if len(machine.swings) == 1 else (f'{JOINT}.first', f'{JOINT}.second')
        super().__init__(with_pendulum(machine, self.passive))

    def hanging(self, q: np.ndarray, swing: float = 0.0) -> np.ndarray:
        """Coordinates (n,) with the load turned by ``swing``, rad, from the vertical about the (first) pin."""
        q, places = q.copy(), [self.system.names.index(name) for name in self.passive]
        q[places] = 0.0
        parent, rest = (ca.Function('frame', [self.system.q, self.system.values.symbol],
                                    [self.system.frames[name].rotation])(q, self.model.parameters).full()
                        for name in (self.description.joints[JOINT].parent.body, BODY))
        wanted, still = parent.T @ down(self.description), parent.T @ rest[:, 0]        # of the parent's frame
        if len(still) == 2:
            q[places] = np.arctan2(still[0] * wanted[1] - still[1] * wanted[0], still @ wanted) + swing
            return q
        axis = np.array(self.description.joints[JOINT].axis)
        q[places[0]] = np.arctan2(np.cross(still, wanted) @ axis, still @ wanted) + swing
        if len(places) > 1:
            across = np.cross(parent.T @ rest[:, 1], still)
            q[places[1]] = np.arcsin(np.clip(wanted @ axis / (across @ axis), -1.0, 1.0))
        return q

    def tilt(self, q: np.ndarray) -> float:
        """Angle of the load from the vertical, rad, at coordinates (n,)."""
        pin, load = self._ends(q, self.model.parameters)
        along = down(self.description) @ (load - pin).ravel() / np.linalg.norm(load - pin)
        return float(np.arccos(np.clip(along, -1.0, 1.0)))

    @cached_property
    def _ends(self) -> Kernel:
        points = self.system.points
        return Kernel(ca.Function('rod', [self.system.q, self.system.values.symbol],
                                  [points[f'{BODY}.{PIN}'], points[f'{BODY}.center']]), 'vm')

    def _check_positions(self) -> None:
        """Whatever the sensors see."""


def with_pendulum(machine: Machine, passive: tuple[str, ...]) -> MechanismDescription:
    """Description with the load as a body at the length ``payload.hanging`` below a joint at the payload's point; at
    the start, at 0 of its coordinates, it hangs straight down."""
    description, payload = machine.description, machine.payload_data
    parent, size = description.bodies[payload.body], description.dimension
    R = ca.Function('frame', [machine.system.q, machine.system.values.symbol],
                    [machine.system.frames[payload.body].rotation])(machine.model.start.q,
                                                                    machine.model.parameters).full()
    along = down(machine.description)
    swings = np.eye(size)[['xyz'.index(axis) for axis in machine.swings]]
    turned, axes = _frame(R.T @ along, R.T @ swings[0])
    center = (payload.hanging or ZERO, *(Scalar(0.0) for _ in range(size - 1)))
    body = Body(BODY, Scalar(ROD), center, (ZERO,) * (1 if size == 2 else 6),
                {PIN: (ZERO,) * size, 'center': center},
                parent.position, tuple(map(tuple, np.array(parent.rotation) @ turned)))
    joint = Joint(JOINT, 'revolute' if len(passive) == 1 else 'universal', PointRef(payload.body, HOOK),
                  PointRef(BODY, PIN), axes[0], _rpy(turned), axes[1] if len(passive) == 2 else ())
    points = {**parent.points, HOOK: payload.center}
    bodies = {**description.bodies, payload.body: replace(parent, points=points), BODY: body}
    load = replace(payload, body=BODY, center=body.points['center'], point='center', hanging=None)
    return replace(description, bodies=bodies, joints={**description.joints, JOINT: joint}, payload=load,
                   coordinate_type='relative', independent=(*machine.coordinates, *passive))


def _frame(along: np.ndarray, swings: np.ndarray) -> tuple[np.ndarray, tuple[tuple[float, ...], ...]]:
    """Rotation of the load's frame in the parent's, its x axis leading to the load, its y axis along the first swing;
    the pin's axis in the parent's frame, and the second of a cross in the load's."""
    if len(along) == 2:
        return np.column_stack([along, [-along[1], along[0]]]), ((), ())
    axis = np.cross(along, swings)
    return np.column_stack([along, swings, axis]), (tuple(axis.tolist()), (0.0, 1.0, 0.0))


def _rpy(rotation: np.ndarray) -> tuple[Scalar, ...]:
    from scipy.spatial.transform import Rotation  # here: slow to import
    if len(rotation) == 2:
        return (Scalar(float(np.arctan2(rotation[1, 0], rotation[0, 0]))),)
    return tuple(Scalar(float(angle)) for angle in Rotation.from_matrix(rotation).as_euler('xyz'))
