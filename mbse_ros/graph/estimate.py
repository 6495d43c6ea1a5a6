# SPDX-License-Identifier: Apache-2.0
"""Graphs that estimate the motion of a mechanism from measurements: states, forces, constant numbers and biases.

At each instant the nodes q, qd, qdd of Blanco-Claraco et al., factor graphs and ``Q``, a force along each independent
coordinate that the model lacks and that walks at random. Constraints, equations of motion (``inverse_dynamics``) and
the trapezoidal rule of the independent coordinates hold exactly, so that all that is not certain is the force, the
start and the sensors, and the intervals are those of the estimate: a soft integrator would make them as wide as its
sigma.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..dynamics.model import Model
from ..errors import SettingError
from .check import check_blind
from .factors.dynamics_factors import dynamics, equality, prior, trapezoid
from .factors.equations import FactorEquations
from .factors.sensor_factors import channels_of, sample_noise, sensor_factor
from .forward import DEPENDENT, GraphProblem, add_constraints, add_motion
from .graph import ALWAYS, FactorGraph, Steps
from .solvers.batch_solver import ITERATIONS, Solution, solve_batch


@dataclass(frozen=True)
class EstimationNoises:
    """What is not certain, as standard deviations; those of the start are of each independent coordinate.

    ``position`` (rad or m), ``velocity``, ``force`` (N m or N) at the start, infinite where nothing is known;
    ``force_walk``: density of the random walk of the force, (N m)2/s or N2/s, 0: the force does not change;
    ``stddev`` of samples by sensor, where not the file's; ``biases``: of constant biases by sensor; ``parameters``: of
    numbers of the file by name (``bodies.coupler.mass``) which are estimated as constants.
    """

    position: float | tuple[float, ...] = float(np.radians(5.0))
    velocity: float | tuple[float, ...] = float(np.radians(5.0))
    force: float | tuple[float, ...] = 30.0
    force_walk: float | tuple[float, ...] = 300.0
    stddev: Mapping[str, float] = field(default_factory=dict)
    biases: Mapping[str, float] = field(default_factory=dict)
    parameters: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class EstimatedMotion:
    """A motion at instants ``t`` (k,), s: ``q``, ``qd``, ``qdd`` (k, n), ``force`` (k, g) along the independent
    coordinates."""

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    force: np.ndarray


def estimation_graph(model: Model, sensors: Sequence[str], samples: np.ndarray, guess: EstimatedMotion,
                     noises: EstimationNoises = EstimationNoises(), inputs: np.ndarray | None = None,
                     start: tuple[np.ndarray, np.ndarray] | None = None) -> GraphProblem:
    """Graph of a log: ``samples`` (k, s) of the sensors' channels at the instants of ``guess``, NaN where missing.

    The guess is where the solver starts; its first instant is the mean of the start, where ``start`` does not give q
    and qd (n,). ``inputs`` (k, u) act at the instants. A sensor with fewer samples has fewer factors, so rates may
    differ. Raises SettingError.
    """
    equations = FactorEquations(model, forces=model.independent, unknown=tuple(noises.parameters))
    graph, t = FactorGraph(), np.asarray(guess.t, dtype=float)
    u = np.zeros((len(t), len(model.inputs))) if inputs is None else np.asarray(inputs, dtype=float)
    known = {'t': t, **({'u': u} if len(model.inputs) else {})}
    every = add_motion(graph, equations, len(t))
    graph.add_variables('Q', equations.g, every, equations.forces)
    _add_numbers(graph, equations, noises)
    _add_start(graph, equations, (guess.q[0], guess.qd[0]) if start is None else start, noises)
    add_constraints(graph, equations, DEPENDENT, every, t)
    _add_motion(graph, equations, every, t, known, noises)
    _add_sensors(graph, equations, sensors, samples, known, noises)
    initial = {'q': guess.q, 'qd': guess.qd, 'qdd': guess.qdd, 'Q': guess.force}
    if equations.unknown:
        initial['parameters'] = equations.numbers[equations.unknown_places]
    return GraphProblem(graph, graph.values(**initial), t, equations)


def _add_numbers(graph: FactorGraph, eq: FactorEquations, noises: EstimationNoises) -> None:
    """Numbers of the file that are estimated, around their values there."""
    if eq.unknown:
        graph.add_variables('parameters', len(eq.unknown), ALWAYS, eq.unknown)
        _prior(graph, 'parameters', ALWAYS, eq.numbers[eq.unknown_places], np.array(list(noises.parameters.values())))


def _add_start(graph: FactorGraph, eq: FactorEquations, start: tuple[np.ndarray, np.ndarray],
               noises: EstimationNoises) -> None:
    """What is known of the first instant."""
    for name, mean, stddev in (('q', start[0], noises.position), ('qd', start[1], noises.velocity)):
        _prior(graph, name, 0, mean[eq.z], np.broadcast_to(stddev, eq.g), eq.z, eq.n)
    _prior(graph, 'Q', 0, np.zeros(eq.g), np.broadcast_to(noises.force, eq.g))


def _prior(graph: FactorGraph, name: str, step: int, mean: np.ndarray, stddev: np.ndarray,
           places: Sequence[int] | None = None, size: int | None = None) -> None:
    """Prior of those components whose standard deviation is finite."""
    places = list(range(len(mean))) if places is None else list(places)
    finite = np.flatnonzero(np.isfinite(stddev))
    if len(finite):
        kind = prior(len(mean) if size is None else size, tuple(places[i] for i in finite))
        graph.add(kind, {'x': (name, step)}, np.asarray(stddev, dtype=float)[finite], {'x0': mean[finite]})


def _add_motion(graph: FactorGraph, eq: FactorEquations, every: np.ndarray, t: np.ndarray, known: dict[str, np.ndarray],
                noises: EstimationNoises) -> None:
    """Equations of motion, integrators and the walk of the force."""
    roles: dict[str, tuple[str, Steps]] = {role: (role, every) for role in ('q', 'qd', 'qdd', 'Q')}
    if eq.unknown:
        roles['parameters'] = ('parameters', ALWAYS)
    graph.add(dynamics(eq, force=True, unknown=bool(eq.unknown)), roles, 0.0, known)
    dt, kind = np.diff(t), trapezoid(eq.n, tuple(eq.z))
    for name, rate in (('q', 'qd'), ('qd', 'qdd')):
        graph.add(kind, {'x0': (name, every[:-1]), 'x1': (name, every[1:]), 'xd0': (rate, every[:-1]),
                         'xd1': (rate, every[1:])}, 0.0, {'dt': dt})
    walk = np.sqrt(np.outer(dt, np.broadcast_to(noises.force_walk, eq.g)))
    graph.add(equality(eq.g), {'x0': ('Q', every[:-1]), 'x1': ('Q', every[1:])}, walk, label='random_walk')


def _add_sensors(graph: FactorGraph, eq: FactorEquations, sensors: Sequence[str], samples: np.ndarray,
                 known: dict[str, np.ndarray], noises: EstimationNoises) -> None:
    """A factor for each sample of each sensor, where all of its channels are there."""
    column = 0
    for name in (*noises.stddev, *noises.biases):
        if name not in sensors:
            raise SettingError('noises', name, 'one of the sensors ' + ', '.join(sensors))
    sizes = [len(channels_of(eq, name).channels) for name in sensors]
    if np.shape(samples) != (len(known['t']), sum(sizes)):
        raise SettingError('samples', np.shape(samples), f'{len(known["t"])} instants of {sum(sizes)} channels')
    for name, size in zip(sensors, sizes):
        y = np.asarray(samples, dtype=float)[:, column:column + size]
        column += size
        add_sensor(graph, eq, name, y, known, sample_noise(eq, name, noises.stddev.get(name)),
                   noises.biases.get(name))


def add_sensor(graph: FactorGraph, eq: FactorEquations, name: str, y: np.ndarray, known: dict[str, np.ndarray],
               stddev: np.ndarray, bias: float | None = None) -> None:
    """Factors of one sensor's samples ``y`` (k, s) at steps 0 to k - 1; ``bias``: standard deviation of a constant
    one, as node ``bias.<sensor>``."""
    there = np.flatnonzero(np.isfinite(y).all(axis=1))
    if not len(there):
        return
    kind = sensor_factor(eq, name, bias is not None)
    roles = {role: ('parameters', ALWAYS) if role == 'parameters' else (role, there) for role in kind.variables}
    if bias is not None:
        node = f'bias.{name}'
        graph.add_variables(node, kind.rows, ALWAYS, channels_of(eq, name).channels)
        _prior(graph, node, ALWAYS, np.zeros(kind.rows), np.full(kind.rows, bias))
        roles['bias'] = (node, ALWAYS)
    constants = {role: y[there] if role == 'y' else known[role][there] for role in kind.constants}
    graph.add(kind, roles, stddev, constants, label=f'sensor {name}')


def solve_estimation(problem: GraphProblem, iterations: int = ITERATIONS) -> Solution:
    """The most likely values of a graph, by GTSAM.

    Raises GraphError, which names the variables, for parts without a link and for motions that no sensor and no prior
    sees, before the solver is started; DivergenceError with the iteration.
    """
    check_blind(problem.graph, problem.initial)
    return solve_batch(problem.graph, problem.initial, iterations)
