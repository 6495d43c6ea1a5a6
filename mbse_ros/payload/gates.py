# SPDX-License-Identifier: Apache-2.0
"""Gates of the mass: which equations may weigh, and which gate is closed where none may."""

from __future__ import annotations

import casadi as ca
import numpy as np

from ..machine import Machine
from .payload_settings import PayloadSettings

GATES = ('open', 'outside the stroke', 'not observable', 'too slow', 'accelerating')
GATE_NUMBERS = 5


def gate_numbers(machine: Machine, settings: PayloadSettings) -> list[float]:
    """The gates (5,): speed, m/s, and in standard deviations, share of acceleration, information, 1/kg2, margin, m."""
    low, high = machine.payload_data.limits
    return [settings.min_speed, settings.significance, settings.max_acceleration_share,
            (settings.max_sample_share * (high - low)) ** -2, settings.stroke_margin]


def passed_gates(machine: Machine, concerns: np.ndarray, n: int) -> ca.Function:
    """``(pistons, speeds, rates, share, slopes, P, gates)`` -> (equations, 3): 1 for a gate passed as all before it.

    In this order: all cylinders of the equation inside their strokes, all moving, the mass not accelerated too much,
    both beyond what the observer's covariance explains.
    """
    count, stroke = len(machine.cylinders), ca.DM(machine.stroke)
    pistons, speeds, rates = ca.SX.sym('s', count), ca.SX.sym('sd', count), ca.SX.sym('rates', count, n)
    share, P, gates = ca.SX.sym('share', len(concerns)), ca.SX.sym('P', n, n), ca.SX.sym('gates', GATE_NUMBERS)
    slopes = ca.SX.sym('slopes', len(concerns), n)
    inside = ca.logic_and(pistons - stroke[:, 0] > gates[4], stroke[:, 1] - pistons > gates[4])
    spread = ca.sum2((rates @ P) * rates)
    moving = ca.logic_and(ca.fabs(speeds) >= gates[0], speeds ** 2 >= gates[1] ** 2 * spread)
    calm = share ** 2 <= gates[2] ** 2 + gates[1] ** 2 * ca.sum2((slopes @ P) * slopes)
    found = []
    for i, own in enumerate(concerns):
        in_stroke, moves = (ca.mmin(item[np.flatnonzero(own).tolist()]) for item in (inside, moving))
        found.append([in_stroke, in_stroke * moves, in_stroke * moves * calm[i]])
    return ca.Function('gates', [pistons, speeds, rates, share, slopes, P, gates],
                       [ca.vertcat(*(ca.horzcat(*row) for row in found))])


def closed_gate(a: int) -> ca.Function:
    """``(passed, trusted before, information, gates)`` -> (number of the first gate that no equation passes, as in
    ``GATES``, 0: none; trusted equations (a,), 0 where a gate is closed).

    Where the set of trusted equations is another than in the sample before, and that was none, it is 'accelerating'.
    """
    passed, before = ca.SX.sym('passed', a, 3), ca.SX.sym('before', a)
    information, gates = ca.SX.sym('information'), ca.SX.sym('gates', GATE_NUMBERS)
    some = ca.mmax(passed[:, 0]), ca.mmax(passed[:, 1]), ca.mmax(passed[:, 2])
    changed = ca.logic_and(ca.mmax(before) > 0, ca.mmax(ca.fabs(passed[:, 2] - before)) > 0)
    tests = (some[0], information >= gates[3], some[1], ca.logic_and(some[2], ca.logic_not(changed)))
    closed = ca.SX(0)
    for number, test in reversed(list(enumerate(tests, 1))):
        closed = ca.if_else(test, closed, number)
    trusted = passed[:, 2]
    return ca.Function('gate', [passed, before, information, gates], [closed, trusted])
