# SPDX-License-Identifier: Apache-2.0
"""Graphs of forward dynamics: a mechanism that moves under known forces (Blanco-Claraco et al., factor graphs, Figs. 2
and 3, Table 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from ..dynamics.model import Model, State
from ..dynamics.motion import step_count
from ..errors import check_choice, check_positive
from .factors.dynamics_factors import constraint, dynamics, dynamics_independent, equality, euler, prior, trapezoid
from .factors.equations import FactorEquations
from .graph import FactorGraph

Inputs = Callable[[float], np.ndarray]
INTEGRATORS = ('trapezoid', 'euler')
DEPENDENT = ('position', 'velocity')       # constraints of the forms
INDEPENDENT = ('position_independent', 'velocity_independent', 'acceleration_independent')


@dataclass(frozen=True)
class ForwardNoises:
    """Standard deviations of the factors of forward dynamics: Blanco-Claraco et al., factor graphs, Table 2, which
    gives variances.

    ``equality`` is the soft equality of q in the independent form; it pulls the result towards standing still, and the
    paper's variance of 1e2 costs a factor of 400 in accuracy against this one.
    """

    integrator: float = 1e-1
    dynamics: float = 1e-2
    equality: float = 1e3


class Coordinates:
    """Values (k, n) of all coordinates, of what has values by name."""

    q = property(lambda self: self['q'], doc='Coordinates.')
    qd = property(lambda self: self['qd'], doc='Velocities.')
    qdd = property(lambda self: self['qdd'], doc='Accelerations.')


@dataclass(frozen=True)
class GraphProblem:
    """A graph with values to start from: ``times`` (k,), s, of the instants, ``initial`` (size,)."""

    graph: FactorGraph
    initial: np.ndarray
    times: np.ndarray
    equations: FactorEquations


def forward_graph(model: Model, duration: float, dt: float, *, form: str = 'dependent', integrator: str = 'trapezoid',
                  inputs: Inputs | None = None, start: State | None = None,
                  noises: ForwardNoises = ForwardNoises()) -> GraphProblem:
    """Graph of the motion over ``duration``, s, in steps of ``dt``, s, from the model's start or another state.

    ``form``: 'dependent' (Fig. 2: nodes q, qd, qdd) or 'independent' (Fig. 3: z, zd, zdd too). ``integrator``:
    'trapezoid' or 'euler'. ``inputs``: function t -> u (k,). The values to start from stand still, with the first
    instant's accelerations. Raises SettingError.
    """
    check_choice('form', form, _FORMS)
    check_choice('integrator', integrator, INTEGRATORS)
    first = model.start if start is None else start
    times, known = instants(model, first, duration, dt, inputs)
    equations, graph = FactorEquations(model), FactorGraph()
    initial = _FORMS[form](graph, equations, first, known, dt, integrator, noises)
    return GraphProblem(graph, graph.values(**initial), times, equations)


def _dependent(graph: FactorGraph, eq: FactorEquations, start: State, known: dict[str, np.ndarray], dt: float,
               integrator: str, noises: ForwardNoises) -> dict[str, np.ndarray]:
    """Factors of Fig. 2; values to start from."""
    every = add_motion(graph, eq, len(known['t']))
    graph.add(prior(eq.n), {'x': ('q', 0)}, 0.0, {'x0': start.q})
    graph.add(prior(eq.n), {'x': ('qd', 0)}, 0.0, {'x0': start.qd})
    add_constraints(graph, eq, DEPENDENT, every[1:], known['t'][1:])
    graph.add(dynamics(eq), {role: (role, every) for role in ('q', 'qd', 'qdd')}, noises.dynamics, known)
    add_integrators(graph, ('q', 'qd', 'qdd'), eq.n, every, dt, noises.integrator, integrator)
    return {'q': start.q, 'qd': start.qd, 'qdd': first_acceleration(eq, start, known)}


def _independent(graph: FactorGraph, eq: FactorEquations, start: State, known: dict[str, np.ndarray], dt: float,
                 integrator: str, noises: ForwardNoises) -> dict[str, np.ndarray]:
    """Factors of Fig. 3; values to start from."""
    times = known['t']
    every = add_motion(graph, eq, len(times))
    for name in ('z', 'zd', 'zdd'):
        graph.add_variables(name, eq.g, every, (eq.names[i] for i in eq.z))
    graph.add(prior(eq.g), {'x': ('z', 0)}, 0.0, {'x0': start.q[eq.z]})
    graph.add(prior(eq.g), {'x': ('zd', 0)}, 0.0, {'x0': start.qd[eq.z]})
    graph.add(prior(eq.n), {'x': ('q', 0)}, noises.equality, {'x0': start.q})
    add_constraints(graph, eq, INDEPENDENT, every, times)
    graph.add(equality(eq.n), {'x0': ('q', every[:-1]), 'x1': ('q', every[1:])}, noises.equality)
    graph.add(dynamics_independent(eq), {role: (role, every) for role in ('z', 'zd', 'zdd', 'q')}, noises.dynamics,
              known)
    add_integrators(graph, ('z', 'zd', 'zdd'), eq.g, every, dt, noises.integrator, integrator)
    qdd = first_acceleration(eq, start, known)
    return {'q': start.q, 'qd': start.qd, 'qdd': qdd, 'z': start.q[eq.z], 'zd': start.qd[eq.z], 'zdd': qdd[:, eq.z]}


_FORMS = {'dependent': _dependent, 'independent': _independent}


def add_motion(graph: FactorGraph, eq: FactorEquations, count: int) -> np.ndarray:
    """Variables q, qd, qdd at so many instants; their steps."""
    every = np.arange(count)
    for name in ('q', 'qd', 'qdd'):
        graph.add_variables(name, eq.n, every, eq.names)
    return every


def add_constraints(graph: FactorGraph, eq: FactorEquations, names: Iterable[str], steps: np.ndarray, times: np.ndarray
                    ) -> None:
    """Constraints of these names (``dynamics_factors.ROLES``), exact; none that has no rows."""
    for kind in (constraint(eq, name) for name in names):
        if kind.rows:
            graph.add(kind, {role: (role, steps) for role in kind.variables}, 0.0, {'t': times})


def add_integrators(graph: FactorGraph, names: tuple[str, ...], size: int, steps: np.ndarray, dt: float,
                    sigma: float, integrator: str = 'trapezoid') -> None:
    """Integrators of each name from the next one, between all instants."""
    kind = {'trapezoid': trapezoid, 'euler': euler}[integrator](size)
    for name, rate in zip(names, names[1:]):
        roles = {'x0': (name, steps[:-1]), 'x1': (name, steps[1:]), 'xd0': (rate, steps[:-1])}
        if integrator == 'trapezoid':
            roles['xd1'] = (rate, steps[1:])
        graph.add(kind, roles, sigma, {'dt': dt})


def instants(model: Model, start: State, duration: float, dt: float, inputs: Inputs | None
             ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Times (k,) and the constants t and u of each; SettingError where dt does not divide the duration."""
    check_positive(duration=duration)
    times = start.t + dt * np.arange(step_count(duration, dt) + 1)
    u = np.array([np.zeros(len(model.inputs)) if inputs is None else inputs(t) for t in times])
    return times, {'t': times, **({'u': u} if len(model.inputs) else {})}


def first_acceleration(eq: FactorEquations, start: State, known: dict[str, np.ndarray]) -> np.ndarray:
    """Accelerations (k, n): those of the model at the first instant, then zero."""
    qdd = np.zeros((len(known['t']), eq.n))
    u = known['u'][0] if 'u' in known else np.zeros(0)
    qdd[0] = eq.model.accelerations(start.q, start.qd, u, start.t)
    return qdd
