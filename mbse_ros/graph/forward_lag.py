# SPDX-License-Identifier: Apache-2.0
"""Forward dynamics by a fixed-lag smoother (Blanco-Claraco et al., factor graphs, 7.1), the window compiled.

The window slides over time as one compiled function: the same factors, solved by Gauss-Newton. Its first instant is
held at its estimate, the others are unknown; rows that hold exactly have multipliers: ``[A'A + w C'C C'; C 0] [dx; lam]
= -[A'e + w C'd; d]`` with A and e divided by the sigmas. The term with w changes no solution; with it the matrix has a
factorisation L D L' without pivots, instant after instant, the multipliers of each after its variables. The cost is in
proportion to the number of instants.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..compiled.scan import Scan
from ..dynamics.model import Model, State
from ..dynamics.partitioned import affordable
from ..errors import DivergenceError, SettingError
from .forward import Coordinates, ForwardNoises, GraphProblem, Inputs, forward_graph, instants
from .graph import FactorGraph, Factors

# Names of a variable's first and second rate: a new instant starts from its Taylor series.
RATES = {'q': ('qd', 'qdd'), 'qd': ('qdd',), 'z': ('zd', 'zdd'), 'zd': ('zdd',)}
VARYING = ('t', 'u')        # constants of factors that differ from instant to instant
Rows = tuple[ca.MX, ca.MX, int]         # of one factor: Jacobian by all values, residuals, instant
ITERATIONS = (2, 4, 15)     # of Gauss-Newton a step: more where fewer do not do; the paper allows 15
TOLERANCE = 1e-6            # of the last of them, of each value above 1 in proportion; its error is that squared


class ForwardWindow:
    """Steps of a window over a graph of ``instants`` 0 to W - 1, which says what its factors are.

    ``step (state, row, p) -> (state, y)``: ``state`` holds the values of the instants 1 to W - 1 by name (``places`` in
    the graph's vector of values), ``row`` the constants t and u of these instants, ``y`` the state and the size of the
    last Gauss-Newton step. Factors on the first instant alone, its priors, are left out: it is held.
    """

    def __init__(self, graph: FactorGraph, dt: float, iterations: int) -> None:
        self.graph, self.dt, self.iterations = graph, dt, iterations
        self.instants = 1 + max(int(series.steps.max()) for series in graph.series.values())
        self.step_of = np.empty(graph.size, dtype=np.int64)
        for series in graph.series.values():
            self.step_of[series.places(series.steps)] = series.steps[:, None]
        self.places = np.flatnonzero(self.step_of > 0)
        self.groups = [kept for factors in graph.factors
                       if len(kept := factors.take(np.any(factors.steps > 0, axis=1)))]
        self.sizes = {role: size for factors in self.groups for role, size in factors.kind.constants.items()
                      if role in VARYING}
        self.numbers = max((factors.kind.numbers for factors in self.groups), key=len)
        self.iteration = self._iteration()
        self.step = self._step()

    def rows(self, known: dict[str, np.ndarray]) -> np.ndarray:
        """Rows (k - W + 1, ...) of ``step`` from the constants (k, size) of all instants from the first."""
        later = self.instants - 1
        count = len(next(iter(known.values()))) - later
        columns = [np.reshape(known[role], (-1, size))[1 + shift:1 + shift + count]
                   for role, size in self.sizes.items() for shift in range(later)]
        return np.hstack([np.zeros((count, 0)), *columns])

    def advanced(self, state: ca.MX) -> ca.MX:
        """All values of the window one instant later: the held one first, the new one by its Taylor series."""
        old = {int(place): k for k, place in enumerate(self.places)}
        parts = []
        for series in self.graph.series.values():
            rows = series.places(series.steps)
            parts += [state[[old[int(place)] for place in row]] for row in rows[1:]]
            newest = parts[-1]
            for order, rate in enumerate(RATES.get(series.name, ()), 1):
                at = self.graph.series[rate].places(np.array([self.instants - 1]))[0]
                newest = newest + self.dt ** order / order * state[[old[int(place)] for place in at]]
            parts.append(newest)
        return ca.vertcat(*parts)

    def predicted(self, x: np.ndarray) -> np.ndarray:
        """All values, each instant by its Taylor series from the first one."""
        x = x.copy()
        for series in self.graph.series.values():
            values = self.graph.of(x, series.name)
            for k in range(1, len(values)):
                values[k] = values[0]
                for order, rate in enumerate(RATES.get(series.name, ()), 1):
                    values[k] += (k * self.dt) ** order / order * self.graph.of(x, rate)[0]
        return x

    def _step(self) -> ca.Function:
        state, p = ca.MX.sym('state', len(self.places)), ca.MX.sym('p', len(self.numbers))
        row = ca.MX.sym('row', (self.instants - 1) * sum(self.sizes.values()))
        x, size = self.advanced(state), ca.MX(0)
        for _ in range(self.iterations):
            x, size = self.iteration(x, row, p)
        found = x[self.places.tolist()]
        return ca.Function('mbse_window', [state, row, p], [found, ca.vertcat(found, size)])

    def _iteration(self) -> ca.Function:
        """Function ``(x, row, p) -> (x after a Gauss-Newton step, its size)``."""
        x, p = ca.MX.sym('x', self.graph.size), ca.MX.sym('p', len(self.numbers))
        row = ca.MX.sym('row', (self.instants - 1) * sum(self.sizes.values()))
        soft: list[Rows] = []
        exact: list[Rows] = []
        for factors in self.groups:
            for instance in range(len(factors)):
                self._add(factors, instance, x, row, p, soft, exact)
        A, e, _ = _stacked(soft, self.places)
        H, gradient, owners = A.T @ A, A.T @ e, self.step_of[self.places]
        if exact:
            C, d, later = _stacked(exact, self.places)
            weight = max(1.0 / factors.sigma[factors.sigma > 0].min() ** 2 for factors in self.groups
                         if (factors.sigma > 0).any())
            H = ca.vertcat(ca.horzcat(H + weight * C.T @ C, C.T), ca.horzcat(C, ca.MX(C.shape[0], C.shape[0])))
            gradient, owners = ca.vertcat(gradient + weight * C.T @ d, d), np.concatenate([owners, later])
        dx = -_solved(H, gradient, owners, self.instants)[:len(self.places)]
        entries = ca.MX.zeros(self.graph.size)
        entries[self.places.tolist()] = dx
        fresh = x + entries
        size = ca.norm_inf(dx / (1 + ca.fabs(fresh[self.places.tolist()])))
        return ca.Function('iteration', [x, row, p], [fresh, size])

    def _add(self, factors: Factors, instance: int, x: ca.MX, row: ca.MX, p: ca.MX, soft: list[Rows],
             exact: list[Rows]) -> None:
        """Rows of one factor: Jacobians by all values, soft ones divided by their sigma, and residuals."""
        kind = factors.kind
        places = self.graph.places(factors)[instance].tolist()
        constants, column = [], 0
        for role, size in kind.constants.items():
            fixed = factors.constants[instance, column:column + size]
            column += size
            constants.append(self._varying(row, role, int(factors.steps[instance].max())) if role in VARYING
                             else ca.MX(ca.DM(fixed)))
        e, J = kind.function(x[places], ca.vertcat(*constants) if constants else ca.MX(0, 1),
                             p if len(kind.numbers) else ca.MX(0, 1))
        spread = ca.Sparsity.triplet(len(places), self.graph.size, list(range(len(places))), places)
        whole = J @ ca.MX(ca.DM(spread, 1.0))
        sigma = factors.sigma[instance]
        for rows, weight in ((soft, True), (exact, False)):
            chosen = np.flatnonzero((sigma > 0) == weight)
            if len(chosen):
                owner = int(factors.steps[instance].max())
                scale = ca.DM(1.0 / sigma[chosen]) if weight else ca.DM.ones(len(chosen))
                rows.append((ca.diag(scale) @ whole[chosen.tolist(), :], scale * e[chosen.tolist()], owner))

    def _varying(self, row: ca.MX, role: str, instant: int) -> ca.MX:
        """Constant of an instant in a row."""
        first = 0
        for name, size in self.sizes.items():
            if name == role:
                first += (instant - 1) * size
                return row[first:first + size]
            first += (self.instants - 1) * size
        raise KeyError(role)


def _stacked(rows: list[Rows], places: np.ndarray) -> tuple[ca.MX, ca.MX, np.ndarray]:
    """Jacobian by the unknown values, residuals, and the instant of each row."""
    J, e, instants = zip(*rows)
    owners = np.concatenate([np.full(part.shape[0], instant) for part, instant in zip(J, instants)])
    return ca.vertcat(*J)[:, places.tolist()], ca.vertcat(*e), owners


def _solved(K: ca.MX, b: ca.MX, owners: np.ndarray, instants: int) -> ca.MX:
    """Solution of a system whose rows belong to instants, each coupled to the next: elimination block by block."""
    rows = [np.flatnonzero(owners == instant).tolist() for instant in range(1, instants)]
    left, right = ca.densify(K[rows[0], rows[0]]), ca.densify(b[rows[0]])
    eliminated = []
    for here, after in zip(rows, rows[1:]):
        coupling = K[here, after]
        found = ca.solve(left, ca.horzcat(ca.densify(coupling), right), 'ldl', {'preordering': False})
        onward, known = found[:, :len(after)], found[:, len(after)]
        eliminated.append((onward, known))
        left, right = ca.densify(K[after, after] - coupling.T @ onward), ca.densify(b[after] - coupling.T @ known)
    parts = [ca.solve(left, right, 'ldl', {'preordering': False})]
    for onward, known in reversed(eliminated):
        parts.insert(0, known - onward @ parts[0])
    order = np.concatenate(rows)
    return ca.vertcat(*parts)[np.argsort(order).tolist()]


@dataclass(frozen=True)
class GraphMotion(Coordinates):
    """Motion by a graph at times ``t`` (k,), s: ``values`` by name (k, size), each when its instant was the newest;
    ``q, qd, qdd`` (k, n); ``iterations`` of the steps at most."""

    t: np.ndarray
    values: dict[str, np.ndarray]
    iterations: int

    def __getitem__(self, name: str) -> np.ndarray:
        return self.values[name]


class ForwardLag:
    """Simulation of a model by windows of ``window`` instants, the oldest of each held at its estimate.

    ``form, integrator, noises`` as in ``forward_graph``. Raises SettingError.
    """

    def __init__(self, model: Model, dt: float, window: int = 2, form: str = 'dependent',
                 integrator: str = 'trapezoid', noises: ForwardNoises = ForwardNoises()) -> None:
        if window < 2:
            raise SettingError('window', window, 'at least 2 instants')
        self.model, self.dt, self.window = model, dt, window
        self._form, self._integrator, self._noises = form, integrator, noises
        self.problem: GraphProblem = self._problem(model.start)
        self._windows: dict[int, tuple[ForwardWindow, Scan]] = {}

    def run(self, duration: float, inputs: Inputs | None = None, start: State | None = None) -> GraphMotion:
        """Motion over ``duration``, s, from the model's start or another state; inputs: function t -> u (k,).

        Raises SettingError; DivergenceError with the step at which no window was found.
        """
        first = self.model.start if start is None else start
        times, known = instants(self.model, first, duration, self.dt, inputs)
        if len(times) < self.window:
            raise SettingError('duration', duration, f'at least {self.window - 1} steps of {self.dt} s')
        head = self._head(first, {role: value[:self.window] for role, value in known.items()})
        window, _ = self._compiled(ITERATIONS[0])
        found = [self._newest(head[None, window.places])]
        state, done, used = head[window.places], 0, ITERATIONS[0]
        later = {role: value[1:] for role, value in known.items()}
        rows = window.rows(later) if len(times) > self.window else np.zeros((0, 0))
        for used in ITERATIONS:
            states, good = self._some(used, state, rows[done:])
            found.append(self._newest(states))
            done += good
            state = states[-1] if good else state
            if done == len(rows):
                break
        else:
            raise DivergenceError('fixed-lag smoother', self.window + done, f'{used} iterations', False)
        graph = self.problem.graph
        values = {name: np.vstack([graph.of(head, name)[:-1], *(part[name] for part in found)])
                  for name in graph.series}
        return GraphMotion(times, values, used)

    def _problem(self, start: State) -> GraphProblem:
        return forward_graph(self.model, (self.window - 1) * self.dt, self.dt, form=self._form,
                             integrator=self._integrator, start=start, noises=self._noises)

    def _compiled(self, iterations: int) -> tuple[ForwardWindow, Scan]:
        if iterations not in self._windows:
            window = ForwardWindow(self.problem.graph, self.dt, iterations)
            size = sum(kind.operations for kind in {factors.kind for factors in window.groups})
            self._windows[iterations] = window, Scan(window.step, affordable(self.model.backend, size))
        return self._windows[iterations]

    def _head(self, start: State, known: dict[str, np.ndarray]) -> np.ndarray:
        """All values of the first window: its first instant is held at the start."""
        window, _ = self._compiled(ITERATIONS[0])
        x = window.predicted(self._problem(start).initial)
        row = window.rows(known)[0]
        for _ in range(ITERATIONS[-1]):
            x, size = (value.full().ravel() for value in window.iteration(x, row, window.numbers))
            if not np.isfinite(x).all():
                break
            if size[0] <= TOLERANCE:
                return window.iteration(x, row, window.numbers)[0].full().ravel()
        raise DivergenceError('fixed-lag smoother', self.window - 1, 'in the first window', False)

    def _some(self, iterations: int, state: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, int]:
        """States (k, size) of the steps that converge, and their number."""
        window, scan = self._compiled(iterations)
        if not len(rows):
            return np.zeros((0, len(window.places))), 0
        _, y = scan(state, rows, window.numbers)
        bad = np.flatnonzero(~(y[:, -1] <= TOLERANCE) | ~np.isfinite(y).all(axis=1))
        good = int(bad[0]) if bad.size else len(y)
        return y[:good, :-1], good

    def _newest(self, states: np.ndarray) -> dict[str, np.ndarray]:
        """Values of the newest instant in states (k, size)."""
        window, _ = self._compiled(ITERATIONS[0])
        last = np.array([self.window - 1])
        return {name: states[:, np.searchsorted(window.places, series.places(last)[0])]
                for name, series in self.problem.graph.series.items()}


def simulate_fixed_lag(model: Model, duration: float, dt: float, window: int = 2, *, form: str = 'dependent',
                       integrator: str = 'trapezoid', noises: ForwardNoises = ForwardNoises(),
                       inputs: Inputs | None = None, start: State | None = None) -> GraphMotion:
    """Motion of a model by the graph of forward dynamics, a window of some instants at a time; see ``ForwardLag``."""
    return ForwardLag(model, dt, window, form, integrator, noises).run(duration, inputs, start)
