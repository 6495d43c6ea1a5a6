# SPDX-License-Identifier: Apache-2.0
"""Andrews' squeezing mechanism: the published solution, and its seven angles' equations written out by hand."""

import numpy as np
import pytest

from mbse_ros.dynamics.model import load_model
from mbse_ros.dynamics.motion import simulate

# Test Set for IVP Solvers, t = 0.03 s: angles and their rates; beta is 1.1e-9 off, as all solutions below say
PUBLISHED = {'beta': (15.81077119629904, 1139.920302151208), 'gamma': (0.04082224013073101, 11.03291221937134),
             'delta': (0.5244099658805304, 0.5735699284790808), 'epsilon': (1.048080741042263, 0.3231791658026955)}
A, B, C = (-0.06934, -0.00227), (-0.03635, 0.03273), (0.014, 0.072)


def angles(motion):
    """The four angles of bodies on the ground, and their rates, out of the points at the end."""
    P, H, E = ([np.array([motion.of(f'{name}.{axis}', k)[-1] for axis in 'xy']) for k in (0, 1)] for name in 'PHE')
    found = {'beta': (motion.of('beta')[-1], motion.of('beta', 1)[-1])}
    quarter = np.pi / 2
    for name, (at, rate), pivot, turned in (('gamma', P, B, quarter), ('epsilon', H, A, quarter), ('delta', E, A, 0.0)):
        x, y = at - pivot
        found[name] = np.arctan2(y, x) + turned, (x * rate[1] - y * rate[0]) / (x ** 2 + y ** 2)
    return found


def test_it_ends_where_it_is_published():
    """1.1e-9 beside the published angle of the crank, at any tight tolerance and in other coordinates."""
    model = load_model('andrews')
    motion = simulate(model, 0.03, 0.03, 'dop853', rtol=1e-12, atol=1e-12)
    for name, found in angles(motion).items():
        assert found[0] == pytest.approx(PUBLISHED[name][0], abs=2e-9)
        assert found[1] == pytest.approx(PUBLISHED[name][1], abs=5e-7)
    other = simulate(load_model('andrews', coordinates='reference_point'), 0.03, 0.03, 'dop853', rtol=1e-12, atol=1e-12)
    assert motion.of('beta')[-1] == pytest.approx(other.of('beta')[-1], abs=2e-11)
    assert np.abs(motion.balance).max() < 1e-11 and model.degrees_of_freedom == 1


def test_it_ends_where_the_equations_by_hand_end():
    """Hairer and Wanner, Solving Ordinary Differential Equations II, Eqs. VII.7.5 to 7.7, no line of ours in it."""
    from scipy.integrate import solve_ivp
    q0 = np.array([-0.0617138900142764496358948458001, 0.0, 0.455279819163070380255912382449,
                   0.222668390165885884674473185609, 0.487364979543842550225598953530,
                   -0.222668390165885884674473185609, 1.23054744454982119249735015568])
    start = np.concatenate([q0, np.zeros(7)])
    q = solve_ivp(rates_by_hand, (0.0, 0.03), start, 'DOP853', rtol=1e-12, atol=1e-13).y[:, -1]
    ours = simulate(load_model('andrews'), 0.03, 0.03, 'dop853', rtol=1e-12, atol=1e-12)
    assert ours.of('beta')[-1] == pytest.approx(q[0], abs=5e-11)
    for name, value in zip(('gamma', 'delta', 'epsilon'), q[[2, 4, 6]]):
        assert angles(ours)[name][0] == pytest.approx(value, abs=1e-11)


def rates_by_hand(t, y):
    """Rates (14,) of the angles beta, Theta, gamma, Phi, delta, Omega, epsilon and of their rates."""
    q, v = y[:7], y[7:]
    (s1, s2, s3, s4, s5, s6, s7), (c1, c2, c3, c4, c5, c6, c7) = np.sin(q), np.cos(q)
    s12, c12, s45, c45, s67, c67 = (f(q[i] + q[j]) for i, j in ((0, 1), (3, 4), (5, 6)) for f in (np.sin, np.cos))
    rr, ra, d, da, e, ea, zf, fa, u, zt, ss, sc, sd = (
        0.007, 0.00092, 0.028, 0.0115, 0.02, 0.01421, 0.02, 0.01421, 0.04, 0.04, 0.035, 0.018, 0.02)
    m = 0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498
    inertia = 2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5
    squares = {3: 0.01874 ** 2 + 0.01043 ** 2, 5: 0.02308 ** 2 + 0.00916 ** 2, 7: 0.01228 ** 2 + 0.00449 ** 2}
    M, f = np.zeros((7, 7)), np.zeros(7)
    M[0, 0] = m[0] * ra ** 2 + m[1] * (rr ** 2 - 2 * da * rr * c2 + da ** 2) + inertia[0] + inertia[1]
    M[0, 1] = M[1, 0] = m[1] * (da ** 2 - da * rr * c2) + inertia[1]
    M[1, 1] = m[1] * da ** 2 + inertia[1]
    M[2, 2] = m[2] * squares[3] + inertia[2]
    M[3, 3] = m[3] * (e - ea) ** 2 + inertia[3]
    M[3, 4] = M[4, 3] = m[3] * ((e - ea) ** 2 + zt * (e - ea) * s4) + inertia[3]
    M[4, 4] = m[3] * (zt ** 2 + 2 * zt * (e - ea) * s4 + (e - ea) ** 2) + m[4] * squares[5] + inertia[3] + inertia[4]
    M[5, 5] = m[5] * (zf - fa) ** 2 + inertia[5]
    M[5, 6] = M[6, 5] = m[5] * ((zf - fa) ** 2 - u * (zf - fa) * s6) + inertia[5]
    M[6, 6] = m[5] * ((zf - fa) ** 2 - 2 * u * (zf - fa) * s6 + u ** 2) + m[6] * squares[7] + inertia[5] + inertia[6]
    x, y_ = sd * c3 + sc * s3 + B[0] - C[0], sd * s3 - sc * c3 + B[1] - C[1]
    length = np.hypot(x, y_)
    force = -4530.0 * (length - 0.07785) / length
    f[0] = 0.033 - m[1] * da * rr * v[1] * (v[1] + 2 * v[0]) * s2
    f[1] = m[1] * da * rr * v[0] ** 2 * s2
    f[2] = force * (x * (sc * c3 - sd * s3) + y_ * (sd * c3 + sc * s3))
    f[3] = m[3] * zt * (e - ea) * v[4] ** 2 * c4
    f[4] = -m[3] * zt * (e - ea) * v[3] * (v[3] + 2 * v[4]) * c4
    f[5] = -m[5] * u * (zf - fa) * v[6] ** 2 * c6
    f[6] = m[5] * u * (zf - fa) * v[5] * (v[5] + 2 * v[6]) * c6
    # P by the crank (K1, K2), less P by K3, by K5 and K4, by K7 and K6
    crank = [[-rr * s1 + d * s12, d * s12], [rr * c1 - d * c12, -d * c12]]
    J, rate = np.zeros((6, 7)), np.zeros(6)
    for row in (0, 2, 4):
        J[row:row + 2, :2] = crank
        rate[row] = -rr * c1 * v[0] ** 2 + d * c12 * (v[0] + v[1]) ** 2
        rate[row + 1] = -rr * s1 * v[0] ** 2 + d * s12 * (v[0] + v[1]) ** 2
    J[:2, 2] = -ss * c3, -ss * s3
    J[2:4, 3], J[2:4, 4] = (-e * c45, -e * s45), (-e * c45 + zt * s5, -e * s45 - zt * c5)
    J[4:, 5], J[4:, 6] = (zf * s67, -zf * c67), (zf * s67 - u * c7, -zf * c67 - u * s7)
    one, two = (v[3] + v[4]) ** 2, (v[5] + v[6]) ** 2
    rate += [ss * s3 * v[2] ** 2, -ss * c3 * v[2] ** 2, e * s45 * one + zt * c5 * v[4] ** 2,
             -e * c45 * one + zt * s5 * v[4] ** 2, zf * c67 * two + u * s7 * v[6] ** 2,
             zf * s67 * two - u * c7 * v[6] ** 2]
    found = np.linalg.solve(np.block([[M, J.T], [J, np.zeros((6, 6))]]), np.concatenate([f, -rate]))
    return np.concatenate([v, found[:7]])
