# SPDX-License-Identifier: Apache-2.0
"""Sensors as functions of position, velocity and acceleration of the independent coordinates, each on its own."""

from __future__ import annotations

import casadi as ca

from ..mechanism.assembly import MechanismSystem
from .sensor_equations import state_sensors
from .state_equations import Maps, Pieces, is_small


def sensor_partials(system: MechanismSystem, parameters: ca.SX, scalar: bool | None = None) -> ca.Function:
    """Function ``(q, zd, zdd, u, t, p) -> (h, H_z, H_zd, H_zdd)``; the derivatives (s, g) are along the constraints.

    ``zdd`` need not be the model's acceleration: error-state filters estimate its error (paper 001, section 7.3).
    ``system`` as in ``sensor_function``. Raises SettingError.
    """
    model = state_sensors(system)
    scalar = is_small(system) if scalar is None else scalar
    kind = ca.SX if scalar else ca.MX
    g = len(system.independent)
    q, zd, zdd, u, t, p = (kind.sym(name, size) for name, size in (
        ('q', system.n), ('zd', g), ('zdd', g), ('u', system.u.numel()), ('t', 1), ('p', parameters.numel())))
    pieces = Pieces(system, parameters)
    J, b = pieces.constraints(q, t, p)
    maps = Maps.of(system, J, scalar)
    R = maps.R
    qd = R @ zd + maps.S(b)
    M, Q, _, c = pieces.dynamics(q, qd, u, t, p)
    qdd = R @ zdd + maps.S(c)
    lam = maps.S_transposed(Q - M @ qdd)
    G_q, G_qd, H_q, H_qd, rate_q = pieces.tangents(q, qd, u, t, p, qdd, lam)
    symbols = [system.q, system.qd, model.qdd, model.lam]
    slopes = [ca.jacobian(model.output, symbol) for symbol in symbols]
    outputs = ca.Function('outputs', [system.q, system.qd, system.u, system.t, parameters, model.qdd, model.lam],
                          [model.output, *slopes])
    h, h_q, h_qd, h_qdd, h_lam = outputs(q, qd, u, t, p, qdd, lam)
    along = -maps.S(rate_q @ R)
    free = maps.S(H_q @ R + H_qd @ along)                  # of qdd with z, at constant zdd
    free_rate = maps.S(H_qd @ R)
    H_z = h_q @ R + h_qd @ along + h_qdd @ free
    H_zd = h_qd @ R + h_qdd @ free_rate
    H_zdd = h_qdd @ R
    if slopes[3].nnz():
        H_z = H_z + h_lam @ maps.S_transposed(G_q @ R + G_qd @ along - M @ free)
        H_zd = H_zd + h_lam @ maps.S_transposed(G_qd @ R - M @ free_rate)
        H_zdd = H_zdd - h_lam @ maps.S_transposed(M @ R)
    return ca.Function('mbse_sensor_partials', [q, zd, zdd, u, t, p],
                       [h, ca.densify(H_z), ca.densify(H_zd), ca.densify(H_zdd)], {'cse': True})
