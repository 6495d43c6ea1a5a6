# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics of driven mechanisms: actuator forces, joint reactions and the power balance of a motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from ...compiled import Kernel
from ...errors import SettingError
from ..model import Model
from .joint_reactions import COMPONENTS, BodyBalance
from .prescribed import Motion, checked_times, kinematics


@dataclass(frozen=True)
class DrivenMotion:
    """Motion and forces at times ``t`` (k,), SI.

    ``q``, ``qd``, ``qdd`` (k, n) of the model's coordinates. ``forces``: by actuator (driver, or independent coordinate
    whose motion was prescribed) the force or torque (k,), N or N m, that it exerts on the mechanism along its
    coordinate.
    ``reactions``: by joint what it exerts on its child, in the machine frame about the child's point, (k, 3 | 6) with
    the ``components`` fx, fy, mz in a plane, fx, fy, fz, mx, my, mz in space; without the actuator's own force.
    Redundant constraints leave components open: these are NaN, and named in ``undetermined`` by joint or actuator.
    ``power`` (k,) of the actuators, W; ``imbalance`` (k,): power of actuators, loads, inputs and dampers less the rate
    of the kinetic and potential energy, W (zero except for rounding).
    """

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    forces: dict[str, np.ndarray]
    reactions: dict[str, np.ndarray]
    components: tuple[str, ...]
    undetermined: dict[str, tuple[str, ...]]
    power: np.ndarray
    imbalance: np.ndarray


def inverse_dynamics(model: Model, times: Sequence[float] | np.ndarray, motion: Motion | None = None,
                     inputs: np.ndarray | None = None) -> DrivenMotion:
    """Forces that a motion takes.

    The drivers of the file move their coordinates. Independent coordinates that no driver moves need ``motion``: a
    function ``t -> (z, zd, zdd)``, each (g,), or three arrays (k, g), m or rad, in the order of ``model.independent``.
    ``inputs``: (i,) or (k, i), zero where left out. The branch of the model's start is followed from t = 0. Raises
    SettingError, PositionProblemError (out of reach), SingularConfigurationError (dead point).
    """
    times = checked_times(times)
    u = _inputs(model, times, inputs)
    q, qd, qdd = kinematics(model, times, motion)
    balance = BodyBalance(model)
    found = [balance.solve(*state, float(t)) for state, t in zip(zip(q, qd, qdd, u), times)]
    forces = np.array([item.forces for item in found]).reshape(len(times), -1)
    wrenches = np.array([item.wrenches for item in found])
    coordinates = [driver.coordinate for driver in model.description.drivers.values()] + list(model.independent)
    power = np.einsum('ka,ka->k', forces, qd[:, [model.names.index(name) for name in coordinates]])
    components = COMPONENTS[model.description.dimension]
    by_joint = {joint.name: wrenches[:, j] for j, joint in enumerate(balance.joints)}
    by_actuator = dict(zip(balance.actuators, forces.T))
    return DrivenMotion(times, q, qd, qdd, by_actuator, by_joint, components,
                        _undetermined(by_actuator, by_joint, components), power,
                        power + _other_power(model, q, qd, qdd, u))


def _inputs(model: Model, times: np.ndarray, inputs: np.ndarray | None) -> np.ndarray:
    """Inputs (k, i)."""
    shape = (len(times), len(model.inputs))
    given = np.zeros(shape) if inputs is None else np.asarray(inputs, dtype=float)
    if given.shape not in (shape, shape[1:]) or not np.isfinite(given).all():
        raise SettingError('inputs', given.shape, f'finite values of {", ".join(model.inputs) or "no input"}: '
                           f'{shape[1:]} or {shape}')
    return np.broadcast_to(given, shape)


def _undetermined(forces: dict[str, np.ndarray], reactions: dict[str, np.ndarray],
                  components: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Components that are open at any of the times."""
    found: dict[str, tuple[str, ...]] = {
        name: ('force',) for name, values in forces.items() if np.isnan(values).any()}
    for name, values in reactions.items():
        open_ = tuple(component for component, column in zip(components, values.T) if np.isnan(column).any())
        if open_:
            found[name] = (*found.get(name, ()), *open_)
    return found


def _other_power(model: Model, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Power (k,) of loads, inputs and dampers less the rate of the energy, in the model's own coordinates."""
    system, a = model.system, ca.SX.sym('qdd', model.system.n)
    rate = ca.jtimes(system.kinetic + system.potential, system.q, system.qd) + ca.jtimes(system.kinetic, system.qd, a)
    power = ca.dot(system.qd, system.other_forces)
    kernel = Kernel(ca.Function('mbse_power', [system.q, system.qd, a, system.u, system.values.symbol],
                                [power - rate]), 'vm')
    return np.array([kernel(*state, model.parameters)[0][0] for state in zip(q, qd, qdd, u)])
