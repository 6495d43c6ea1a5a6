# SPDX-License-Identifier: Apache-2.0
"""Windows, ISAM2, GTSAM's own optimizers: one solution; forward and inverse dynamics of Blanco-Claraco et al., factor
graphs, section 7."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mbse_ros.dynamics.forces.driven_motion import inverse_dynamics
from mbse_ros.dynamics.model import load_model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.errors import DivergenceError, SettingError
from mbse_ros.graph import (
    FactorGraph,
    forward_graph,
    simulate_fixed_lag,
    solve_batch,
    solve_fixed_lag,
    solve_incremental,
    solve_inverse,
)
from mbse_ros.graph.factors.dynamics_factors import equality, prior
from mbse_ros.graph.forward_lag import ForwardLag
from mbse_ros.graph.solvers import batch_solver
from mbse_ros.graph.solvers.batch_solver import marginals, solve_soft
from mbse_ros.graph.solvers.to_gtsam import to_gtsam

DT = 1e-3


@pytest.fixture(scope='module')
def model():
    return load_model('four_bar_adams', backend='vm')


@pytest.fixture
def gtsam():
    return pytest.importorskip('gtsam', reason='GTSAM is not installed (extra "graph")')


def unknown_later(problem):
    """Values that only the first instant has."""
    x = problem.initial.copy()
    for name in problem.graph.series:
        problem.graph.of(x, name)[1:] = np.nan
    return x


@pytest.mark.parametrize('form, window', [('dependent', 2), ('independent', 2), ('dependent', 4)])
def test_compiled_window_is_the_graph(gtsam, model, form, window):
    """The compiled window and GTSAM's solution of the same windows agree to the last digits."""
    problem = forward_graph(model, 0.02, DT, form=form)
    found = solve_fixed_lag(problem.graph, unknown_later(problem), window)
    motion = simulate_fixed_lag(model, 0.02, DT, window, form=form)
    for name in problem.graph.series:           # before, the first windows are still growing
        assert found.of(found.newest, name)[window - 1:] == pytest.approx(motion.values[name][window - 1:], abs=1e-10)


@pytest.mark.parametrize('form, bound', [('dependent', 3e-5), ('independent', 1e-4)])
@pytest.mark.parametrize('window', [2, 3])
def test_forward_dynamics_by_windows(model, form, bound, window):
    """Blanco-Claraco et al., factor graphs, Table 1 (5 s there), and the constraints hold."""
    exact = simulate(model, 0.5, DT, 'dop853')
    motion = simulate_fixed_lag(model, 0.5, DT, window, form=form)
    assert np.sqrt(np.mean((motion.q - exact.q) ** 2)) < bound
    assert max(np.abs(model.residual(q)[0]).max() for q in motion.q) < 1e-10
    assert max(np.abs(model.residual(q)[1] @ qd).max() for q, qd in zip(motion.q, motion.qd)) < 1e-10


@pytest.mark.parametrize('form', ['dependent', 'independent'])
def test_second_order(model, form):
    exact = simulate(model, 1.0, 4 * DT, 'dop853')
    errors = [np.sqrt(np.mean((simulate_fixed_lag(model, 1.0, dt, form=form).q[::round(4 * DT / dt)] - exact.q) ** 2))
              for dt in (4 * DT, 2 * DT)]
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)


def test_inputs_reach_the_window(model):
    """A torque that changes over time, in a window of three."""
    torque = lambda t: np.array([8.0 * np.sin(3.0 * t)])     # noqa: E731
    exact = simulate(model, 0.2, DT, 'dop853', inputs=lambda t, q, qd: torque(t))
    motion = simulate_fixed_lag(model, 0.2, DT, 3, inputs=torque)
    assert motion.q == pytest.approx(exact.q, abs=3e-6)
    assert not np.allclose(motion.q, simulate_fixed_lag(model, 0.2, DT, 3).q, atol=1e-3)


def test_divergence_names_the_step(model):
    smoother = ForwardLag(model, 0.5, 2)
    with pytest.raises(DivergenceError, match='fixed-lag smoother.*step'):
        smoother.run(5.0)


@pytest.mark.parametrize('window, stride', [(1, 1), (3, 3), (4, 0)])
def test_windows_that_cannot_be(gtsam, model, window, stride):
    problem = forward_graph(model, 0.005, DT)
    with pytest.raises(SettingError, match='window'):
        solve_fixed_lag(problem.graph, problem.initial, window, stride=stride)


def smoothing(count=30, constant=True):
    """A linear problem with its data: a random walk seen with an offset that does not change."""
    rng, graph, every = np.random.default_rng(2), FactorGraph(), np.arange(count)
    graph.add_variables('x', 2, every)
    graph.add(prior(2), {'x': ('x', [0])}, 0.0, {'x0': [1.0, -1.0]})
    graph.add(equality(2), {'x0': ('x', every[:-1]), 'x1': ('x', every[1:])}, 0.3)
    graph.add(prior(2), {'x': ('x', every)}, np.array([0.5, 0.2]), {'x0': rng.normal(size=(count, 2))}, label='seen')
    if constant:
        graph.add_variables('offset', 2)
        graph.add(equality(2), {'x0': ('x', every), 'x1': ('offset', -1)}, 0.7)
    return graph

@pytest.mark.parametrize('rounding', [1e-9, 1e-3])
def test_at_the_minimum_rounding_is_no_divergence(monkeypatch, rounding):
    """No step lowers the cost there: a log was given up where the solver had arrived. A cost that really rises is."""
    graph, calls, cost = smoothing(constant=False), [], batch_solver.cost
    found = solve_soft(graph, np.zeros(graph.size))

    def rising(linear):
        calls.append(linear)
        return replace(cost(linear), soft=cost(linear).soft + rounding * len(calls))
    monkeypatch.setattr(batch_solver, 'cost', rising)
    if rounding < batch_solver.STILL:
        assert solve_soft(graph, found.x).x == pytest.approx(found.x, abs=1e-12)
    else:
        with pytest.raises(DivergenceError, match='no convergence .* no step helps'):
            solve_soft(graph, found.x)



@pytest.mark.parametrize('constant', [False, True])
@pytest.mark.parametrize('stride', [1, 3])
def test_marginal_windows_are_exact_for_linear_graphs(gtsam, constant, stride):
    """The newest estimate of a window is that of all data so far: at the end, the batch's."""
    graph = smoothing(constant=constant)
    batch, found = solve_batch(graph, graph.values()), solve_fixed_lag(graph, graph.values(), 5, 'marginal', stride)
    assert found.of(found.lagged, 'x')[-5:] == pytest.approx(batch['x'][-5:], abs=1e-10)
    short = smoothing(count=16, constant=constant)
    rows = {factors.label: factors for factors in graph.factors}
    for factors in short.factors:
        factors.constants[...] = rows[factors.label].constants[:len(factors)]
    if stride == 1:
        assert found.of(found.newest, 'x')[15] == pytest.approx(solve_batch(short, short.values())['x'][15], abs=1e-10)


def test_isam2_is_the_batch(gtsam, model):
    problem = forward_graph(model, 0.015, DT)
    batch = solve_batch(problem.graph, problem.initial)
    assert solve_incremental(problem.graph, unknown_later(problem)) == pytest.approx(batch.x, abs=1e-9)
    graph = smoothing()
    assert solve_incremental(graph, graph.values()) == pytest.approx(solve_batch(graph, graph.values()).x, abs=1e-9)


@pytest.mark.parametrize('form', ['dependent', 'independent'])
def test_native_graph(gtsam, model, form):
    """In GTSAM's classes the graph has the same cost and the same solution."""
    problem = forward_graph(model, 0.01, DT, form=form)
    batch = solve_batch(problem.graph, problem.initial)
    native, values, keys = to_gtsam(problem.graph, batch.x)
    assert native.error(values) == pytest.approx(batch.cost.soft, rel=1e-6)
    parameters = gtsam.GaussNewtonParams()
    parameters.setLinearSolverType('MULTIFRONTAL_QR')
    native, values, keys = to_gtsam(problem.graph, problem.initial)
    found = gtsam.GaussNewtonOptimizer(native, values, parameters).optimize()
    assert np.array([found.atVector(keys('q', k)) for k in range(11)]) == pytest.approx(batch['q'], abs=1e-10)


def test_marginals_against_gtsam(gtsam):
    """GTSAM's Marginals, of a graph without exact rows (with them it has none)."""
    graph = smoothing()
    graph.factors[0].sigma[...] = 0.1
    solution = solve_batch(graph, graph.values())
    native, values, keys = to_gtsam(graph, solution.x)
    expected, here = gtsam.Marginals(native, values), marginals(solution)
    for step in (0, 7, 29):
        assert here.covariance('x')[step] == pytest.approx(expected.marginalCovariance(keys('x', step)), rel=1e-9)
    assert here.covariance('offset')[0] == pytest.approx(expected.marginalCovariance(keys('offset', -1)), rel=1e-9)


@pytest.mark.parametrize('method', ['staged', 'joint'])
@pytest.mark.parametrize('form', ['dependent', 'independent'])
def test_inverse_dynamics(gtsam, model, method, form):
    """The torque of the model's own inverse dynamics, to the discretisation, and the path is kept."""
    path = lambda t: [1.2 * (1 - np.cos(2 * t))]        # noqa: E731
    times = 0.005 * np.arange(81)
    found = solve_inverse(model, times, path, method, form=form)
    exact = inverse_dynamics(model, times, lambda t: (path(t), [2.4 * np.sin(2 * t)], [4.8 * np.cos(2 * t)]))
    assert np.sqrt(np.mean((found.forces['theta'] - exact.forces['theta']) ** 2)) < 0.011
    assert np.abs(found.tracking).max() < 1e-4
    assert max(np.abs(model.residual(q)[0]).max() for q in found.q) < 1e-10


def test_torque_of_adams(gtsam, model, shared_data):
    """Blanco-Claraco et al., factor graphs, 7.2, over the first 2 s of the run of MSC Adams."""
    table = np.loadtxt(shared_data / 'InverseDynamics_4bars_MSC.tab', comments='%')[:400]
    found = solve_inverse(model, table[:, 0], lambda t: [1.2 * (1 - np.cos(2 * t))])
    error = found.forces['theta'] + table[:, 1]
    assert np.sqrt(np.mean(error ** 2)) < 0.011
    assert np.abs(found.tracking).max() < 1e-4


def test_inverse_dynamics_of_bad_input(model):
    with pytest.raises(SettingError, match='evenly spaced'):
        solve_inverse(model, [0.0, 0.1, 0.3], lambda t: [t])
    with pytest.raises(SettingError, match='degree of freedom'):
        solve_inverse(load_model('four_bar_adams_driven', backend='vm'), [0.0, 0.1], lambda t: [])
    with pytest.raises(SettingError, match='staged, joint'):
        solve_inverse(model, [0.0, 0.1], lambda t: [t], 'at once')
