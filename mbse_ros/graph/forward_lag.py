# SPDX-License-Identifier: Apache-2.0
"""Forward dynamics by a fixed-lag smoother (Blanco-Claraco et al., factor graphs, 7.1), the window compiled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..compiled.scan import Scan
from ..dynamics.model import Model, State
from ..dynamics.partitioned import affordable
from ..errors import DivergenceError, SettingError
from .forward import Coordinates, ForwardNoises, GraphProblem, Inputs, forward_graph, instants
from .forward_window import ForwardWindow

ITERATIONS = (2, 4, 15)     # of Gauss-Newton a step: more where fewer do not do; the paper allows 15
TOLERANCE = 1e-6            # of the last of them, of each value above 1 in proportion; its error is that squared


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
