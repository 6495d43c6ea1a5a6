# SPDX-License-Identifier: Apache-2.0
"""Sensors as functions of the state: outputs and their exact Jacobian along the constraints."""

from __future__ import annotations

import casadi as ca

from ..errors import SettingError
from ..mechanism.assembly import MechanismSystem
from ..mechanism.sensors import SensorModel, sensor_model
from .state_equations import Expression, Maps, Pieces, is_small, state_function, state_symbols


def state_sensors(system: MechanismSystem) -> SensorModel:
    """Sensors of a system from which redundant rows may have been taken.

    Raises SettingError for the force of a driver whose motion the other constraints imply: it is not determined.
    """
    for sensor in system.description.sensors.values():
        if sensor.kind == 'force' and f'drivers.{sensor.driver}' not in system.rows:
            raise SettingError(f'sensors.{sensor.name}.driver', sensor.driver,
                               'a driver whose motion no other constraint implies: the force is not determined')
    return sensor_model(system)


def sensor_function(system: MechanismSystem, parameters: ca.SX, scalar: bool | None = None) -> ca.Function:
    """Function ``(q, zd, u, t, p) -> (h, H)`` of the state ``X = [z, zd]``.

    ``h`` (s,) the channels of ``state_sensors(system)``, SI; ``H`` (s, 2g) = dh/dX, the total derivative along the
    constraints: also through the accelerations and the multipliers. ``system`` has independent coordinates and no
    redundant rows (``Partitioned.system``); ``scalar`` as in ``state_function``. Raises SettingError.

    With ``dq = R dz`` and ``dqd = R dzd - S (d(J qd - b)/dq R) dz``, and G and H of ``state_function``:
    ``dqdd = R dzdd + S dH``, ``dlam = S' (dG - M dqdd)``.
    """
    model = state_sensors(system)
    if scalar is None:
        scalar = is_small(system)
    kind = ca.SX if scalar else ca.MX
    g = len(system.independent)
    q, zd, u, t, p = state_symbols(system, parameters, kind)
    states = [system.q, system.qd, model.qdd, model.lam]
    partial = [ca.jacobian(model.output, symbol) for symbol in states]
    outputs = ca.Function('outputs', [system.q, system.qd, system.u, system.t, parameters, model.qdd, model.lam],
                          [model.output, *partial])
    state = state_function(system, parameters, scalar)
    zdd, A, _, qdd, lam, qd = state(q, zd, u, t, p)
    h, *h_x = outputs(q, qd, u, t, p, qdd, lam)
    pieces = Pieces(system, parameters)
    J, _ = pieces.constraints(q, t, p)
    maps = Maps.of(system, J, scalar)
    M = pieces.dynamics(q, qd, u, t, p)[0]
    tangents = pieces.tangents(q, qd, u, t, p, qdd, lam)
    H = sum((slope @ change for slope, change, exact in zip(h_x, _changes(maps, M, tangents, A[g:, :]), partial)
             if exact.nnz()), kind(h.numel(), 2 * g))
    return ca.Function('mbse_sensors', [q, zd, u, t, p], [h, ca.densify(H)], ['q', 'zd', 'u', 't', 'p'], ['h', 'H'],
                       {'cse': True})


def _changes(maps: Maps, M: Expression, tangents: list[Expression], lower: Expression) -> list[Expression]:
    """Changes of q, qd, qdd (n, 2g) and lam (m, 2g) with the state; ``lower`` (g, 2g) is that of zdd."""
    R, (G_q, G_qd, H_q, H_qd, rate_q) = maps.R, tangents
    dq = ca.horzcat(R, type(R)(*R.shape))
    dqd = ca.horzcat(-maps.S(rate_q @ R), R)
    dqdd = R @ lower + maps.S(H_q @ dq + H_qd @ dqd)
    dlam = maps.S_transposed(G_q @ dq + G_qd @ dqd - M @ dqdd)
    return [dq, dqd, dqdd, dlam]
