# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics as a graph: the forces that a prescribed motion takes (Blanco-Claraco et al., factor graphs, 5.3 and
7.2, Fig. 4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..dynamics.forces.prescribed import checked_times
from ..dynamics.model import Model
from ..errors import SettingError, check_choice
from .factors.dynamics_factors import dynamics, dynamics_independent, equality, prior
from .factors.equations import FactorEquations
from .forward import DEPENDENT, INDEPENDENT, Coordinates, GraphProblem, add_constraints, add_integrators
from .graph import FactorGraph
from .solvers.batch_solver import Solution, solve_batch

Path = Callable[[float], Sequence[float] | np.ndarray]       # t -> independent coordinates (g,)
METHODS = ('staged', 'joint')
STAGES = 4


@dataclass(frozen=True)
class InverseNoises:
    """Standard deviations of the factors of inverse dynamics.

    ``tracking`` of the prescribed coordinates, rad or m; ``integrator`` and ``dynamics`` as in forward dynamics;
    ``equality`` of q between instants, soft; ``acceleration``: of qdd between instants. The trapezoidal rule leaves a
    change of sign from instant to instant open, all the way; this factor, which the paper has not, decides it.
    """

    tracking: float = 1e-6
    integrator: float = 1e-1
    dynamics: float = 1e-2
    equality: float = 1e6
    acceleration: float = 1e6


@dataclass(frozen=True)
class GraphForces(Coordinates):
    """Motion and forces at times ``t`` (k,), s: ``solution`` holds all variables, ``q, qd, qdd`` (k, n); ``forces``
    (k,) by actuated coordinate, N or N m; ``tracking`` (k, g): what is left of the prescribed coordinates."""

    t: np.ndarray
    solution: Solution
    forces: dict[str, np.ndarray]
    tracking: np.ndarray

    def __getitem__(self, name: str) -> np.ndarray:
        return self.solution[name]


@dataclass(frozen=True)
class InverseProblem(GraphProblem):
    """A graph of inverse dynamics: the prescribed ``z`` (k, g) at ``times``."""

    z: np.ndarray


def solve_inverse(model: Model, times: Sequence[float] | np.ndarray, motion: Path, method: str = 'staged', *,
                  form: str = 'dependent', noises: InverseNoises = InverseNoises()) -> GraphForces:
    """Forces along the independent coordinates, which follow ``motion``: t -> z (g,), at evenly spaced times, s.

    ``method``: 'staged', the four stages of 7.2, each solved with what the one before found, the last one with the
    motion held; or 'joint', all at once. Raises SettingError, PositionProblemError, GraphError, DivergenceError.
    """
    check_choice('method', method, METHODS)
    known: dict[str, np.ndarray] = {}
    for stage in range(1, STAGES + 1) if method == 'staged' else (STAGES,):
        held = method == 'staged' and stage == STAGES
        problem = inverse_graph(model, times, motion, stage=stage, form=form, held=known if held else None,
                                noises=noises)
        graph = problem.graph
        initial = problem.initial
        for name, value in known.items():
            graph.of(initial, name)[...] = value
        solution = solve_batch(graph, initial, connected=not held)
        known = {name: solution[name] for name in graph.series}
    eq = problem.equations
    forces = {name: solution['Q'][:, eq.forces.index(name)] for name in model.independent}
    return GraphForces(problem.times, solution, forces, solution['q'][:, eq.z] - problem.z)


def inverse_graph(model: Model, times: Sequence[float] | np.ndarray, motion: Path, *, stage: int = STAGES,
                  form: str = 'dependent', held: dict[str, np.ndarray] | None = None,
                  noises: InverseNoises = InverseNoises()) -> InverseProblem:
    """Graph of Fig. 4 up to a stage of 7.2 (4: all of it), with the positions of Newton's method to start from.

    ``held``: values (k, size) by name that are given instead of the factors of their stages.
    """
    check_choice('form', form, _FORMS)
    if not model.z:
        raise SettingError('mechanism', model.description.name, 'a mechanism with a degree of freedom to prescribe')
    times = checked_times(np.asarray(times))
    dt = np.diff(times)
    if len(times) < 2 or np.ptp(dt) > 1e-6 * dt[0]:
        raise SettingError('times', times, 'two or more evenly spaced times, s')
    z = np.array([np.reshape(motion(t), len(model.z)) for t in times], dtype=float)
    q = positions(model, z, times)
    eq = FactorEquations(model, None if form == 'dependent' else model.independent)
    names = _FORMS[form]
    graph, every = FactorGraph(), np.arange(len(times))
    for name in names[stage - 1]:
        size = {'Q': len(eq.forces), 'z': eq.g, 'zd': eq.g, 'zdd': eq.g}.get(name, eq.n)
        graph.add_variables(name, size, every, {'Q': eq.forces}.get(name, [eq.names[i] for i in eq.z]
                                                                     if size == eq.g else eq.names))
    if held is None:
        _add_motion(graph, eq, form, stage, z, times, float(dt.mean()), noises)
    else:
        for name in held:
            graph.add(prior(graph.series[name].size), {'x': (name, every)}, 0.0, {'x0': held[name]}, label='held')
    if stage == STAGES:
        _add_forces(graph, eq, form, every, times, noises)
    start = {'q': q, 'z': z}
    return InverseProblem(graph, graph.values(**{name: start[name] for name in start if name in graph.series}), times,
                          eq, z)


# Variables of each stage.
_FORMS = {'dependent': (('q',), ('q', 'qd', 'qdd'), ('q', 'qd', 'qdd'), ('q', 'qd', 'qdd', 'Q')),
          'independent': (('q', 'z'), ('q', 'z', 'zd', 'zdd'), ('q', 'z', 'zd', 'zdd', 'qd', 'qdd'),
                          ('q', 'z', 'zd', 'zdd', 'qd', 'qdd', 'Q'))}


def _add_motion(graph: FactorGraph, eq: FactorEquations, form: str, stage: int, z: np.ndarray, times: np.ndarray,
                dt: float, noises: InverseNoises) -> None:
    """Factors of stages 1 to 3: positions, integrators, velocity constraints."""
    every = np.arange(len(times))
    independent = form == 'independent'
    chosen = prior(eq.g) if independent else prior(eq.n, tuple(eq.z))
    graph.add(chosen, {'x': ('z' if independent else 'q', every)}, noises.tracking, {'x0': z}, label='tracking')
    graph.add(equality(eq.n), {'x0': ('q', every[:-1]), 'x1': ('q', every[1:])}, noises.equality)
    if stage >= 2:
        names, size = (('z', 'zd', 'zdd'), eq.g) if independent else (('q', 'qd', 'qdd'), eq.n)
        add_integrators(graph, names, size, every, dt, noises.integrator)
        for name, sigma in ((names[1], noises.acceleration), (names[2], noises.acceleration)):
            graph.add(equality(size), {'x0': (name, every[:-1]), 'x1': (name, every[1:])}, sigma, label='smooth')
    constraints = INDEPENDENT if independent else DEPENDENT
    add_constraints(graph, eq, constraints if stage >= 3 else constraints[:1], every, times)


def _add_forces(graph: FactorGraph, eq: FactorEquations, form: str, every: np.ndarray, times: np.ndarray,
                noises: InverseNoises) -> None:
    """Factors of stage 4: inverse dynamics, and no force where there is no actuator."""
    kind = dynamics_independent(eq, force=True) if form == 'independent' else dynamics(eq, force=True)
    u = {'u': np.zeros(len(eq.model.inputs))} if eq.model.inputs else {}
    graph.add(kind, {role: (role, every) for role in kind.variables}, noises.dynamics, {'t': times, **u})
    passive = tuple(k for k, place in enumerate(eq.force_places) if place not in eq.z)
    if passive:
        graph.add(prior(len(eq.forces), passive), {'x': ('Q', every)}, 0.0, {'x0': np.zeros(len(passive))},
                  label='no force')


def positions(model: Model, z: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Coordinates (k, n) at independent ones (k, g), one after the other by Newton's method."""
    q, found = model.start.q, []
    for row, t in zip(z, times):
        q = model.position(row, q, t)
        found.append(q)
    return np.array(found)
