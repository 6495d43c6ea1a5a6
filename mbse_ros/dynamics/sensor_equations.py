# SPDX-License-Identifier: Apache-2.0
"""Sensors as functions of the state: outputs and their exact Jacobian along the constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import casadi as ca

from ..errors import SettingError, check_choice
from ..mechanism.assembly import MechanismSystem
from ..mechanism.sensors import SensorModel, sensor_model
from .model import Model
from .partitioned import with_rows
from .state_equations import Maps, Pieces, is_small, state_function, state_symbols


def state_sensors(system: MechanismSystem) -> SensorModel:
    """Sensors of a system from which redundant rows may have been taken.

    Raises SettingError for the force of a driver whose motion the other constraints imply: it is not determined.
    """
    for sensor in system.description.sensors.values():
        if sensor.kind == 'force' and f'drivers.{sensor.driver}' not in system.rows:
            raise SettingError(f'sensors.{sensor.name}.driver', sensor.driver,
                               'a driver whose motion no other constraint implies: the force is not determined')
    return sensor_model(system)


def chosen_sensors(model: Model, names: Sequence[str]) -> SensorModel:
    """Some sensors of a model, in this order; ``lam`` is of its ``active`` rows. Raises SettingError for a sensor it
    has not, and as ``state_sensors``."""
    known = model.description.mechanical_sensors
    for name in names:
        check_choice('sensors', name, known)
    chosen = replace(model.description, sensors={name: known[name] for name in names})
    return state_sensors(replace(with_rows(model.system, model.active), description=chosen))


def sensor_function(system: MechanismSystem, parameters: ca.SX, scalar: bool | None = None,
                    pieces: Pieces | None = None) -> ca.Function:
    """Function ``(q, zd, u, t, p) -> (h, H)`` of the state ``X = [z, zd]``.

    ``h`` (s,) the channels of ``state_sensors(system)``, SI; ``H`` (s, 2g) = dh/dX, the total derivative along the
    constraints: also through the accelerations and the multipliers. ``system`` has independent coordinates and no
    redundant rows (``Partitioned.system``); ``scalar``, ``pieces`` as in ``state_function``. Raises SettingError.

    With ``dq = R dz`` and ``dqd = R dzd - S (d(J qd - b)/dq R) dz``, and G and H of ``state_function``:
    ``dqdd = R dzdd + S dH``, ``dlam = S' (dG - M dqdd)``.
    """
    model = state_sensors(system)
    if scalar is None:
        scalar = is_small(system)
    kind = ca.SX if scalar else ca.MX
    g = len(system.independent)
    q, zd, u, t, p = state_symbols(system, parameters, kind)
    outputs, partial = _outputs(system, model, parameters)
    pieces = pieces or Pieces(system, parameters)
    state = state_function(system, parameters, scalar, pieces=pieces)
    zdd, A, _, qdd, lam, qd = state(q, zd, u, t, p)
    h, *h_x = outputs(q, qd, u, t, p, qdd, lam)
    J, _ = pieces.constraints(q, t, p)
    maps = Maps.of(system, J, scalar)
    R, (H_q, H_qd, rate_q) = maps.R, pieces.constraint_tangents(q, qd, t, p, qdd)
    dq = ca.horzcat(R, kind(*R.shape))
    dqd = ca.horzcat(-maps.S(rate_q @ R), R)
    dqdd = R @ A[g:, :] + maps.S(H_q @ dq + H_qd @ dqd)
    changes = [dq, dqd, dqdd]
    if partial[3].nnz():
        G_q, G_qd = pieces.force_tangents(q, qd, u, t, p, qdd, lam)
        M = pieces.dynamics(q, qd, u, t, p)[0]
        changes.append(maps.S_transposed(G_q @ dq + G_qd @ dqd - M @ dqdd))
    H = sum((slope @ change for slope, change, exact in zip(h_x, changes, partial) if exact.nnz()),
            kind(h.numel(), 2 * g))
    return ca.Function('mbse_sensors', [q, zd, u, t, p], [h, ca.densify(H)], ['q', 'zd', 'u', 't', 'p'], ['h', 'H'],
                       {'cse': True})


def sensor_partials(system: MechanismSystem, parameters: ca.SX, scalar: bool | None = None,
                    pieces: Pieces | None = None) -> ca.Function:
    """Function ``(q, zd, zdd, u, t, p) -> (h, H_z, H_zd, H_zdd)``; the derivatives (s, g) are along the constraints.

    ``zdd`` need not be the model's acceleration: error-state filters estimate its error (Naya et al., review,
    section 7.3).
    ``system`` as in ``sensor_function``. Raises SettingError.
    """
    model = state_sensors(system)
    scalar = is_small(system) if scalar is None else scalar
    kind = ca.SX if scalar else ca.MX
    q, zd, zdd, u, t, p = state_symbols(system, parameters, kind, 'q zd zdd u t p')
    pieces = pieces or Pieces(system, parameters)
    J, b = pieces.constraints(q, t, p)
    maps = Maps.of(system, J, scalar)
    R = maps.R
    qd = R @ zd + maps.S(b)
    M, Q, _, c = pieces.dynamics(q, qd, u, t, p)
    qdd = R @ zdd + maps.S(c)
    lam = maps.S_transposed(Q - M @ qdd)
    H_q, H_qd, rate_q = pieces.constraint_tangents(q, qd, t, p, qdd)
    outputs, slopes = _outputs(system, model, parameters)
    h, h_q, h_qd, h_qdd, h_lam = outputs(q, qd, u, t, p, qdd, lam)
    along = -maps.S(rate_q @ R)
    free = maps.S(H_q @ R + H_qd @ along)                  # of qdd with z, at constant zdd
    free_rate = maps.S(H_qd @ R)
    H_z = h_q @ R + h_qd @ along + h_qdd @ free
    H_zd = h_qd @ R + h_qdd @ free_rate
    H_zdd = h_qdd @ R
    if slopes[3].nnz():
        G_q, G_qd = pieces.force_tangents(q, qd, u, t, p, qdd, lam)
        H_z = H_z + h_lam @ maps.S_transposed(G_q @ R + G_qd @ along - M @ free)
        H_zd = H_zd + h_lam @ maps.S_transposed(G_qd @ R - M @ free_rate)
        H_zdd = H_zdd - h_lam @ maps.S_transposed(M @ R)
    return ca.Function('mbse_sensor_partials', [q, zd, zdd, u, t, p],
                       [h, ca.densify(H_z), ca.densify(H_zd), ca.densify(H_zdd)], {'cse': True})


def _outputs(system: MechanismSystem, model: SensorModel, parameters: ca.SX) -> tuple[ca.Function, list[ca.SX]]:
    """``(q, qd, u, t, p, qdd, lam)`` -> outputs and their derivatives by q, qd, qdd and lam; these as expressions."""
    slopes = [ca.jacobian(model.output, symbol) for symbol in (system.q, system.qd, model.qdd, model.lam)]
    arguments = [system.q, system.qd, system.u, system.t, parameters, model.qdd, model.lam]
    return ca.Function('outputs', arguments, [model.output, *slopes]), slopes
