# SPDX-License-Identifier: Apache-2.0
"""``smooth_crane``: the most likely motion and payload of a whole log of a hydraulic machine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import GraphError
from ..machine import Machine
from .batch import Solution
from .crane import CraneGraphSettings, CraneLog, check_log, crane_graph, fill, filled, moving, speeds
from .crane_factors import MPA, CraneKinds, crane_kinds
from .crane_solve import solve_soft
from .graph import FactorGraph
from .likelihood import Likelihood
from .marginals import marginals
from .sandwich import sandwich_stddev

NORMAL = 1.959964               # 95 % quantile, two sides
FORCES = (1.0, 30.0, 100.0, 300.0)      # N: standard deviations of the unknown force to choose from

SHARES = (0.1, 0.01)            # of the density of the acceleration, to choose from


@dataclass(frozen=True)
class CraneSmoothed:
    """Smoothed motion and mass, SI. ``t`` (n,), s; ``position``, ``velocity``, ``acceleration`` (n, cylinders),
    ``pressure`` (n, volumes), ``unknown_force`` (n, cylinders), N; ``stddev``: the standard deviations by these names.

    ``mass``, ``mass_stddev`` (n,), kg: after the samples that each instant's estimate knows; in a batch all the same.
    ``parameters`` (p,) and ``parameters_stddev``: what the log says of the numbers ``names`` of the machine's file.
    ``balanced`` (n,): whether the forces of the instant counted; ``force``: stddev of the unknown force, N.
    """

    t: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    pressure: np.ndarray
    unknown_force: np.ndarray
    stddev: dict[str, np.ndarray]
    mass: np.ndarray
    mass_stddev: np.ndarray
    names: tuple[str, ...]
    parameters: np.ndarray
    parameters_stddev: np.ndarray
    balanced: np.ndarray
    force: float
    iterations: int

    @property
    def lower(self) -> np.ndarray:
        """Lower ends (n,) of the 95 % intervals of the mass, kg."""
        return self.mass - NORMAL * self.mass_stddev

    @property
    def upper(self) -> np.ndarray:
        """Upper ends (n,) of the 95 % intervals of the mass, kg."""
        return self.mass + NORMAL * self.mass_stddev


NODES = {'position': ('z', 1.0), 'velocity': ('zd', 1.0), 'acceleration': ('zdd', 1.0), 'pressure': ('p', MPA),
         'unknown_force': ('force', 1e3)}


def smooth_crane(machine: Machine, log: CraneLog, settings: CraneGraphSettings = CraneGraphSettings(),
                 kinds: CraneKinds | None = None) -> CraneSmoothed:
    """The whole log at once. ``kinds`` may be shared between logs of one machine.

    Raises GraphError where something needed is not measured or the pistons never move (friction at standstill hides
    the mass), SettingError for a log of a wrong shape, DivergenceError where no solution is found.
    """
    check_log(machine, log)
    kinds = kinds or crane_kinds(machine)
    balanced = moving(log, machine, settings)
    check_motion(log, machine, settings, balanced)
    force = settings.unknown_force or FORCES[0]
    graph = crane_graph(machine, kinds, log, settings, balanced, force)
    solution = solve_soft(graph, start_values(graph, machine, log, settings))
    likelihood = Likelihood(graph, solution.x)
    if settings.unknown_force == 0.0:
        force = likely_force(likelihood)
        if force != FORCES[0]:
            graph = crane_graph(machine, kinds, log, settings, balanced, force)
            solution = solve_soft(graph, solution.x, check=False)
            likelihood = Likelihood(graph, solution.x)
    likely = {kinds.jerk.name: np.sqrt(likely_share(likelihood, kinds.jerk.name))}
    stddev = sandwich_stddev(graph, solution.x, 'payload', likely)
    return _smoothed(machine, kinds, log, balanced, force, solution, stddev)


def check_motion(log: CraneLog, machine: Machine, s: CraneGraphSettings, balanced: np.ndarray) -> None:
    """Raise GraphError where no instant says anything of the mass."""
    if not balanced.any():
        fastest = 1e3 * float(np.abs(speeds(log, machine, s)).min(axis=1).max())
        raise GraphError(f'the pistons never move at {1e3 * s.min_speed:g} mm/s or more for {2 * s.guard_time:g} s, '
                         f'inside the stroke and measured (fastest {fastest:.3g} mm/s): friction at standstill may be '
                         'anything',
                         ['payload'], ['force_balance'])


def start_values(graph: FactorGraph, machine: Machine, log: CraneLog, s: CraneGraphSettings) -> np.ndarray:
    """Values to start from: the samples, slopes of the positions, no payload."""
    pressures = [fill(log.t, log.measured[:, machine.channels.index(f'pressure/{v}')]) / MPA for v in machine.volumes]
    return graph.values(z=filled(log, machine), zd=speeds(log, machine, s), p=np.column_stack(pressures))


def likely_force(likelihood: Likelihood) -> float:
    """The standard deviation of the unknown force, N, that makes the samples most likely, of a graph with the
    least."""
    best, chosen = likelihood(), FORCES[0]
    for force in FORCES[1:]:
        ratio = force / FORCES[0]
        found = likelihood({'start': ratio, 'damped_walk': ratio})
        if found <= best:
            break
        best, chosen = found, force
    return chosen


def likely_share(likelihood: Likelihood, label: str) -> float:
    """The share of the density of the acceleration's random walk that makes the samples most likely.

    The density is that of steps of valves and gives the estimate, which a stiffer one would bend: what it cannot follow
    of a ramp it would blame on the machine's numbers. But so much noise is seldom there, and the interval of the mass
    is that of the noise that is.
    """
    best, chosen = likelihood(), 1.0
    for share in SHARES:
        found = likelihood({label: np.sqrt(share)})
        if found <= best:
            break
        best, chosen = found, share
    return chosen


def _smoothed(machine: Machine, kinds: CraneKinds, log: CraneLog, balanced: np.ndarray, force: float,
              solution: Solution, mass_stddev: float) -> CraneSmoothed:
    known, n = marginals(solution), len(log.t)
    values = {name: solution[node] * unit for name, (node, unit) in NODES.items()}
    stddev = {name: known.stddev(node) * unit for name, (node, unit) in NODES.items()}
    theta = [solution['parameters'][0], known.stddev('parameters')[0]] if kinds.names else np.zeros((2, 0))
    return CraneSmoothed(log.t, **values, stddev=stddev, mass=np.full(n, solution['payload'][0, 0]),
                         mass_stddev=np.full(n, mass_stddev), names=kinds.names,
                         parameters=parameter_values(machine, kinds, theta[0]),
                         parameters_stddev=kinds.scale * theta[1],
                         balanced=balanced, force=force, iterations=solution.iterations)


def parameter_values(machine: Machine, kinds: CraneKinds, theta: np.ndarray) -> np.ndarray:
    """Values (p,), SI, of the uncertain numbers from their deviations (p,) in standard deviations."""
    mean = [machine.parameters.mean[machine.parameters.names.index(name)] for name in kinds.names]
    return np.array(mean, dtype=float) + kinds.scale * theta
