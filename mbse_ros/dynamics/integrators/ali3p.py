# SPDX-License-Identifier: Apache-2.0
"""ALI3P: augmented Lagrangian of index 3 with projections of velocities and accelerations, trapezoidal rule.

A step has two functions: an iteration of the positions, and the projections of the rates.

``SparseLU`` solves in scalar operations without pivots, for matrices whose symmetric part is positive definite: all
leading minors of such a matrix are positive, in any symmetric order of rows and columns (Golub and Van Loan, Matrix
Computations, section 4.2); the order is the one of little fill (AMD), and only nonzeros are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import casadi as ca
import numpy as np

from ...compiled import Scan
from ...compiled.iterated import Iterated
from ...errors import DivergenceError, SettingError
from ...mechanism.assembly import MechanismSystem
from ..formulations.by_name import accelerations
from ..formulations.matrix_r import constraint_rates
from ..model import Model
from .task import MotionRecord, MotionTask

Expression: TypeAlias = 'ca.SX | ca.MX'
Place = tuple[int, int]
WRITTEN_OUT = 8_000     # scalar operations of an iteration up to which all is written out, else functions are called
ITERATIONS = 60
PENALTY = 1e9           # Naya et al., review, section 12.1
PATIENCE = 10           # iterations after which the penalty of the step is raised
RAISE = 100.0           # ... by this factor, three times at most
VIOLATION = 1e-3        # weight of Phi beside dq, so that no iteration ends far from the constraints
PASSES = 3              # of a projection; each divides what is left of the violation by about dt^2 alpha J J' / 4 M

Solve: TypeAlias = 'Callable[[Expression], Expression]'
LONGEST = 256       # steps of a compiled call


class SparseLU:
    """Factors ``L U`` of a matrix of a square sparsity; the diagonal of U is kept inverted.

    ``factor (T) -> factors (k,)`` and ``solve (factors, right (n,)) -> x (n,)`` are CasADi functions, to be called with
    SX (written out) or MX (called).
    """

    def __init__(self, sparsity: ca.Sparsity) -> None:
        self._order = list((sparsity + sparsity.T).amd())
        T = ca.SX.sym('T', sparsity)
        entries = _eliminated(T, self._order)
        places = list(entries)
        self.factor = ca.Function('factor', [T], [ca.vertcat(*entries.values())], {'cse': True})
        factors, right = ca.SX.sym('factors', len(places)), ca.SX.sym('right', sparsity.shape[0])
        self.solve = ca.Function('solve', [factors, right], [self._solved(places, factors, right)])

    def _solved(self, places: list[Place], factors: ca.SX, right: ca.SX) -> ca.SX:
        """Forward and backward substitution."""
        known, n = dict(zip(places, ca.vertsplit(factors))), len(self._order)
        x = [right[i] for i in self._order]
        for i, j in sorted(place for place in places if place[1] < place[0]):
            x[i] = x[i] - known[i, j] * x[j]
        above = _by_row(place for place in places if place[1] > place[0])
        for i in reversed(range(n)):
            x[i] = (x[i] - sum(known[i, j] * x[j] for j in above.get(i, []))) * known[i, i]
        return ca.vertcat(*(x[self._order.index(i)] for i in range(n)))


def _by_row(places: Iterator[Place]) -> dict[int, list[int]]:
    """Columns by row."""
    found: dict[int, list[int]] = {}
    for i, j in places:
        found.setdefault(i, []).append(j)
    return found


def _eliminated(T: ca.SX, order: list[int]) -> dict[Place, ca.SX]:
    """Entries of L below the diagonal, of U above it, inverse pivots on it, by their places in the order."""
    n = T.shape[0]
    place = {old: new for new, old in enumerate(order)}
    rows: list[dict[int, ca.SX]] = [{} for _ in range(n)]
    for k, (i, j) in enumerate(zip(*T.sparsity().get_triplet())):
        rows[place[i]][place[j]] = T.nz[k]
    for k in range(n):
        rows[k][k] = 1 / rows[k][k]
        above = [(j, value) for j, value in rows[k].items() if j > k]
        for row in rows[k + 1:]:
            if k in row:
                row[k] = row[k] * rows[k][k]
                for j, value in above:
                    row[j] = row[j] - row[k] * value if j in row else -row[k] * value
    return {(i, j): value for i, row in enumerate(rows) for j, value in row.items()}


class Ali3pSymbols(NamedTuple):
    """State of a step and what it is given.

    Positions q (n,) and multipliers ``lam`` (m,) of the iteration with its penalty ``alpha``, the number of its
    ``sweeps`` and what its last correction is above the tolerance (``left``); ``q0, qd0, qdd0`` at the start of the
    step. ``t`` its end, ``dt`` its length, ``penalty`` where alpha starts.
    """

    q: Expression
    lam: Expression
    alpha: Expression
    sweeps: Expression
    left: Expression
    q0: Expression
    qd0: Expression
    qdd0: Expression
    t: Expression
    dt: Expression
    penalty: Expression
    tolerance: Expression
    u: Expression
    p: Expression

    @classmethod
    def of(cls, system: MechanismSystem, kind: type[Expression]) -> Ali3pSymbols:
        """Symbols of a kind."""
        n = system.n
        sizes = (n, system.m, 1, 1, 1, n, n, n, 1, 1, 1, 1, system.u.numel(), system.values.symbol.numel())
        return cls(*(kind.sym(name, size) for name, size in zip(cls._fields, sizes)))

    @property
    def arguments(self) -> list[Expression]:
        """State, row of the series ``(t, dt, penalty, tolerance, inputs)`` and parameters."""
        return [ca.vertcat(*self[:8]), ca.vertcat(*self[8:13]), self.p]

    @property
    def trapezoidal(self) -> tuple[Expression, Expression]:
        """Velocities and accelerations (n,) that the trapezoidal rule gives at q."""
        change = self.q - self.q0
        return 2 / self.dt * change - self.qd0, 4 / self.dt ** 2 * change - 4 / self.dt * self.qd0 - self.qdd0


def ali3p_step(system: MechanismSystem) -> Iterated:
    """The step of a scan: ``x = (q ahead, lam, alpha, 0, 1, q, qd, qdd)``, series ``(t, dt, penalty, tolerance, u)``,
    ``y = (q, qd, qdd, lam, iterations, correction above the tolerance)``."""
    parts = _Parts(system)
    step = parts.step(ca.SX)
    if step.iterate.n_instructions() > WRITTEN_OUT:
        step = parts.step(ca.MX)
    return step


def ali3p_motion(system: MechanismSystem, kind: type[Expression], iterations: int) -> ca.Function:
    """A step with a fixed number of iterations: ``(q, qd, qdd, lam, start, u, t, dt, p) -> (q, qd, qdd, lam)`` at its
    end t; ``start`` (n,) is where the iteration of the positions begins, ``lam`` (m,) where that of the multipliers
    does. The penalty is 1e9. Of a ``kind`` of expressions."""
    n, s, parts = system.n, Ali3pSymbols.of(system, kind), _Parts(system)
    iterate, project = parts.iteration(s), parts.projection(s)
    given = ca.vertcat(s.t, s.dt, PENALTY, 0.0, s.u)
    v = ca.vertcat(s.q, s.lam, PENALTY, 0.0, 1.0)
    for _ in range(iterations):
        v = iterate(ca.vertcat(v, s.q0, s.qd0, s.qdd0), given, s.p)
    found = project(ca.vertcat(v, s.q0, s.qd0, s.qdd0), given, s.p)[1]
    return ca.Function('ali3p', [s.q0, s.qd0, s.qdd0, s.lam, s.q, s.u, s.t, s.dt, s.p],
                       ca.vertsplit(found, [0, n, 2 * n, 3 * n, 3 * n + system.m, 3 * n + system.m + 2])[:4])


class _Parts:
    """What both functions are made of."""

    def __init__(self, system: MechanismSystem) -> None:
        self.system, q, qd, Q = system, system.q, system.qd, system.Q
        J, b, c = constraint_rates(system)
        symbols = [q, qd, system.u, system.t, system.values.symbol]
        options = {'cse': True}
        self.phi = ca.Function('phi', [q, system.t, system.values.symbol], [system.Phi], options)
        self.tangents = ca.Function('tangents', symbols, [system.M, Q, -ca.jacobian(Q, q), -ca.jacobian(Q, qd),
                                                          system.Phi, J, b, c], options)
        self.rate = ca.Function('rate', symbols, [c], options)
        M, _, K, C, _, J, _, _ = (self.tangents.sparsity_out(i) for i in range(8))
        self.lu = SparseLU(M + C + K + ca.mtimes(J.T, J))

    def step(self, kind: type[Expression]) -> Iterated:
        """Both functions, written out (SX) or with calls of their parts (MX)."""
        s = Ali3pSymbols.of(self.system, kind)
        return Iterated(self.iteration(s), self.projection(s), ITERATIONS)

    def solver(self, T: Expression) -> Solve:
        """Solver with a tangent, which is positive definite up to small terms."""
        factors = self.lu.factor(ca.project(T, self.lu.factor.sparsity_in(0)))
        return lambda right: self.lu.solve(factors, ca.densify(right))

    def iteration(self, s: Ali3pSymbols) -> ca.Function:
        """Function of a scan's step ``-> (q, lam, alpha, sweeps, size of dq and of what is left of Phi - tolerance)``.

        Residual ``dt^2/4 (M qdd + J' (lam + alpha Phi) - Q)``, tangent ``M + dt/2 C + dt^2/4 (alpha J'J + K)``, then
        ``lam += alpha Phi`` at the new positions (Naya et al., review, section 12.1; mathematics of the augmented
        Lagrangian).
        """
        qd, qdd = s.trapezoidal
        M, Q, K, C, phi, J, _, _ = self.tangents(s.q, qd, s.u, s.t, s.p)
        scale = s.dt ** 2 / 4
        residual = scale * (M @ qdd + J.T @ (s.lam + s.alpha * phi) - Q)
        dq = -self.solver(M + s.dt / 2 * C + scale * (s.alpha * (J.T @ J) + K))(residual)
        q, sweeps = s.q + dq, s.sweeps + 1
        phi = self.phi(q, s.t, s.p)
        size = ca.sqrt(ca.sumsqr(dq) + ca.sumsqr(VIOLATION * phi))        # norm_inf would pass over NaN
        raised = ca.fmin(s.alpha * RAISE, s.penalty * RAISE ** 3)
        alpha = ca.if_else(ca.fmod(sweeps, PATIENCE) == 0, raised, s.alpha)
        v = ca.vertcat(q, s.lam + s.alpha * phi, alpha, sweeps, size - s.tolerance)
        return ca.Function('mbse_ali3p_iteration', s.arguments, [v], {'cse': True})

    def projection(self, s: Ali3pSymbols) -> ca.Function:
        """Function of a scan's step: velocities and accelerations on the constraints, and the next step's start.

        ``T qd = W qd* - dt^2/4 J' alpha Phi_t`` and ``T qdd = W qdd* - dt^2/4 J' alpha (Jdot qd + Phidot_t)`` with
        ``W`` the tangent T without constraints, repeated with multipliers so that the rest of the violation goes too.
        ``lam`` takes those of the accelerations in: with the trapezoidal accelerations alone it is of first order in
        dt.
        """
        qd, qdd = s.trapezoidal
        M, _, K, C, _, J, b, _ = self.tangents(s.q, qd, s.u, s.t, s.p)
        scale = s.dt ** 2 / 4
        W = M + s.dt / 2 * C + scale * K
        solve = self.solver(W + scale * s.alpha * (J.T @ J))
        qd, _ = _project(solve, W @ qd, J, b, scale * s.alpha)
        qdd, change = _project(solve, W @ qdd, J, self.rate(s.q, qd, s.u, s.t, s.p), scale * s.alpha)
        ahead, lam = s.q + s.dt * (qd + s.dt / 2 * qdd), s.lam + change
        return ca.Function('mbse_ali3p', s.arguments, [ca.vertcat(ahead, lam, s.penalty, 0, 1, s.q, qd, qdd),
                                                       ca.vertcat(s.q, qd, qdd, lam, s.sweeps, s.left)], {'cse': True})


def _project(solve: Solve, right: Expression, J: Expression, rate: Expression,
             weight: Expression) -> tuple[Expression, Expression]:
    """Rates x (n,) with ``J x = rate`` and the multipliers mu (m,) of ``W x + J' mu = right``."""
    mu = type(J)(J.shape[0], 1)
    for _ in range(PASSES):
        x = solve(right + J.T @ (weight * rate - mu))
        mu = mu + weight * (J @ x - rate)
    return x, mu


def ali3p(task: MotionTask, record: MotionRecord, penalty: float = PENALTY, tolerance: float = 1e-10) -> None:
    """Fill the record by ALI3P on all coordinates, second order in dt (Naya et al., review, section 12.1).

    Redundant constraints, singular positions and masses that are zero do no harm. ``penalty`` alpha > 0;
    ``tolerance`` of the correction of q. An iteration divides the violation by about ``dt^2 alpha J J' / 4 M``;
    where that is little (beside a singular position, in very short steps) alpha is raised for the step: it changes the
    speed of the iteration, not where it ends. All steps run in compiled code, one by one where ``inputs`` are functions
    of Python. DivergenceError where a step does not end.
    """
    if not (0 < penalty < np.inf and tolerance > 0):
        raise SettingError('penalty, tolerance', (penalty, tolerance), 'positive numbers')
    if task.independent not in (None, 'auto'):
        raise SettingError('independent', task.independent, 'none: ali3p takes all coordinates')
    times, longest = task.times, LONGEST if task.inputs is None else 1
    rows = np.zeros((len(times), 4 + len(task.model.inputs)))
    rows[:, 0], rows[1:, 1], rows[:, 2:4] = times, np.diff(times), (penalty, tolerance)
    k = 0
    try:
        x = _begin(task, record, penalty)
        scan, n, p = _scan(task.model), len(task.model.names), np.array(task.model.parameters, dtype=float)
        for k in range(1, len(times), longest):
            stop = min(k + longest, len(times))
            if task.inputs is not None:
                rows[k, 4:] = task.u(times[k], x[:n].copy(), x[-2 * n:-n] + rows[k, 1] * x[-n:])
            x, found = scan(x, rows[k:stop], p)
            _write(task, record, k, found, rows[k:stop, 4:])
    except ArithmeticError as error:
        raise task.diverged(k, str(error)) from error


def _scan(model: Model) -> Scan:
    """The compiled step, made once for a mechanism."""
    kept = model.partition().kept
    if 'ali3p' not in kept:
        kept['ali3p'] = Scan(ali3p_step(model.system), model.backend, in_lanes=False)
    scan: Scan = kept['ali3p']
    return scan


def _begin(task: MotionTask, record: MotionRecord, penalty: float) -> np.ndarray:
    """State of the scan at the start, with accelerations and multipliers that redundant rows do not disturb."""
    start, model, dt = task.start, task.model, task.dt
    u = task.u(start.t, start.q, start.qd)
    found = accelerations('udwadia_kalaba', model.terms(start.q, start.qd, u, start.t))
    record.q[0], record.qd[0], record.qdd[0], record.lam[0], record.u[0] = (start.q, start.qd, found.qdd,
                                                                            found.multipliers, u)
    record.last = 0
    ahead = start.q + dt * (start.qd + dt / 2 * found.qdd)
    return np.concatenate([ahead, found.multipliers, [penalty, 0.0, 1.0], start.q, start.qd, found.qdd])


def _write(task: MotionTask, record: MotionRecord, k: int, found: np.ndarray, u: np.ndarray) -> None:
    """Keep the steps from k on (k, 3n + m + 2) as far as they hold; DivergenceError where they do not."""
    n, holds = record.q.shape[1], found[:, -1] <= 0.0       # NaN does not
    count = len(holds) if holds.all() else int(np.argmin(holds))
    rows, done = slice(k, k + count), found[:count]
    record.q[rows], record.qd[rows], record.qdd[rows] = (done[:, i * n:(i + 1) * n] for i in range(3))
    record.lam[rows], record.u[rows] = done[:, 3 * n:-2], u[:count]
    record.evaluations += int(np.nansum(found[:count + 1, -2]))
    record.last = k + count - 1
    if count < len(found):
        raise _unfinished(task, k + count, float(found[count, -1]))


def _unfinished(task: MotionTask, step: int, left: float) -> DivergenceError:
    return task.diverged(step, f'correction of q {left:.3g} above the tolerance; take a shorter step')
