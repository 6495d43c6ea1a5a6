# SPDX-License-Identifier: Apache-2.0
"""Graphs as data, what is wrong with them, and all their variables at once."""

from __future__ import annotations

import sys

import casadi as ca
import numpy as np
import pytest
import scipy.linalg

from mbse_ros.dynamics.model import load_model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.errors import DivergenceError, GraphError, MissingModuleError, SettingError
from mbse_ros.graph import ALWAYS, FactorGraph, check_graph, forward_graph, solve_batch
from mbse_ros.graph.factors.dynamics_factors import equality, prior
from mbse_ros.graph.factors.kinds import FactorKind
from mbse_ros.graph.solvers.batch_solver import marginals
from mbse_ros.graph.solvers.elimination import Lineariser, Packing


@pytest.fixture(scope='module')
def model():
    return load_model('four_bar_adams', backend='vm')


@pytest.fixture
def gtsam():
    return pytest.importorskip('gtsam', reason='GTSAM is not installed (extra "graph")')


def walk(count=6, anchored=True):
    """A random walk of two numbers with a constant offset."""
    graph, every = FactorGraph(), np.arange(count)
    graph.add_variables('x', 2, every, ('east', 'north'))
    graph.add_variables('offset', 2)
    graph.add(equality(2), {'x0': ('x', every[:-1]), 'x1': ('x', every[1:])}, 0.5)
    graph.add(equality(2), {'x0': ('x', every), 'x1': ('offset', ALWAYS)}, np.array([0.1, 0.2]))
    if anchored:
        graph.add(prior(2), {'x': ('x', [0])}, 0.0, {'x0': [1.0, 2.0]})
    return graph


def dense(graph, x):
    """Jacobian, residuals and sigmas of all rows."""
    lineariser = Lineariser(graph)
    rows, errors, sigmas = [], [], []
    for item, places in zip(lineariser(x), lineariser.places):
        for e, J, sigma, at in zip(item.e, item.J, item.factors.sigma, places):
            block = np.zeros((len(e), graph.size))
            block[:, at] = J
            rows.append(block), errors.append(e), sigmas.append(sigma)
    return np.vstack(rows), np.concatenate(errors), np.concatenate(sigmas)


def dense_covariance(graph, x):
    A, _, sigma = dense(graph, x)
    exact = sigma == 0
    N = scipy.linalg.null_space(A[exact])
    W = (A[~exact] / sigma[~exact, None]) @ N
    return N @ np.linalg.inv(W.T @ W) @ N.T


def test_linear_graph(gtsam):
    """A linear graph is solved in one step, as by dense least squares."""
    graph = walk()
    found = solve_batch(graph, graph.values())
    assert found['x'] == pytest.approx(np.tile([1.0, 2.0], (6, 1)), abs=1e-12)
    assert found['offset'] == pytest.approx(np.array([[1.0, 2.0]]), abs=1e-12)
    assert found.steps('x').tolist() == list(range(6)) and found.steps('offset').tolist() == [ALWAYS]


def test_marginals_of_a_linear_graph(gtsam):
    graph = walk()
    found = solve_batch(graph, graph.values())
    expected, here = dense_covariance(graph, found.x), marginals(found)
    for name in ('x', 'offset'):
        series = graph.series[name]
        blocks = np.array([expected[np.ix_(at, at)] for at in series.places(series.steps)])
        assert here.covariance(name) == pytest.approx(blocks, abs=1e-13)
    assert here.stddev('x')[0].tolist() == [0.0, 0.0]
    assert (here.stddev('x')[1:] > 0).all()


def test_marginals_of_a_mechanism(gtsam, model):
    """Exact constraints leave no variance across them."""
    problem = forward_graph(model, 0.01, 0.001)
    found = solve_batch(problem.graph, problem.initial)
    expected, here = dense_covariance(problem.graph, found.x), marginals(found)
    for name in ('q', 'qd', 'qdd'):
        series = problem.graph.series[name]
        blocks = np.array([expected[np.ix_(at, at)] for at in series.places(series.steps)])
        assert here.covariance(name) == pytest.approx(blocks, rel=1e-6, abs=1e-9)
    J = model.residual(found['q'][5])[1]
    assert np.abs(J @ here.covariance('q')[5] @ J.T).max() < 1e-12


@pytest.mark.parametrize('form', ['dependent', 'independent'])
def test_forward_dynamics(gtsam, model, form):
    """The whole horizon at once against an exact solution, and second order in dt."""
    exact = simulate(model, 0.2, 0.001, 'dop853')
    errors = []
    for dt in (0.004, 0.002):
        problem = forward_graph(model, 0.2, dt, form=form)
        found = solve_batch(problem.graph, problem.initial)
        every = round(dt / 0.001)
        errors.append(np.sqrt(np.mean((found['q'] - exact.q[::every]) ** 2)))
        assert found.cost.hard < 1e-10
        assert max(np.abs(model.residual(q)[0]).max() for q in found['q']) < 1e-10
    assert errors[1] < 2e-5
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)


def test_euler_is_of_first_order(gtsam, model):
    exact = simulate(model, 0.1, 0.001, 'dop853')
    errors = []
    for dt in (0.002, 0.001):
        problem = forward_graph(model, 0.1, dt, form='independent', integrator='euler')
        found = solve_batch(problem.graph, problem.initial)
        errors.append(np.sqrt(np.mean((found['q'] - exact.q[::round(dt / 0.001)]) ** 2)))
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.1)


@pytest.mark.parametrize('name, coordinates', [('five_bar', 'natural'), ('four_bar', 'relative')])
def test_other_mechanisms(gtsam, name, coordinates):
    """Singular mass matrices and several degrees of freedom."""
    model = load_model(name, coordinates, backend='vm')
    exact = simulate(model, 0.05, 0.001, 'dop853')
    for form in ('dependent', 'independent'):
        problem = forward_graph(model, 0.05, 0.001, form=form)
        assert solve_batch(problem.graph, problem.initial)['q'] == pytest.approx(exact.q, abs=2e-5)


def test_variable_without_factor():
    graph = walk()
    graph.add_variables('qdd', 1, [3])
    with pytest.raises(GraphError, match=r'no factor on: qdd\[3\]; missing: dynamics') as caught:
        check_graph(graph, graph.values())
    assert caught.value.variables == ('qdd[3]',) and 'dynamics' in caught.value.missing


def test_disconnected_graph():
    graph = walk()
    graph.add_variables('x', 2, [9])
    graph.add(prior(2), {'x': ('x', [9])}, 1.0, {'x0': [0.0, 0.0]})
    with pytest.raises(GraphError, match=r'disconnected: nothing ties these to x\[0\]: x\[9\]; missing: trapezoid'):
        check_graph(graph, graph.values())
    check_graph(graph, graph.values(), connected=False)


def test_rank_deficient_graph_names_the_component():
    graph = walk(anchored=False)
    graph.add(prior(2, (0,)), {'x': ('x', [2])}, 1.0, {'x0': 0.0})
    with pytest.raises(GraphError, match=r'rank deficient.*offset\.?1?; missing') as caught:
        check_graph(graph, graph.values())
    assert caught.value.variables == ('offset.1',)


def test_missing_factors_of_a_mechanism(model):
    """Each family of factors that is taken away is asked for by name."""
    for label, variable in (('dynamics', 'qdd'), ('trapezoid', 'q')):
        problem = forward_graph(model, 0.005, 0.001)
        problem.graph.factors[:] = [f for f in problem.graph.factors if f.label != label]
        with pytest.raises(GraphError) as caught:
            check_graph(problem.graph, problem.initial)
        assert caught.value.variables[0].startswith(variable) and label in caught.value.missing, str(caught.value)


def test_factor_on_an_unknown_variable():
    graph = walk()
    graph.add(prior(2), {'x': ('x', [77])}, 1.0, {'x0': [0.0, 0.0]})
    with pytest.raises(GraphError, match=r'not there: x\[77\]'):
        check_graph(graph, graph.values())


def test_wrong_roles_and_noises():
    graph = walk()
    with pytest.raises(SettingError, match='roles x, x0'):
        graph.add(prior(2), {'y': ('x', 0)}, 1.0, {'x0': [0.0, 0.0]})
    with pytest.raises(SettingError, match='sigma of prior'):
        graph.add(prior(2), {'x': ('x', 0)}, -1.0, {'x0': [0.0, 0.0]})
    with pytest.raises(SettingError, match='size'):
        graph.add_variables('x', 3, [0])


def test_divergence_is_an_error(gtsam, model):
    problem = forward_graph(model, 0.05, 0.001)
    with pytest.raises(DivergenceError, match='no convergence'):
        solve_batch(problem.graph, problem.initial, iterations=2)


def test_cost_grows_with_the_number_of_instants(model):
    """The stacks are as many as instants, of one size: the time is linear in the length."""
    counts = []
    for steps in (50, 100):
        packing = Packing(forward_graph(model, 0.001 * steps, 0.001).graph)
        counts.append(sum(np.prod(stack.shape) for stack in packing.stacks))
    assert counts[1] / counts[0] == pytest.approx(2.0, rel=0.02)


def test_without_gtsam(monkeypatch, model):
    """A clear error; graphs can be built and checked all the same."""
    monkeypatch.setitem(sys.modules, 'gtsam', None)
    problem = forward_graph(model, 0.002, 0.001)
    check_graph(problem.graph, problem.initial)
    with pytest.raises(MissingModuleError, match=r'gtsam.*pip install .*graph') as caught:
        solve_batch(problem.graph, problem.initial)
    assert caught.value.module == 'gtsam'


def test_a_step_that_makes_a_soft_cost_worse_is_damped(gtsam):
    """Gauss-Newton alone runs away from atan(x) = 0 where |x| > 1.39."""
    x, graph = ca.SX.sym('x'), FactorGraph()
    graph.add_variables('x', 1, [0])
    graph.add(FactorKind('bent', {'x': x}, {}, ca.atan(x), backend='vm'), {'x': ('x', 0)}, 0.1)
    found = solve_batch(graph, np.array([4.0]), check=False)
    assert abs(found['x'][0, 0]) < 1e-8
