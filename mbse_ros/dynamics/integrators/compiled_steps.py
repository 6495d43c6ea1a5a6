# SPDX-License-Identifier: Apache-2.0
"""Many steps in one compiled call, where nothing has to be decided on the way.

A step of a four-bar takes less than a microsecond of arithmetic, and Python round it seventy. So steps run in compiled
code; those that need a decision (the position problem does not end in two Newton steps, a dead point may be near, the
series needs a shorter step) are taken step by step, with the same scheme.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ...compiled import Scan
from ...compiled.compiler import have_compiler, requested
from ...mechanism.assembly import MechanismSystem
from ..partitioned import Partitioned, newton_function, velocity_function
from ..state_equations import Expression, Maps, Pieces, is_small, state_symbols
from .point import LARGEST, TOLERANCE, Field, Point

SHORT = 1000            # steps of a motion, below which it is not worth the compiler
LONGEST = 256           # steps of a call
REVIEWED = 64           # ... where the independent coordinates may be chosen again
FIRST = 8               # ... after one that ended early; each one that does not doubles it
WRITTEN_OUT = 4_000     # scalar operations of the state equations in a step that are written out
UNEXPLAINED = 0.5       # share of a velocity by which a step of stages may miss what its accelerations say
ROUNDED = 1e-9          # ... beside the largest one
STEADY = 0.25           # share by which the distance from a dead point may change in a step

class StepSymbols(NamedTuple):
    """State ``X`` (2g,), its rate ``f`` (2g,) and ``A`` (2g, 2g) = df/dX at the start of a step ``dt``."""

    X: ca.SX
    f: ca.SX
    A: ca.SX
    dt: ca.SX


class Iterate(NamedTuple):
    """What an implicit scheme sees of a step: X and f at its start, X in its iteration with f and A there, ``dt``."""

    X0: ca.SX
    f0: ca.SX
    X: ca.SX
    f: ca.SX
    A: ca.SX
    dt: ca.SX


class Rule(NamedTuple):
    """A scheme: ``advance`` gives X after the step, and a number that must not exceed 1 for it to hold; ``key`` tells
    one from another. ``middle``: where inputs or drivers depend on time, f and A are those in the middle of the step.

    An implicit one has ``correct``, which gives a better X and the number of the X before it, and so many
    ``corrections``, after which the last X must hold as it is. One of Runge and Kutta has ``stages`` after the first,
    each with its shares of the rates before it, and their ``weights`` (then ``advance`` counts for nothing); it takes
    no inputs. ``tangents``: whether it looks at A; else steps do not compute it and have zeros instead.
    """

    key: str
    advance: Callable[[StepSymbols], tuple[ca.SX, ca.SX]]
    correct: Callable[[Iterate], tuple[ca.SX, ca.SX]] | None = None
    corrections: int = 0
    middle: bool = False
    stages: tuple[tuple[float, ...], ...] = ()
    weights: tuple[float, ...] = ()
    tangents: bool = True


class Begin(Enum):
    """Where f and A of a step with inputs or drivers come from.

    ``KEPT``: from the end of the step before; ``AGAIN``: from there too, with inputs that are others in this step;
    ``MIDDLE``: from the middle of the step, at the independent coordinates of its start.
    """

    KEPT = 'kept'
    AGAIN = 'again'
    MIDDLE = 'middle'

    @property
    def share(self) -> float:
        """How far that is before the end of the step, in steps."""
        return 0.5 if self is Begin.MIDDLE else 1.0


class CompiledSteps:
    """Runs of a task's steps by a rule; ``rule(A, dt)`` chooses it at a point."""

    def __init__(self, field: Field, rule: Callable[[np.ndarray, float], Rule]) -> None:
        self._field, self._rule = field, rule
        self._length = self._most = REVIEWED if field.choice.auto else LONGEST

    @staticmethod
    def serve(field: Field) -> bool:
        """Whether the task is long, nothing acts that only Python knows, and there is a compiler."""
        task = field.task
        return ((task.compiled or len(task.times) > SHORT) and task.inputs is None and not task.model.system.driven
                and requested(task.model.backend) != 'vm' and have_compiler())

    def advance(self, point: Point, k: int) -> tuple[Point, int]:
        """From the point at step k - 1 as far as it goes: the point reached and the number of the step after it."""
        times = self._field.task.times
        while k < len(times):
            dt = times[k] - point.t
            rule = self._rule(point.A, dt)
            scan = self._scan(rule)
            if scan is None:
                return point, k
            stop = min(k + self._length, len(times))
            reached = self._run(scan, point, k, stop)
            if reached > k:
                point = self._point(reached - 1)
            if reached < stop:
                self._length = FIRST
                return point, reached
            self._length, k = min(2 * self._length, self._most), reached
            if self._field.choice.auto:
                return point, k         # `march` looks at the choice
        return point, k

    def _scan(self, rule: Rule) -> Scan | None:
        """The compiled step; None where it is too large for the compiler, or that failed (the backend says so)."""
        partition = self._field.choice.partition
        kept, key = partition.kept, f'steps {rule.key}'
        if key not in kept:
            small = affordable_step(partition, rule)
            scan = (Scan(steps_function(partition, rule), self._field.task.model.backend, in_lanes=False)
                    if small else None)     # in lanes it took two to three times as long
            kept[key] = scan if scan is not None and scan.backend == 'c' else None
        return kept[key]

    def _run(self, scan: Scan, point: Point, k: int, stop: int) -> int:
        """Run steps k to stop - 1 and write those that hold; the number of the first that does not, or stop."""
        record, times, model = self._field.record, self._field.task.times, self._field.task.model
        n, m, g = len(point.q), len(point.lam), len(point.f) // 2
        x = np.concatenate([point.q, point.qd, point.qdd, point.A[g:].T.ravel(), [0.0]])
        steps = step_inputs(times[k - 1:stop], 1.0 / self._field.choice.limit)
        _, rows = scan(x, steps, self._field.choice.partition.parameters)      # the first one stays where it is
        rows, holds = rows[1:], rows[1:, -1] > 0.0
        count = len(holds) if holds.all() else int(np.argmin(holds))
        end = k + count
        record.q[k:end], record.qd[k:end], record.qdd[k:end] = (rows[:count, i * n:(i + 1) * n] for i in range(3))
        record.lam[k:end, model.active] = rows[:count, 3 * n:3 * n + m]
        record.u[k:end] = 0.0
        record.evaluations += count
        if count:
            record.last = end - 1
            self._last = rows[count - 1]
        return end

    def _point(self, k: int) -> Point:
        """The point of step k, the last that was written."""
        record, model, z = self._field.record, self._field.task.model, self._field.choice.partition.independent
        q, qd, qdd, g = record.q[k].copy(), record.qd[k].copy(), record.qdd[k].copy(), len(z)
        lower = self._last[3 * len(q) + len(model.active):-1].reshape(2 * g, g).T
        A = np.vstack([np.eye(g, 2 * g, g), lower])
        return Point(float(record.t[k]), np.concatenate([q[z], qd[z]]), np.zeros(len(model.inputs)), q, qd, qdd,
                     record.lam[k, model.active].copy(), np.concatenate([qd[z], qdd[z]]), A)


def affordable_step(partition: Partitioned, rule: Rule, begin: Begin = Begin.KEPT) -> bool:
    """Whether a C compiler turns the step into code in a few seconds."""
    copies = _copies(rule, begin) if _written_out(partition, rule, begin) else 1
    return copies * _operations(partition, rule) <= partition.largest


def _operations(partition: Partitioned, rule: Rule) -> int:
    """Scalar operations of one evaluation in a step."""
    return partition.operations if rule.tangents else partition.motion_operations


def _copies(rule: Rule, begin: Begin) -> int:
    """State equations in a step."""
    return 1 + rule.corrections + (begin is not Begin.KEPT)


def _written_out(partition: Partitioned, rule: Rule, begin: Begin) -> bool:
    """Whether the step is one series of scalar operations; else it calls functions, each of which is compiled once."""
    if not is_small(partition.system):
        return False
    function = partition.function if rule.tangents else partition.motion_function
    operations = _copies(rule, begin) * function.n_instructions()
    if rule.stages:
        operations += len(rule.stages) * partition.rates_function.n_instructions()
    return bool(operations <= WRITTEN_OUT)


def step_inputs(times: np.ndarray, least: float) -> np.ndarray:
    """Series ``(t, dt, least)`` (k, 3) of a scan over times (k,), whose first step stays where it is."""
    return np.stack([times, np.diff(times, prepend=times[0]), np.full(len(times), least)], axis=1)


def steps_function(partition: Partitioned, rule: Rule, begin: Begin | None = None) -> ca.Function:
    """Step ``(x, (t, dt, least), p) -> (x, y)`` of a scan; ``x = (q, qd, qdd, lower half of A by columns, near)``.

    ``y = (q, qd, qdd, lam, lower half of A, 1 where the step holds)``, all after the step, at the position that two
    Newton steps find from the coordinates ahead. ``near``: 1 / volume (see ``Choice``) before the step, 0: unknown. A
    first step with dt = 0 needs no more than q and the independent velocities, and finds the rest. With ``begin`` the
    series is ``(t, dt, least, inputs where f and A come from, inputs at the end)``, without it inputs are zero.
    """
    system, p_ = partition.system, partition.system.values.symbol
    kind = ca.SX if _written_out(partition, rule, begin or Begin.KEPT) else ca.MX
    g, n = len(partition.independent), system.n
    q, _, u, t, p = state_symbols(system, p_, kind)
    qd, qdd, lower, dt, before, least = (kind.sym(name, *size) for name, size in (
        ('qd', (n, 1)), ('qdd', (n, 1)), ('lower', (g, 2 * g)), ('dt', (1, 1)), ('before', (1, 1)), ('least', (1, 1))))
    z = partition.independent
    newton, there = newton_function(system), kind.sym('there', *u.shape)
    end = kind.zeros(*u.shape) if begin is None else u
    X0, first, size, rate = ca.vertcat(q[z], qd[z]), lower, kind(0), qdd
    if begin is Begin.AGAIN or begin is Begin.MIDDLE:
        ago, at = t - begin.share * dt, q
        if system.driven and begin is Begin.MIDDLE:
            still = velocity_function(system)(q, kind.zeros(g, 1), t - dt, p)       # of what drivers move
            at = q + (dt - begin.share * dt) * still
            at = newton(newton(at, ago, p)[0], ago, p)[0]
            size = _violation(system, at, ago, p)
        if rule.tangents:
            _, A, _, rate, _, _ = partition.function(at, qd[z], there, ago, p)
            first = A[g:, :]
        else:
            _, rate, _, _ = partition.motion_function(at, qd[z], there, ago, p)
    f0 = ca.vertcat(qd[z], rate[z])
    if rule.stages:
        X, over, size = _staged(partition, rule, (q, qd, qdd), (f0, end, t, dt, p))
    else:
        X, over = _jump(rule, g)(X0, f0, first, dt)
    new = q + dt * (qd + dt / 2 * rate)
    for left in range(rule.corrections, -1, -1):
        guess = ca.vertcat(new)
        guess[z] = X[:g]
        new = newton(newton(guess, t, p)[0], t, p)[0]
        if rule.tangents:
            _, A, _, new_qdd, lam, new_qd = partition.function(new, X[g:], end, t, p)
        else:
            _, new_qdd, lam, new_qd = partition.motion_function(new, X[g:], end, t, p)
            A = kind(2 * g, 2 * g)
        if rule.correct is not None:
            better, over = _correction(rule.correct, g)(X0, f0, X, ca.vertcat(new_qd[z], new_qdd[z]), A[g:, :], dt)
            X = better if left else X
    if rule.stages:
        over = discord(ca, qd, rate, new_qd, new_qdd, dt)
    last = _violation(system, new, t, p)
    size = ca.fmax(size, last)
    rates = ca.vec(ca.densify(A[g:, :]))
    near = 1 / _volume(partition)(new, t, p) if system.m else kind(1)
    y = ca.vertcat(new, new_qd, new_qdd, lam, rates)
    holds = holding_function()(ca.fmax(1, ca.norm_inf(new)), ca.sumsqr(y), size, over, before, near, least)
    series = ca.vertcat(t, dt, least, *([] if begin is None else [there, end]))
    name = f'mbse_{rule.key}' + ('' if begin is None else f'_{begin.value}')
    return ca.Function(name, [ca.vertcat(q, qd, qdd, ca.vec(lower), before), series, p],
                       [ca.vertcat(new, new_qd, new_qdd, rates, near), ca.vertcat(y, holds)], {'cse': True})


def _staged(partition: Partitioned, rule: Rule, before: tuple[Expression, Expression, Expression],
            given: tuple[Expression, Expression, Expression, Expression, Expression]
            ) -> tuple[Expression, Expression, Expression]:
    """X after the stages of a step from ``before`` (q, qd, qdd), 0, and the largest ``|Phi|`` at any of them."""
    (q, qd, qdd), (f0, u, t, dt, p), z, g = before, given, partition.independent, len(partition.independent)
    newton, X0, size = newton_function(partition.system), ca.vertcat(q[z], qd[z]), type(q)(0)
    rates = [f0]
    for shares in rule.stages:
        part = sum(shares)
        at = t - (1.0 - part) * dt
        X = X0 + dt * sum(share * rate for share, rate in zip(shares, rates) if share)
        guess = q + part * dt * (qd + part * dt / 2 * qdd)
        guess[z] = X[:g]
        there = newton(newton(guess, at, p)[0], at, p)[0]
        size = ca.fmax(size, _violation(partition.system, there, at, p))
        rates.append(ca.vertcat(X[g:], partition.rates_function(there, X[g:], u, at, p)))
    return X0 + dt * sum(weight * rate for weight, rate in zip(rule.weights, rates)), type(q)(0), size


def discord(library: Any, qd: Any, qdd: Any, new_qd: Any, new_qdd: Any, dt: Any) -> Any:
    """How far velocities (n,) before and after a step are from what the accelerations say, by the trapezoidal rule: a
    number that exceeds 1 where half of them is not explained, as after a motion that was thrown back.

    ``library``: NumPy or CasADi, as the vectors are.
    """
    most, size = library.fmax, library.fabs
    change = size(new_qd - qd - dt / 2 * (qdd + new_qdd))
    scale = UNEXPLAINED * (most(size(qd), size(new_qd)) + size(dt) * most(size(qdd), size(new_qdd)))
    largest = library.max if library is np else library.mmax
    return largest(change / (scale + ROUNDED * most(1.0, largest(most(size(qd), size(new_qd))))))


def _violation(system: MechanismSystem, at: Expression, t: Expression, p: Expression) -> Expression:
    """Largest ``|Phi|``."""
    residual = ca.Function('residual', [system.q, system.t, system.values.symbol], [system.Phi])
    return ca.norm_inf(residual(at, t, p)) if system.m else type(at)(0)


def holding_function() -> ca.Function:
    """Whether a step was reached as the scheme wants it, with no dead point on the way, and none nearer than ``least``.

    ``(largest coordinate, sum of squares of all numbers, max |Phi|, number of the rule that must not exceed 1, near
    before, near, least) -> 1 or 0``; 0 where any is NaN. The distance from a dead point that changes by little in a
    step, before and after, has not passed zero in between.
    """
    scale, squares, size, over, before, near, least = s = [ca.SX.sym(name) for name in (
        'scale', 'squares', 'size', 'over', 'before', 'near', 'least')]
    steady = ca.fabs(near - before) <= STEADY * ca.fmin(near, before)
    conditions = [squares < LARGEST ** 2, size <= TOLERANCE * scale, over <= 1, near >= least, near > 0,
                  ca.logic_or(steady, before == 0)]
    holds = conditions[0]
    for condition in conditions[1:]:
        holds = ca.logic_and(holds, condition)
    return ca.Function('holding', s, [holds])


def _volume(partition: Partitioned) -> ca.Function:
    """Function ``(q, t, p) -> sqrt(det(R'R))``, which grows without bounds at a dead point of the partition."""
    system, g, scalar = partition.system, len(partition.independent), is_small(partition.system)
    q, t, p = state_symbols(system, system.values.symbol, ca.SX if scalar else ca.MX, 'q t p')
    J, _ = Pieces(system, system.values.symbol).constraints(q, t, p)
    R = Maps.of(system, J, scalar).R
    square = ca.SX.sym('square', g, g)
    factors = ca.diag(ca.chol(square)) if g else ca.SX.ones(1)
    product = ca.Function('product', [square], [ca.exp(ca.sum1(ca.log(factors)))])
    return ca.Function('volume', [q, t, p], [product(R.T @ R)], {'cse': True})


def _jump(rule: Rule, g: int) -> ca.Function:
    """Function ``(X, f, lower half of A, dt) -> (X after the step, number that must not exceed 1)``."""
    X, f, lower, dt = _symbols(g, 'X f lower dt')
    if not g:
        return ca.Function('jump', [X, f, lower, dt], [X, ca.SX(0)])
    return ca.Function('jump', [X, f, lower, dt], list(rule.advance(StepSymbols(X, f, _whole(lower), dt))))


def _correction(correct: Callable[[Iterate], tuple[ca.SX, ca.SX]], g: int) -> ca.Function:
    """Function ``(X0, f0, X, f, lower half of A, dt) -> (better X, number of X that must not exceed 1)``."""
    X0, f0, X, f, lower, dt = arguments = _symbols(g, 'X0 f0 X f lower dt')
    if not g:
        return ca.Function('correction', arguments, [X, ca.SX(0)])
    return ca.Function('correction', arguments, list(correct(Iterate(X0, f0, X, f, _whole(lower), dt))))


def _symbols(g: int, names: str) -> list[ca.SX]:
    sizes = {'lower': (g, 2 * g), 'dt': (1, 1)}
    return [ca.SX.sym(name, *sizes.get(name, (2 * g, 1))) for name in names.split()]


def _whole(lower: ca.SX) -> ca.SX:
    """A (2g, 2g) by its lower half."""
    g = lower.shape[0]
    return ca.vertcat(ca.horzcat(ca.SX(g, g), ca.SX.eye(g)), lower)
