# SPDX-License-Identifier: Apache-2.0
"""``smooth_machine``: the most likely motion and payload of a whole log of a hydraulic machine.

``Likelihood``: how likely the measurements are with other noises than the graph's, and how uncertain a solution is
in truth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...machine import Machine
from ...payload.mass import NORMAL
from ..factors.dynamics_factors import prior
from ..factors.machine_factors import MPA, MachineKinds, machine_kinds
from ..graph import ALWAYS, FactorGraph
from ..solvers.batch_solver import Solution, marginals, solve_soft
from ..solvers.elimination import Linear, Lineariser, Packing
from .machine_graph import MachineGraphSettings, along, machine_graph, moving, trusted_motion
from .machine_log import MachineLog

FORCES = (1.0, 30.0, 100.0, 300.0, 1000.0)      # N: standard deviations of the unknown force to choose from
SHARES = (0.1, 0.01)            # of the density of the acceleration, to choose from
ROUGH = 3.0         # standard deviations: a jerk so large says that the motion is rougher than the settings
WIDER = 10.0        # times the density of its coordinate, again and again
ROUNDS = 4          # at most
SWINGING = 3.0      # times the slowest speed, by the smoothed speeds of a rough motion: friction bends below
HASTE = 12          # iterations that do to see how rough it is


class Likelihood:
    """Logarithm of the likelihood of all constants of a graph of soft factors, linearised at x (size,), up to a number
    that depends on the number of rows alone.

    ``-|A dx + e|^2 / 2 - log det R - sum(log sigma)`` with the rows divided by their sigma, dx least squares, R of
    A = QR. A call takes how many times as large the sigmas of factors are, by their label: nothing is built again.
    """

    def __init__(self, graph: FactorGraph, x: np.ndarray) -> None:
        self.graph, self.linear, self.packing = graph, Lineariser(graph)(x), Packing(graph)

    def __call__(self, scales: Mapping[str, float] | None = None) -> float:
        """Logarithm of the likelihood with the sigmas of these labels so many times as large (``{label: factor}``)."""
        scales, packing = scales or {}, self.packing
        factors = [scales.get(item.factors.label, 1.0) for item in self.linear]
        linear = [Linear(item.factors, item.e / by, item.J / by) for item, by in zip(self.linear, factors)]
        net = packing.net(linear)
        dx, found = packing.optimum(net), 0.0
        for item, by in zip(linear, factors):
            rest = item.e + np.einsum('krw,kw->kr', item.J, dx[self.graph.places(item.factors)])
            found -= 0.5 * float(np.sum((rest / item.factors.sigma) ** 2))
            found -= float(np.sum(np.log(by * item.factors.sigma)))
        for i in range(len(packing.nodes)):
            R = np.diag(net.at(i).R())
            found -= float(np.sum(np.log(np.abs(R / packing.sigmas(net.at(i), len(R))))))
        return found


def sandwich_stddev(graph: FactorGraph, x: np.ndarray, name: str, likely: Mapping[str, float]) -> float:
    """Standard deviation of a constant of size 1, found with the graph's sigmas, where those of the factors labelled
    as in ``likely`` are in truth so many times as large.

    ``x^ = x - P J' W r`` for rows J with residuals r, so the variance is ``sum((J u)^2 w^2 var r)`` with u the column
    of P that belongs to the constant. It is found by pulling at the constant: ``(P^-1 + e e'/s^2) dx = e/s^2``.
    """
    probed = replace(graph, factors=list(graph.factors), _series=None)
    probe = probed.add(prior(1), {'x': (name, ALWAYS)}, 1.0, {'x0': np.zeros(1)}, label='probe')
    pulled = [replace(item, e=np.zeros_like(item.e) if item.factors is not probe else -np.ones_like(item.e))
              for item in Lineariser(probed)(x)]
    dx = Packing(probed).solve(pulled)
    share = float(dx[graph.series[name].first])         # P / (1 + P)
    u, variance = dx / (1.0 - share), 0.0
    for item in pulled:
        if item.factors is not probe:
            ratio = np.einsum('krw,kw->kr', item.J, u[graph.places(item.factors)]) / item.factors.sigma
            variance += float(np.sum(ratio ** 2)) * likely.get(item.factors.label, 1.0) ** 2
    return float(np.sqrt(variance))


@dataclass(frozen=True)
class MachineSmoothed:
    """Smoothed motion and mass, SI. ``t`` (n,), s; ``position``, ``velocity``, ``acceleration`` (n, g) of the machine's
    coordinates, ``pressure`` (n, volumes), ``unknown_force`` (n, a), N or N m, along the coordinates that cylinders
    move; ``stddev``: the standard deviations by these names.

    ``mass``, ``mass_stddev`` (n,), kg: after the samples that each instant's estimate knows; in a batch all the same.
    ``parameters`` (p,) and ``parameters_stddev``: what the log says of the numbers ``names`` of the machine's file.
    ``balanced`` (n,): whether any forces of the instant counted; ``force``: stddev of the unknown force, N at a piston.
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


def smooth_machine(machine: Machine, log: MachineLog, settings: MachineGraphSettings = MachineGraphSettings(),
                   kinds: MachineKinds | None = None) -> MachineSmoothed:
    """The whole log at once. ``kinds`` may be shared between logs of one machine.

    Raises GraphError where something needed is not measured or the pistons never move (friction at standstill hides
    the mass), SettingError for a log of a wrong shape, DivergenceError where no solution is found, PositionProblemError
    where the mechanism cannot be at the first sample, DescriptionError without a payload.
    """
    kinds = kinds or machine_kinds(machine)
    motion, balanced = trusted_motion(machine, kinds, log, settings)
    force, rough, x = settings.unknown_force or FORCES[0], np.ones(len(machine.coordinates)), None

    def solve(start: np.ndarray | None, roughly: int | None = None) -> Solution:
        graph = machine_graph(machine, kinds, log, settings, motion, balanced, force, rough)
        return solve_soft(graph, graph.values(**motion.start) if start is None else start, start is None, roughly)

    for _ in range(ROUNDS):
        solution = solve(x, HASTE)
        wider = roughness(solution, kinds) > ROUGH
        rough, x = np.where(wider, WIDER, 1.0) * rough, solution.x
        if (rough == 1.0).all():
            break
        before = balanced
        swinging = along(machine, kinds, {'z': solution['z'], 'zd': solution['zd']})
        # Smoothed speeds swing where slopes do not: what both count, or as before where nothing would be left.
        both = before & moving(machine, kinds, log, settings, swinging, SWINGING)
        balanced = both if both.any() else before
        if not wider.any() and (balanced == before).all():
            break
    if solution.iterations == HASTE or (rough != 1.0).any():
        solution = solve(solution.x)
    likelihood = Likelihood(solution.graph, solution.x)
    if settings.unknown_force == 0.0:
        force = likely_force(likelihood)
        if force != FORCES[0]:
            solution = solve(solution.x)
            likelihood = Likelihood(solution.graph, solution.x)
    likely = {kinds.jerk.name: likely_scale(likelihood, kinds.jerk.name)}
    stddev = sandwich_stddev(solution.graph, solution.x, 'payload', likely)
    nodes, (mass, _), theta = known_of(solution, kinds)
    both = np.tile([[mass], [stddev]], len(log.t))
    return smoothed(machine, kinds, log.t, nodes, both, theta, balanced=np.any(balanced, axis=1), force=force,
                    iterations=solution.iterations)


def roughness(solution: Solution, kinds: MachineKinds) -> np.ndarray:
    """Largest change of the motion of each coordinate (g,) that white jerk does not expect, in standard deviations."""
    item, = (item for item in solution.linear if item.factors.kind is kinds.jerk)
    return np.abs(item.e / item.factors.sigma).reshape(len(item.e), 3, -1).max(axis=(0, 1))


def likely_force(likelihood: Likelihood) -> float:
    """The standard deviation of the unknown force, N, that makes the samples most likely, of a graph with the
    least."""
    return FORCES[0] * _likeliest(likelihood, [force / FORCES[0] for force in FORCES[1:]], 'start', 'damped_walk')


def likely_scale(likelihood: Likelihood, label: str) -> float:
    """How many times as large as the graph's the sigma of the acceleration's random walk is that makes the samples most
    likely.

    The graph's is that of steps of valves and gives the estimate, which a stiffer one would bend: what it cannot follow
    of a ramp it would blame on the machine's numbers. But so much noise is seldom there, and the interval of the mass
    is that of the noise that is.
    """
    return _likeliest(likelihood, [float(np.sqrt(share)) for share in SHARES], label)


def _likeliest(likelihood: Likelihood, scales: Sequence[float], *labels: str) -> float:
    """The scale of the sigmas of some factors up to which the likelihood grows, 1 where it does not."""
    best, chosen = likelihood(), 1.0
    for scale in scales:
        found = likelihood(dict.fromkeys(labels, scale))
        if found <= best:
            break
        best, chosen = found, scale
    return chosen


def known_of(solution: Solution, kinds: MachineKinds) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Values and standard deviations of a solution: of its nodes (2, n, size) by name, SI, of the mass (2,), kg, and of
    the uncertain numbers (2, p), in their standard deviations."""
    found = marginals(solution)

    def both(node: str) -> np.ndarray:
        return np.array([solution[node], found.stddev(node)])

    return ({name: unit * both(node) for name, (node, unit) in NODES.items()}, both('payload')[:, 0, 0],
            both('parameters')[:, 0] if kinds.names else np.zeros((2, 0)))


def smoothed(machine: Machine, kinds: MachineKinds, t: np.ndarray, nodes: dict[str, np.ndarray], mass: np.ndarray,
             theta: np.ndarray, balanced: np.ndarray, force: float, iterations: int) -> MachineSmoothed:
    """Result of what ``known_of`` gives, the mass (2, n) for each instant."""
    mean = machine.parameters.mean[[machine.parameters.names.index(name) for name in kinds.names]]
    return MachineSmoothed(t, **{name: values for name, (values, _) in nodes.items()}, mass=mass[0],
                           mass_stddev=mass[1], stddev={name: stddev for name, (_, stddev) in nodes.items()},
                           names=kinds.names, parameters=mean + kinds.factor @ theta[0],
                           parameters_stddev=np.sqrt(kinds.factor ** 2 @ theta[1] ** 2), balanced=balanced,
                           force=force, iterations=iterations)
