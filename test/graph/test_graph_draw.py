# SPDX-License-Identifier: Apache-2.0
"""Pictures of graphs, and the commands `mbse graph` and `mbse benchmark graphs`."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from cli_support import mbse, refused

from mbse_ros.api.mechanism_graph import TITLES
from mbse_ros.dynamics.model import load_model
from mbse_ros.graph import FactorGraph, draw_graph, forward_graph, inverse_graph
from mbse_ros.graph.factors.dynamics_factors import equality

SVG = '{http://www.w3.org/2000/svg}'


@pytest.fixture(scope='module')
def model():
    return load_model('four_bar_adams', backend='vm')


def parts(svg):
    """Titles of circles' labels, titles of factors, and the lines."""
    root = ET.fromstring(svg)
    titles = [item.text for item in root.iter(f'{SVG}title')]
    variables = {text for text in titles if ': ' not in text}
    factors = [text for text in titles if ': ' in text]
    return variables, factors, list(root.iter(f'{SVG}line'))


def test_forward_graph_of_figure_2(model):
    """Two instants: 3 variables each; priors, constraints, dynamics, two integrators."""
    variables, factors, lines = parts(draw_graph(forward_graph(model, 0.001, 0.001).graph))
    assert variables == {f'{name}[{k}]' for name in ('q', 'qd', 'qdd') for k in (0, 1)}
    assert sorted(factors) == sorted([
        'prior: q[0]', 'prior: qd[0]', 'position: q[1]', 'velocity: q[1], qd[1]', 'dynamics: q[0], qd[0], qdd[0]',
        'dynamics: q[1], qd[1], qdd[1]', 'trapezoid: q[0], q[1], qd[0], qd[1]',
        'trapezoid: qd[0], qd[1], qdd[0], qdd[1]'])
    assert len(lines) == sum(text.count('[') for text in factors)


def test_independent_graph_shows_the_branch(model):
    """q only starts the position problem of the dynamics: a dotted line."""
    _, factors, lines = parts(draw_graph(forward_graph(model, 0.001, 0.001, form='independent').graph))
    assert 'dynamics_independent: z[0], zd[0], zdd[0], q[0]' in factors and 'equality: q[0], q[1]' in factors
    assert sum('stroke-dasharray' in line.attrib for line in lines) == 2


def test_inverse_graph_of_figure_4(model):
    graph = inverse_graph(model, [0.0, 0.01], lambda t: [t]).graph
    variables, factors, _ = parts(draw_graph(graph))
    assert {'Q[0]', 'Q[1]'} <= variables
    assert 'inverse_dynamics: q[0], qd[0], qdd[0], Q[0]' in factors and 'no force: Q[1]' in factors


def test_factors_do_not_lie_on_each_other(model):
    for form in ('dependent', 'independent'):
        root = ET.fromstring(draw_graph(forward_graph(model, 0.002, 0.001, form=form).graph))
        squares = [(item.attrib['x'], item.attrib['y']) for item in root.iter(f'{SVG}rect') if 'x' in item.attrib]
        assert len(squares) == len(set(squares))


def test_any_graph_with_constants_and_names_to_escape():
    graph, every = FactorGraph(), np.arange(9)
    graph.add_variables('a<b', 1, every)
    graph.add_variables('mass', 1)
    graph.add(equality(1), {'x0': ('a<b', every), 'x1': ('mass', -1)}, 1.0, label='walk & run')
    variables, factors, _ = parts(draw_graph(graph, 'A & B', instants=2))
    assert variables == {'a<b[0]', 'a<b[1]', 'mass'} and 'walk & run: a<b[1], mass' in factors


@pytest.mark.parametrize('kind', ['forward', 'inverse', 'estimate'])
def test_graph_command(tmp_path, kind):
    done = mbse('graph', 'four_bar', '--kind', kind, '-o', tmp_path / 'new' / 'graph.svg')
    assert done.status == 0, done
    ET.parse(tmp_path / 'new' / 'graph.svg')
    assert 'factor position on q: 4 rows, exact' in done.out and 'variable qdd of size 5' in done.out


def test_the_help_names_all_kinds():
    *first, last = TITLES
    assert f'{", ".join(first)} or {last}.' in ' '.join(mbse('graph', '--help').out.split())


@pytest.mark.parametrize('words, expected', [
    (('four_bar', '--kind', 'sideways'), 'forward, inverse, estimate'),
    (('four_bar', '--kind', 'estimate', '--form', 'independent'), '--form'),
    (('n_four_bar:2', '--kind', 'estimate'), '--kind'),
    (('four_bar', '--form', 'free'), 'dependent, independent'),
    (('four_bar', '-o', 'x.png'), '.svg'), (('nothing',), 'nothing')])
def test_graph_command_refuses(words, expected):
    assert expected in refused('graph', *words)


def test_benchmark_of_graphs(tmp_path):
    done = mbse('benchmark', 'graphs', '--duration', '0.05', '--windows', '2,3', '--loops', '1,2', '--backend', 'vm',
                '--json', tmp_path / 'x.json', '--seeds', '1', '--logs', '2')
    assert done.status == 0, done
    result = json.loads((tmp_path / 'x.json').read_text())
    assert set(result) == {'machine', 'duration_s', 'dt_s', 'forward', 'order', 'length', 'loops', 'inverse',
                           'estimation', 'logs'}
    assert [(row['form'], row['window']) for row in result['forward']] == [
        (form, window) for form in ('dependent', 'independent') for window in (2, 3)]
    assert all(row['rmse_q'] < 3e-5 and row['largest_violation'] < 1e-10 for row in result['forward'])
    assert all(row['order'] == pytest.approx(2.0, abs=0.1) for row in result['order'])
    assert 'skipped' in result['inverse'] and 'skipped' in done.out
    assert [row['loops'] for row in result['loops']] == [1, 2]
    filtered, lagged, batch = result['estimation']
    assert filtered['gain'] == 1.0 and lagged['gain'] > 2.5 < batch['gain'] and len(result['logs']) == 1


@pytest.mark.parametrize('words, expected', [
    (('--windows', '1'), '--windows'), (('--windows', 'two'), '--windows'), (('--adams', 'nothing.tab'), '--adams')])
def test_benchmark_of_graphs_refuses(words, expected):
    assert expected in refused('benchmark', 'graphs', *words)
