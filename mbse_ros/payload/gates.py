# SPDX-License-Identifier: Apache-2.0
"""Gates of the mass: which equations may weigh, and which gate is closed where none may.

The friction of a cylinder at rest is anything between two bounds, for as long as it rests: a mean does not remove it.
So a cylinder that rests, is at an end of its stroke or accelerates too much takes its equation out of the least
squares, and the others weigh on; a sample is rejected where none is left, or just where the set of them changes, for
what stopped or started there was not steady.

``StateGates`` are these by the states alone, for an observer that estimates motion and mass together: all except
acceleration, which closes no gate there.
"""

from __future__ import annotations

from math import isfinite

import casadi as ca
import numpy as np

from ..compiled import Scan
from ..compiled.cache import built
from ..errors import PositionProblemError
from ..filters.hydraulic_model import coordinate_scale
from ..filters.hydraulic_state import state_names
from ..machine import Machine
from ..machine.machine import NEWTON
from .inverse_dynamics import LARGEST_WRITTEN, residual, weighing
from .mass import PayloadSettings

GATES = ('open', 'outside the stroke', 'not observable', 'too slow', 'accelerating')
GATE_NUMBERS = 5
SURE = 1.2          # transition velocities of a cylinder's friction, from which its sign is known to a part in 3,000
UNSURE = 0.01       # m/s^2 at a piston


def gate_numbers(machine: Machine, settings: PayloadSettings) -> list[float]:
    """The gates (5,): speed, m/s, 0: by the file, and in standard deviations, share of acceleration, information,
    1/kg2, of several masses in ranges of their limits, margin, m."""
    low, high = (0.0, 1.0) if machine.description.payloads else machine.payload_data.limits
    return [settings.min_speed, settings.significance, settings.max_acceleration_share,
            (settings.max_sample_share * (high - low)) ** -2, settings.stroke_margin]


def slowest(machine: Machine, stated: float) -> list[float]:
    """Speeds (cylinders,), m/s, from which friction is trusted: as ``stated``, or, where that is 0, of the file."""
    return [stated or SURE * velocity for velocity in machine.actuators.transitions]


def margins(machine: Machine, stated: float) -> list[float]:
    """Distances (cylinders,), m, from the ends of the stroke in which forces are not trusted: at least the damper's
    length."""
    return [max(stated, length) for length in machine.actuators.ends]


def too_slow(machine: Machine, name: str, stated: float) -> str:
    """What is wrong with a slowest speed, m/s, in the setting ``name``, by the friction of the file; '' if nothing."""
    found = dict(zip(machine.actuators.names, machine.actuators.transitions))
    slow = {cylinder: velocity for cylinder, velocity in found.items() if 0.0 < stated < velocity}
    if not slow:
        return ''
    worst = max(slow, key=lambda cylinder: slow[cylinder])
    file = machine.description.file
    return (f'{name}: {stated:g} m/s is below the speed up to which friction changes its sign, {slow[worst]:g} m/s '
            f'({file}: cylinders.{worst}.friction.transition_velocity): masses weighed between are wrong by friction; '
            f'0 takes {SURE:g} times that of each cylinder')


def passed_gates(machine: Machine, concerns: np.ndarray, n: int) -> ca.Function:
    """``(pistons, speeds, rates, share, slopes, P, gates)`` -> (equations, 3): 1 for a gate passed as all before it.
    ``slopes`` are of all equations by the first mass, then by the next.

    In this order: all cylinders of the equation inside their strokes, all moving, the mass not accelerated too much,
    both beyond what the observer's covariance explains.
    """
    count, stroke = len(machine.actuators), ca.DM(machine.stroke)
    pistons, speeds, rates = ca.SX.sym('s', count), ca.SX.sym('sd', count), ca.SX.sym('rates', count, n)
    share, P, gates = ca.SX.sym('share', len(concerns)), ca.SX.sym('P', n, n), ca.SX.sym('gates', GATE_NUMBERS)
    speed = ca.if_else(gates[0] > 0, gates[0], ca.DM(slowest(machine, 0.0)))
    margin = ca.fmax(gates[4], ca.DM(margins(machine, 0.0)))
    masses = len(machine.description.every_payload)
    slopes = ca.SX.sym('slopes', masses * len(concerns), n)
    inside = ca.logic_and(pistons - stroke[:, 0] > margin, stroke[:, 1] - pistons > margin)
    spread = ca.sum2((rates @ P) * rates)
    moving = ca.logic_and(ca.fabs(speeds) >= speed, speeds ** 2 >= gates[1] ** 2 * spread)
    uncertain = ca.sum2((slopes @ P) * slopes)
    if masses > 1:
        uncertain = ca.sum2(ca.reshape(uncertain, len(concerns), masses))
    calm = share ** 2 <= gates[2] ** 2 + gates[1] ** 2 * uncertain
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


def gates_step(machine: Machine, variance: np.ndarray) -> ca.Function:
    """Gates in one state ``(x, X, p) -> (x+, y)``; ``variance`` (nx,) of X.

    No mass is computed, so the state counts as exact except for the accelerations, by whose uncertainty the equations
    are weighed against each other: of the equations of motion only their derivatives by mass and accelerations are
    left, a tenth of the work.

    ``x`` = dependent coordinates, start of the position problem; ``p`` = gates, as in ``sample_step``, and uncertain
    parameters; ``y`` = gate that is closed (0: none), information, 1/kg2: not finite where the position problem has no
    solution. The weights are taken at the lower limit of the payload.
    """
    r, parameters, a = residual(machine), machine.parameters.symbol, len(machine.weighing)
    n, low = r.X.numel(), machine.payload_data.limits[0]
    near, P, places = r.near.numel(), ca.SX(ca.DM(np.diag(variance))), np.flatnonzero(variance).tolist()
    rows = ca.SX(n, a)
    rows[places, :] = ca.jacobian(r.g0 + r.G1 * low, r.X[places]).T
    arguments = [r.near, r.X, parameters]
    passed = passed_gates(machine, r.concerns, n)
    gates = ca.SX.sym('gates', GATE_NUMBERS)
    found = passed(r.pistons, r.speeds, r.rates, r.share, r.slopes, P, gates)
    information = weighing(machine, n, a)(0, r.G1, rows, P, found)[0]
    closed = closed_gate(a)(found, 0, information, gates)[0]
    accelerating = GATES.index('accelerating')
    judged = ca.Function('judged', [*arguments, gates], [ca.if_else(closed == accelerating, 0, closed), information],
                         {'cse': True})
    close = ca.Function('close', arguments, [machine.closed(r.near, r.X[:len(machine.coordinates)])[
        machine.system.dependent]])
    kind = ca.SX if judged.n_instructions() < LARGEST_WRITTEN else ca.MX
    x, X, p = kind.sym('x', near), kind.sym('X', n), kind.sym('p', GATE_NUMBERS + parameters.numel())
    solved = close(x, X, p[GATE_NUMBERS:])
    y = ca.vertcat(*judged(solved, X, p[GATE_NUMBERS:], p[:GATE_NUMBERS]))
    return ca.Function('mbse_gates', [x, X, p], [solved, y], ['x', 'u', 'p'], ['x_next', 'y'], {'cse': True})


class StateGates:
    """Gates of one machine; keeps the coordinates between segments as the start of the position problem."""

    def __init__(self, machine: Machine, backend: str = 'auto') -> None:
        self.machine, self._count = machine, len(state_names(machine)[0])
        variance = np.zeros(self._count)
        scale = [np.nan if lever is None else lever for lever in coordinate_scale(machine)]
        for k in machine.actuated:
            variance[2 * len(machine.coordinates) + k] = (UNSURE / scale[k]) ** 2
        made_of = 'gates', machine.made_of, variance.tobytes().hex()
        self.function = built(made_of, lambda: gates_step(machine, variance))
        self._scan = Scan(self.function, backend)
        self._p = np.concatenate([np.zeros(GATE_NUMBERS), machine.parameters.mean])
        self.reset()

    def configure(self, settings: PayloadSettings) -> None:
        """Set the gates."""
        self._p[:GATE_NUMBERS] = gate_numbers(self.machine, settings)

    def reset(self) -> None:
        """Forget the coordinates."""
        self._x: np.ndarray | None = None

    def closed(self, mean: np.ndarray) -> np.ndarray:
        """Numbers (n,) of the gates, as in ``GATES``, that are closed in states (n, nx), SI; 0: none.

        Raises PositionProblemError where the cylinders cannot reach.
        """
        if self._x is None:
            q = self.machine.position(mean[0, :len(self.machine.coordinates)])
            self._x = q[self.machine.system.dependent]
        self._x, y = self._scan(self._x, mean[:, :self._count], self._p)
        if not isfinite(y[-1, 1]):
            self._x = None
            raise PositionProblemError(float('nan'), NEWTON, mean[-1, :len(self.machine.coordinates)])
        return y[:, 0]
