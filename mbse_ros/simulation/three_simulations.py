# SPDX-License-Identifier: Apache-2.0
"""The three-simulation method (Naya et al., review, section 3): a true mechanism, a wrong model, a filter that helps
it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca
import numpy as np

from ..compiled import Kernel
from ..description.basics import PointRef, Scalar
from ..description.model import Force
from ..dynamics.model import Model
from ..dynamics.motion import Motion, simulate
from ..dynamics.sensor_equations import chosen_sensors
from ..mechanism.inertia import center_of_mass
from ..mechanism.values import Values

GRAVITY_ERROR = 1.0             # m/s2 less than the true one (Naya et al., review, section 11.1)
POSITION_ERROR = np.pi / 16     # of every independent coordinate at the start, rad


@dataclass(frozen=True)
class TrueMotion:
    """The true motion at t = 0, dt, ... and the model that made it."""

    model: Model
    motion: Motion
    dt: float

    @cached_property
    def z(self) -> list[int]:
        """Places of the independent coordinates in q."""
        return self.model.z

    def sensors(self, names: tuple[str, ...]) -> np.ndarray:
        """True outputs (k, s) of sensors at t = dt, 2 dt, ...; SI."""
        return sensor_outputs(self.model, names, self.motion, range(1, len(self.motion.t)))


def sensor_outputs(model: Model, names: Sequence[str], motion: Motion, rows: Iterable[int]) -> np.ndarray:
    """True outputs (k, s) of sensors at some states of a motion, SI."""
    of, system, p = chosen_sensors(model, names), model.system, np.asarray(model.parameters)
    kernel = Kernel(ca.Function('mbse_outputs', [system.q, system.qd, of.qdd, of.lam, system.u, system.t,
                                                 system.values.symbol], [of.output], {'cse': True}), 'vm')
    return np.array([kernel(motion.q[i], motion.qd[i], motion.qdd[i], motion.multipliers[i, model.active],
                            motion.inputs[i], motion.t[i:i + 1], p)[0] for i in rows])


def true_motion(model: Model, duration: float, dt: float) -> TrueMotion:
    """Free motion of a mechanism from its start by the trapezoidal rule, as in the papers' benchmark."""
    return TrueMotion(model, simulate(model, duration, dt, 'trapezoid'), dt)


def wrong_model(model: Model, gravity: float = GRAVITY_ERROR) -> Model:
    """The same mechanism with weights as if gravity were smaller by ``gravity``, m/s2.

    A force at each centre of mass makes the error, so that the accelerometers' model keeps the true gravity.
    """
    description = model.description
    down = np.array([scalar.value for scalar in description.gravity])
    lift = -gravity * down / max(float(np.linalg.norm(down)), 1e-300)
    values, bodies, forces = Values(description), dict(description.bodies), dict(description.forces)
    for name, body in description.bodies.items():
        centre = [Scalar(item) for item in ca.evalf(center_of_mass(body, values)).full().ravel().tolist()]
        bodies[name] = replace(body, points={**body.points, 'weight_error': tuple(centre)})
        forces[f'weight_error_{name}'] = Force(f'weight_error_{name}', point=PointRef(name, 'weight_error'),
                                               value=tuple(Scalar(float(body.mass.value * item)) for item in lift))
    return Model(replace(description, bodies=bodies, forces=forces), None, model.independent, (), model.backend)


def wrong_start(model: Model, error: float = POSITION_ERROR) -> np.ndarray:
    """Coordinates (n,) of the start with each independent coordinate off by ``error``; raises PositionProblemError."""
    q, partition = model.start.q, model.partition()
    for share in np.linspace(0.0, 1.0, 9)[1:]:      # in small steps, so that Newton's method stays on the branch
        q = partition.position(model.start.q[model.z] + error * share, q)
    return q


def noisy(outputs: np.ndarray, stddev: np.ndarray, seed: int) -> np.ndarray:
    """Samples (k, s) with white noise."""
    return outputs + np.random.default_rng(seed).normal(size=outputs.shape) * stddev
