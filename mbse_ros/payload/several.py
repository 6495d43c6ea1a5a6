# SPDX-License-Identifier: Apache-2.0
"""Several unknown masses from one state: Newton's step over the vector of masses, and which of them it finds.

Pyrhönen et al., mass estimation, Eqs. 55 to 57. The residual ``g0 + G1 m`` of the equations of motion is affine in the
masses m (k,): ``G1`` is its exact Jacobian. With as many equations as masses the step is Newton's; with more it is
least squares, weighted by the covariance of g. With fewer, or in a pose in which masses press alike on all cylinders,
only sums of masses are seen: ``shown``, ``seen_words``.

All in ranges of the masses' limits, each mass has a prior so wide (``PRIOR``) that it counts for nothing: a mass is
found where what remains of its variance is not that of the prior. Each mass then goes its own way: gates, guard time,
filter and interval are those of ``paper.PaperEstimator``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import casadi as ca
import numpy as np

from ..description.machine_parts import Payload
from ..filters.observability.mechanism import echelon
from ..machine import Machine
from .gates import GATE_NUMBERS, GATES
from .mass import NORMAL

PRIOR = 1e-10       # information on a mass, in ranges of its limits: a deviation of 100,000 of them
LEFT = 1e-6         # share of the prior's variance that is left of a mass that is found: the others, anywhere within
                    # their limits, move it by a thousandth of its own at most
KNOWN = (2.0 * NORMAL) ** 2     # least information on a sum that is shown: its 95 % interval is a range of the limits
STEPS = 2           # of Newton's iteration: the second takes away what the prior leaves


def solved(machine: Machine, n: int, a: int) -> ca.Function:
    """``(g0, G1, J_X', P, passed, trusted before, gates) -> (information, information times mass, rows, masses within
    reason, closed, trusted)`` for k masses.

    ``passed`` (a, 3): see ``gates.passed_gates``. ``information`` (k,), 1/kg2, of each mass with the others unknown, 0
    where it is not found; ``rows`` (a, k): that times the derivatives of the masses by -g; ``closed`` (k,): number of
    the gate, as in ``GATES``: the first after which the equations that are left do not find the mass; ``trusted`` (a,)
    as in ``gates.closed_gate``.
    """
    low, span = _limits(machine)
    k = low.numel()
    g0, G1, rows, P = ca.SX.sym('g0', a), ca.SX.sym('G1', a, k), ca.SX.sym('rows', n, a), ca.SX.sym('P', n, n)
    passed, before, gates = ca.SX.sym('passed', a, 3), ca.SX.sym('before', a), ca.SX.sym('gates', GATE_NUMBERS)
    covariance, J = rows.T @ P @ rows, G1 @ ca.diag(span)       # the Jacobian of g, Eq. 56

    def found(some: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
        """Of the equations ``some`` (a,): information of each mass, 0 where it is not found, covariance of all, L, and
        J' W."""
        own = ca.diag(some)
        weighted = ca.solve(own @ covariance @ own + ca.diag(1 - some), own @ J).T @ own
        L = weighted @ J
        C = ca.inv(L + PRIOR * ca.SX.eye(k))
        left = ca.diag(C)
        return ca.if_else(ca.logic_and(left > 0, PRIOR * left <= LEFT), 1 / left, 0), C, L, weighted

    def shows(some: ca.SX) -> ca.SX:
        return ca.logic_and(found(some)[0] > 0, found(some)[0] >= gates[3])
    none, trusted = ca.SX.ones(a), passed[:, 2]
    information, C, L, weighted = found(ca.if_else(ca.sum1(trusted) > 0, trusted, none))
    h, m = -weighted @ g0, low / span
    for _ in range(STEPS):
        m = m + C @ (h - L @ m)
    changed = ca.logic_and(ca.mmax(before) > 0, ca.mmax(ca.fabs(trusted - before)) > 0)
    calm = ca.logic_and(shows(trusted), ca.logic_not(changed))
    closed = ca.if_else(calm, ca.SX.zeros(k), GATES.index('accelerating'))
    for name, some in (('too slow', passed[:, 1]), ('outside the stroke', passed[:, 0]), ('not observable', none)):
        closed = ca.if_else(shows(some), closed, GATES.index(name))
    within = ca.fmin(ca.fmax(span * m, low - span), low + 2 * span)
    by_g = (ca.diag(information / span) @ C @ weighted).T
    return ca.Function('solved', [g0, G1, rows, P, passed, before, gates],
                       [information / span ** 2, ca.if_else(information > 0, information * m / span, 0), by_g, within,
                        closed, trusted], {'cse': True})


def shown(machine: Machine, a: int) -> ca.Function:
    """``(g0, G1, C, trusted) -> (L, h)`` of k masses: information (k, k) of the trusted equations, and that times the
    masses (k,), in ranges of the limits; zeros where none is trusted. ``C`` (a, a): covariance of g by the state and by
    the uncertain numbers of the file."""
    _, span = _limits(machine)
    g0, G1, C = ca.SX.sym('g0', a), ca.SX.sym('G1', a, span.numel()), ca.SX.sym('C', a, a)
    trusted = ca.SX.sym('trusted', a)
    own = ca.diag(trusted)
    J = own @ G1 @ ca.diag(span)
    weighted = ca.solve(own @ C @ own + ca.diag(1 - trusted), J).T
    return ca.Function('shown', [g0, G1, C, trusted], [weighted @ J, -weighted @ (trusted * g0)], {'cse': True})


def _limits(machine: Machine) -> tuple[ca.DM, ca.DM]:
    """Lower limits (k,) of the masses and their ranges (k,), kg."""
    limits = np.array([item.limits for item in machine.description.every_payload.values()])
    return ca.DM(limits[:, 0]), ca.DM(limits[:, 1] - limits[:, 0])


def seen_words(payloads: Mapping[str, Payload], L: np.ndarray, h: np.ndarray) -> str:
    """The sums of masses that a pose shows, with the half-width of their 95 % intervals, in words, such as 'boom +
    1.52 tip = 312 +- 15 kg'; '' where it shows none to within the limits; ``L`` (k, k), ``h`` (k,): see ``shown``."""
    span = np.array([item.limits[1] - item.limits[0] for item in payloads.values()])
    if not (np.isfinite(L).all() and np.isfinite(h).all()):
        return ''
    values, vectors = np.linalg.eigh(L)
    V, known = vectors[:, values > KNOWN], values[values > KNOWN]
    masses, root, sums = V @ (V.T @ h / known), V / np.sqrt(known), echelon(V)
    return ', '.join(_sum_words(list(payloads), column / span, float(column @ masses), float(
        np.linalg.norm(root.T @ column)), span) for column in sums.T)


def _sum_words(names: Sequence[str], shares: np.ndarray, mass: float, stddev: float, span: np.ndarray) -> str:
    """The sum of masses times ``shares`` (k,), which is ``mass`` with its ``stddev``, kg; the first name with the
    factor 1."""
    size = np.abs(shares * span)
    own = np.where(size > np.sqrt(LEFT) * size.max(), shares, 0.0)
    factor, text = own[np.flatnonzero(own)[0]], ''
    for name, share in zip(names, own / factor):
        if share:
            times = '' if f'{abs(share):.3g}' == '1' else f'{abs(share):.3g} '
            text += (f' {"-" if share < 0 else "+"} ' if text else '') + times + name
    return f'{text} = {mass / factor:.4g} +- {NORMAL * stddev / abs(factor):.3g} kg'
