# SPDX-License-Identifier: Apache-2.0
"""``lag_machine``: a window that slides over the log of a hydraulic machine; what leaves it stays as a summary.

Each window is solved again by Gauss-Newton. Then the instants that leave are eliminated: what they say of the first
instant that stays, of the payload and of the parameters is one linear factor of the next window.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...errors import DivergenceError, GraphError, SettingError
from ...machine import Machine
from ..factors.dynamics_factors import prior
from ..factors.machine_factors import MachineKinds, machine_kinds
from ..graph import ALWAYS, FactorGraph, Factors
from ..solvers.batch_solver import solve_soft
from ..window import marginal_prior
from .machine_graph import Followed, MachineGraphSettings, machine_graph, sizes_of, speeds, trusted_motion
from .machine_log import MachineLog
from .machine_smoother import NODES, MachineSmoothed, known_of, smoothed

HOP = 0.1               # s between two windows
ASSUMED_FORCE = 30.0    # N, where the settings do not say: a window cannot ask the whole log
VAGUE_SHARE = 2.0       # of the payload's upper limit: its stddev before anything is known


def lag_machine(machine: Machine, log: MachineLog, lag: float, settings: MachineGraphSettings = MachineGraphSettings(),
                kinds: MachineKinds | None = None) -> MachineSmoothed:
    """Each instant as estimated with at least ``lag``, s, of data after it (the last ones with what there is); the mass
    is that of the same moment, NaN before the pistons have moved. Errors as of ``smooth_machine``.
    """
    least = 2 * settings.guard_time + HOP
    if not least <= lag <= 60.0:
        raise SettingError('lag', lag, f'from {least:g} s (two guard times and {HOP:g} s) to 60 s')
    kinds = kinds or machine_kinds(machine)
    motion, balanced = trusted_motion(machine, kinds, log, settings)
    window = _Window(machine, kinds, log, settings, motion, balanced)
    n, ends = len(log.t), []
    time = log.t[0] + lag + HOP
    while time < log.t[-1]:
        ends.append(int(np.searchsorted(log.t, time)))
        time += HOP
    for end in dict.fromkeys([*(e for e in ends if 3 <= e < n), n]):
        window.advance(end)
        leave = n if end == n else int(np.searchsorted(log.t, log.t[end - 1] - lag + 1e-9))
        window.release(leave, last=end == n)
    return window.result()


class _Window:
    """Instants ``begin`` to ``end`` of a log and the summary of all before."""

    def __init__(self, machine: Machine, kinds: MachineKinds, log: MachineLog, s: MachineGraphSettings,
                 motion: Followed, balanced: np.ndarray) -> None:
        self.machine, self.kinds, self.log, self.s = machine, kinds, log, s
        self.motion, self.balanced = motion, balanced
        self.force = s.unknown_force or ASSUMED_FORCE
        self.summary: Factors | None = None
        self.begin, self.moved, self.iterations = 0, False, 0
        instant, constant = sizes_of(machine, kinds)
        self.instant, self.sizes = tuple(instant), instant | constant
        self.nodes: dict[str, list[np.ndarray]] = {name: [] for name in NODES}
        self.mass: list[np.ndarray] = []

    def advance(self, end: int) -> None:
        """Solve with the instants up to ``end``."""
        part = self.log.part(self.begin, end)
        known = self.balanced[self.begin:end] & (part.t <= part.t[-1] - 2 * self.s.guard_time + 1e-9)[:, None]
        self.moved |= bool(known.any())
        motion = self.motion.part(self.begin, end)
        motion.start['zd'] = speeds(self.machine, part, self.s)         # without what comes after
        graph = machine_graph(self.machine, self.kinds, part, self.s, motion, known, self.force)
        x = graph.values(**motion.start)
        if self.begin:
            self._continue(graph, x)
        else:
            graph.add(prior(1), {'x': ('payload', ALWAYS)}, VAGUE_SHARE * self.machine.payload_data.limits[1],
                      {'x0': np.zeros(1)})
        try:
            self.solution = solve_soft(graph, x, check=False)
        except (DivergenceError, GraphError) as error:
            raise DivergenceError('smoother', end - 1, f'at t = {part.t[-1]:.3f} s: {error}',
                                  getattr(error, 'finite', True)) from error
        self.iterations += self.solution.iterations

    def _continue(self, graph: FactorGraph, x: np.ndarray) -> None:
        """The summary takes the place of what starts a log; values of the window before are the start."""
        graph.factors = [f for f in graph.factors if f.label not in ('start', 'known')]
        if self.summary is not None:
            graph.factors.append(self.summary)
        old = self.solution
        for name in self.sizes:
            kept = old[name][self.shift:] if name in self.instant else old[name]
            graph.of(x, name)[:len(kept)] = kept

    def release(self, leave: int, last: bool) -> None:
        """Take the results of the instants before ``leave``; summarise them unless the log ends here."""
        count = leave - self.begin
        nodes, mass, self.theta = known_of(self.solution, self.kinds)
        for name, values in nodes.items():
            self.nodes[name].append(values[:, :count])
        self.mass.append(np.tile(mass[:, None] if self.moved else np.full((2, 1), np.nan), count))
        if not last and count:
            left = marginal_prior(self.solution.graph, self.solution.x, np.arange(count))
            self.summary = None if left is None else replace(
                left, steps=np.where(left.steps == ALWAYS, ALWAYS, left.steps - count))
        self.shift, self.begin = count, leave

    def result(self) -> MachineSmoothed:
        """Everything released so far."""
        nodes = {name: np.concatenate(values, axis=1) for name, values in self.nodes.items()}
        return smoothed(self.machine, self.kinds, self.log.t, nodes, np.concatenate(self.mass, axis=1), self.theta,
                        balanced=np.any(self.balanced, axis=1), force=self.force, iterations=self.iterations)
