# SPDX-License-Identifier: Apache-2.0
"""What a filter predicts of a position that it does not know: that it rests where it was last known.

The derivatives of the model hold near the mean. Where a position is known no better than ``UNKNOWN`` they are invalid,
and a covariance that follows them grows to thousands of rad/s, which the next sample then turns into a speed; a force
estimated long ago drives the mean round and round. So the mean is held still, without the forces, and the squares of
what it leaves out go into the covariance; the velocity's error is forgotten with the time constant ``RELAX`` while its
variance stays, and the position's grows as the root of time. The next sample finds it again.
"""

from __future__ import annotations

from functools import lru_cache

import casadi as ca

from .problem import Problem

UNKNOWN = 3.0       # standard deviation of a position, rad or m
RELAX = 1.0         # s


def stood_still(problem: Problem, P: ca.SX, q: ca.SX, ahead: ca.SX, zd: ca.SX, F: ca.SX, t: ca.SX, dt: ca.SX, p: ca.SX
                ) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX, ca.SX]:
    """``(lost, q, zd, F, Sigma)`` of a prediction from ``P`` (l, l) and ``q`` (n,) to the coordinates ``ahead`` and
    velocities ``zd`` (g,) with the transition ``F`` (l, l), of which the first 2g are z and zd.

    ``lost`` (g,) is 1 where a position was unknown, ``Sigma`` (l, l) what that adds to the plant noise. Where none was
    all is as it came.
    """
    z, end = (problem.independent(vector) for vector in (q, ahead))
    lost, end, zd, F, Sigma = _standing(problem.g, P.size1())(P, z, end, zd, F, dt)
    held = problem.close(ahead, end, t, p)
    return lost, ca.if_else(ca.sum1(lost) > 0, held, ahead), zd, F, Sigma


@lru_cache(maxsize=64)
def _standing(g: int, size: int) -> ca.Function:
    """``(P, z, z ahead, zd ahead, F, dt) -> (lost, z, zd, F, Sigma)``."""
    P, F, dt = ca.SX.sym('P', size, size), ca.SX.sym('F', size, size), ca.SX.sym('dt')
    z, ahead, zd = (ca.SX.sym(name, g) for name in ('z', 'ahead', 'zd'))
    lost = ca.if_else(ca.diag(P)[:g] > UNKNOWN ** 2, 1.0, 0.0)
    keep, eye, rows, added = ca.exp(-dt / RELAX), ca.SX.eye(size), ca.vertsplit(F), ca.SX.zeros(size)
    for k in range(g):
        rows[k] = ca.if_else(lost[k], eye[k, :] + RELAX * (1 - keep) * eye[g + k, :], rows[k])
        rows[g + k] = ca.if_else(lost[k], keep * eye[g + k, :], rows[g + k])
        added[g + k] = ca.if_else(lost[k], (1 - keep ** 2) * P[g + k, g + k] + zd[k] ** 2, 0.0)
    outputs = [lost, ca.if_else(lost, z, ahead), ca.if_else(lost, 0.0, zd), ca.vertcat(*rows), ca.diag(added)]
    return ca.Function('standing', [P, z, ahead, zd, F, dt], [ca.densify(part) for part in outputs])


@lru_cache(maxsize=64)
def dropped(g: int, number: int, size: int, first: int) -> ca.Function:
    """``(gone, values, B) -> (values, Sigma)``: ``values`` (number,) without those that are gone, and what that adds to
    the noise (size, size) of the g states from ``first`` on, by their effects ``B values``, B (g, number)."""
    gone, values, B = ca.SX.sym('gone', number), ca.SX.sym('values', number), ca.SX.sym('B', g, number)
    effect, rest = B @ ca.if_else(gone, values, 0.0), size - first - g
    Sigma = ca.diagcat(ca.SX(first, first), effect @ effect.T, ca.SX(rest, rest))
    return ca.Function('dropped', [gone, values, B], [ca.if_else(gone, 0.0, values), ca.densify(Sigma)])
