# SPDX-License-Identifier: Apache-2.0
"""``smooth_crane``: the most likely motion and payload of a whole log of a hydraulic machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import GraphError
from ..machine import Machine
from .batch import Solution
from .crane import CraneGraphSettings, CraneLog, CraneNoise, check_log, crane_graph, fill, filled, moving, speeds
from .crane_factors import MPA, CraneKinds, crane_kinds
from .crane_solve import solve_soft
from .graph import FactorGraph
from .likelihood import log_likelihood
from .marginals import marginals

NORMAL = 1.959964               # 95 % quantile, two sides
ROUGH = 0.1                     # fall of the cost that ends the search before the noises are chosen
FORCES = (1.0, 30.0, 100.0, 300.0)      # N: standard deviations of the unknown force to choose from
# (m/s2)^2/s, while the pistons move. Not less, though quiet logs ask for it: where a valve's ramp reaches into the
# motion that counts, a stiffer one puts the blame on the machine's numbers (0.2 kg of 50 with 0.1).
ACCELERATIONS = (0.3, 1.0, 3.0, 10.0)
START = CraneNoise(0.3, 1.0)


@dataclass(frozen=True)
class CraneSmoothed:
    """Smoothed motion and mass, SI. ``t`` (n,), s; ``position``, ``velocity``, ``acceleration`` (n, cylinders),
    ``pressure`` (n, volumes), ``unknown_force`` (n, cylinders), N; ``stddev``: the standard deviations by these names.

    ``mass``, ``mass_stddev`` (n,), kg: after the samples that each instant's estimate knows; in a batch all the same.
    ``parameters`` (p,) and ``parameters_stddev``: what the log says of the numbers ``names`` of the machine's file.
    ``balanced`` (n,): whether the forces of the instant counted; ``noise``: the noises in force.
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
    noise: CraneNoise
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
    noise = CraneNoise.of(settings, START.acceleration, START.force)

    def graph_of(chosen: CraneNoise) -> FactorGraph:
        return crane_graph(machine, kinds, log, settings, balanced, chosen)

    graph = graph_of(noise)
    solution = solve_soft(graph, start_values(graph, machine, log, settings), still=ROUGH)
    noise = likely_noise(graph_of, settings, noise, solution.x)
    solution = solve_soft(graph_of(noise), solution.x, check=False)
    return _smoothed(machine, kinds, log, balanced, noise, solution)


def check_motion(log: CraneLog, machine: Machine, s: CraneGraphSettings, balanced: np.ndarray) -> None:
    """Raise GraphError where no instant says anything of the mass."""
    if not balanced.any():
        fastest = 1e3 * float(np.abs(speeds(log, machine, s)).min(axis=1).max())
        raise GraphError(f'the pistons never move at {1e3 * s.min_speed:g} mm/s or more for {2 * s.guard_time:g} s, inside '
                         f'the stroke and measured (fastest {fastest:.3g} mm/s): friction at standstill may be anything',
                         ['payload'], ['force_balance'])


def start_values(graph: FactorGraph, machine: Machine, log: CraneLog, s: CraneGraphSettings) -> np.ndarray:
    """Values to start from: the samples, slopes of the positions, no payload."""
    pressures = [fill(log.t, log.measured[:, machine.channels.index(f'pressure/{v}')]) / MPA for v in machine.volumes]
    return graph.values(z=filled(log, machine), zd=speeds(log, machine, s), p=np.column_stack(pressures))


def likely_noise(graph_of: Callable[[CraneNoise], FactorGraph], s: CraneGraphSettings, noise: CraneNoise,
                 x: np.ndarray) -> CraneNoise:
    """The noises that make the samples most likely, of those that the settings leave open; x are values of the graph."""
    if s.acceleration_psd == 0.0:
        found = _climb(ACCELERATIONS, noise.acceleration,
                       lambda value: log_likelihood(graph_of(CraneNoise(value, noise.force)), x))
        noise = CraneNoise(found, noise.force)
    if s.unknown_force == 0.0:
        found = _climb(FORCES, noise.force,
                       lambda value: log_likelihood(graph_of(CraneNoise(noise.acceleration, value)), x))
        noise = CraneNoise(noise.acceleration, found)
    return noise


def _climb(values: Sequence[float], start: float, score: Callable[[float], float]) -> float:
    """The value with the best score, from ``start`` up or down as long as it gets better."""
    at = values.index(start)
    best = score(start)
    for direction in (-1, 1):
        begin = at
        while 0 <= at + direction < len(values):
            found = score(values[at + direction])
            if found <= best:
                break
            best, at = found, at + direction
        if at != begin:
            break
    return values[at]


def _smoothed(machine: Machine, kinds: CraneKinds, log: CraneLog, balanced: np.ndarray, noise: CraneNoise,
              solution: Solution) -> CraneSmoothed:
    known, n = marginals(solution), len(log.t)
    values = {name: solution[node] * unit for name, (node, unit) in NODES.items()}
    stddev = {name: known.stddev(node) * unit for name, (node, unit) in NODES.items()}
    theta = [solution['parameters'][0], known.stddev('parameters')[0]] if kinds.names else np.zeros((2, 0))
    return CraneSmoothed(log.t, **values, stddev=stddev, mass=np.full(n, solution['payload'][0, 0]),
                         mass_stddev=np.full(n, known.stddev('payload')[0, 0]), names=kinds.names,
                         parameters=parameter_values(machine, kinds, theta[0]), parameters_stddev=kinds.scale * theta[1],
                         balanced=balanced, noise=noise, iterations=solution.iterations)


def parameter_values(machine: Machine, kinds: CraneKinds, theta: np.ndarray) -> np.ndarray:
    """Values (p,), SI, of the uncertain numbers from their deviations (p,) in standard deviations."""
    mean = [machine.parameters.mean[machine.parameters.names.index(name)] for name in kinds.names]
    return np.array(mean, dtype=float) + kinds.scale * theta
