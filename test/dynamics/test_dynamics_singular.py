# SPDX-License-Identifier: Apache-2.0
"""Starts at singular positions and without inertia are refused in all coordinates; motions through singular positions
say when."""

import json
import warnings

import numpy as np
import pytest
from cli_support import mbse, refused
from mechanism_grammar import JOINTS, PLANE, SPACE

from mbse_ros.description.load import parse_mechanism
from mbse_ros.dynamics.integrators.choice import smallest
from mbse_ros.dynamics.model import Model, State, load_model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.dynamics.singular import check_start, passes
from mbse_ros.errors import DescriptionError, MbseError

HEAD = 'format: mbse/machine/2\nname: x\ngravity: 9.81\nindependent: [theta]\n'
KINDS = ['natural', 'reference_point', 'relative']
BARS = '''
named: {theta: {angle: crank}}
points:
  A: {fixed: [0, 0]}
  B: {fixed: [3, 0]}
'''


def parallelogram(angle, more='initial: {velocity: {theta: -6 rad/s}}'):
    x, y = np.cos(angle), np.sin(angle)
    return HEAD + more + BARS + f'''  P: [{x}, {y}]
  Q: [{3 + x}, {y}]
bodies:
  crank: {{points: [A, P], length: 1 m, mass: 1 kg, uniform: true}}
  coupler: {{points: [P, Q], length: 3 m, mass: 2 kg, uniform: true}}
  rocker: {{points: [Q, B], length: 1 m, mass: 1 kg, uniform: true}}
'''


def rod(angle):
    """Without a coupler: one row, which vanishes."""
    x, y = np.cos(angle), np.sin(angle)
    return HEAD + BARS + f'''  P: [{x}, {y}]
  Q: [{3 + x}, {y}]
bodies:
  crank: {{points: [A, P], length: 1 m, mass: 1 kg, uniform: true}}
  rocker: {{points: [B, Q], length: 1 m, mass: 1 kg, uniform: true}}
joints: {{tie: {{type: distance, parent: crank.P, child: rocker.Q, length: 3 m}}}}
'''


def slider(angle, rod=1.0):
    x, y = np.cos(angle), np.sin(angle)
    return HEAD + f'''
named: {{theta: {{angle: crank}}}}
initial: {{velocity: {{theta: 6 rad/s}}}}
points:
  O: {{fixed: [0, 0]}}
  P: [{x}, {y}]
  S: [{x + np.sqrt(rod ** 2 - y ** 2)}, 0]
bodies:
  crank: {{points: [O, P], length: 1 m, mass: 1 kg, uniform: true}}
  rod: {{points: [P, S], length: {rod} m, mass: 1 kg, uniform: true}}
  piston: {{points: {{S: [0, 0]}}, mass: 1 kg, center_of_mass: [0, 0], inertia: 1e-3}}
joints: {{cylinder: {{type: prismatic, parent: ground.O, child: piston.S, axis: [1, 0]}}}}
'''


SPATIAL = '''format: mbse/machine/2
name: x
dimension: 3
gravity: 9.81
points: {A: {fixed: [0, 0, 0]}, B: {fixed: [3, 0, 0]}}
bodies:
  crank: {points: {A: [0, 0, 0], P: [1, 0, 0]}, mass: 1, center_of_mass: [0.5, 0, 0], inertia: {xx: 1, yy: 1, zz: 1}}
  rocker: {points: {B: [0, 0, 0], Q: [1, 0, 0]}, mass: 1, center_of_mass: [0.5, 0, 0], inertia: {xx: 1, yy: 1, zz: 1}}
joints:
  a: {type: revolute, parent: ground.A, child: crank.A, axis: [0, 1, 0], start: ANGLE}
  b: {type: revolute, parent: ground.B, child: rocker.B, axis: [0, 1, 0], start: ANGLE}
  tie: {type: distance, parent: crank.P, child: rocker.Q, length: 3 m}
independent: [a]
'''


def built(text, coordinates=None):
    return Model(parse_mechanism(text), coordinates, backend='vm')


@pytest.mark.parametrize('coordinates', KINDS)
@pytest.mark.parametrize('text, loop', [
    (parallelogram(0.0), ''), (parallelogram(np.pi), ''), (parallelogram(1e-7), ''), (rod(0.0), 'tie'),
    (parallelogram(0.5, 'initial: {position: {theta: 0 rad}}'), ''), (slider(np.pi / 2), 'cylinder'),
    (slider(-np.pi / 2), 'cylinder')], ids=range(7))
def test_a_singular_start_is_refused(coordinates, text, loop):
    """With the loop, and a start that serves."""
    model = built(text, coordinates)
    for refusing in (lambda: check_start(model), lambda: simulate(model, 0.01, 1e-3),
                     lambda: simulate(model, 0.01, 1e-3, 'ali3p'),
                     lambda: simulate(model, 0.01, 1e-3, start=State(model.start.q, model.start.qd))):
        with pytest.raises(DescriptionError, match='singular position') as caught:
            refusing()
    assert caught.value.key == 'initial.position' and loop in caught.value.value
    assert 'theta at ' in caught.value.expected and 'deg' in caught.value.expected


@pytest.mark.parametrize('coordinates', KINDS)
@pytest.mark.parametrize('text', [parallelogram(0.0), slider(np.pi / 2)], ids=['parallelogram', 'slider'])
def test_a_row_of_rounding_errors_is_no_constraint(coordinates, text):
    model = built(text, coordinates)
    assert model.partition().condition(model.start.q) == np.inf


@pytest.mark.parametrize('coordinates', KINDS)
@pytest.mark.parametrize('angle, key', [(np.pi / 2, 'position'), (1.0, 'velocity')])
def test_a_singular_position_is_to_blame_before_velocities_that_contradict_it(coordinates, angle, key):
    text = slider(angle).replace('crank}}', 'crank}, turn: {angle: rod}, way: {joint: cylinder}}').replace(
        'theta: 6 rad/s', 'theta: 6 rad/s, turn: 1 rad/s, way: 5 m/s')
    with pytest.raises(DescriptionError) as caught:
        check_start(built(text, coordinates))
    assert caught.value.key == f'initial.{key}'


@pytest.mark.parametrize('angle', ['0 deg', '180 deg'])
@pytest.mark.parametrize('coordinates', ['relative', 'reference_point'])
def test_in_space(coordinates, angle):
    with pytest.raises(DescriptionError, match='singular position of the loop of .*tie'):
        check_start(built(SPATIAL.replace('ANGLE', angle), coordinates))
    check_start(built(SPATIAL.replace('ANGLE', '20 deg'), coordinates))


@pytest.mark.parametrize('coordinates', KINDS)
@pytest.mark.parametrize('text', [parallelogram(0.01), parallelogram(1e-3), rod(0.1), slider(np.pi / 2, 2.0),
                                  slider(0.0, 2.0), slider(0.0)], ids=range(6))
def test_regular_starts_and_dead_points_are_not(coordinates, text):
    """A dead point of the slider is none of the crank."""
    check_start(built(text, coordinates))


@pytest.mark.parametrize('name, coordinates', [('spatial_four_bar', 'reference_point'), ('spatial_four_bar', None),
                                               ('n_four_bar:2', None), ('three_rrr', None)])
def test_redundant_constraints_are_no_singular_start(name, coordinates):
    check_start(load_model(name, coordinates, backend='vm'))


@pytest.mark.parametrize('coordinates', KINDS)
@pytest.mark.parametrize('scheme', ['exponential', 'ali3p'])
@pytest.mark.parametrize('text, instants', [
    (parallelogram(1.0), (0.150882, 0.531588)), (slider(1.0), (0.106129, 0.517285)), (slider(1.0, 2.0), ())],
    ids=range(3))
def test_a_motion_through_singular_positions_says_when(coordinates, scheme, text, instants):
    """The same in all coordinates and schemes."""
    model = built(text, coordinates)
    motion = simulate(model, 0.6, 2e-3, scheme)
    assert passes(model, motion.t, motion.q) == pytest.approx(instants, abs=2e-4)


def test_the_command_line(tmp_path):
    """A motion through a singular position is written, with a warning; without its energy it is no success."""
    file = tmp_path / 'x.yaml'
    file.write_text(parallelogram(1.0))
    done = mbse('simulate', file, '-o', tmp_path / 'out', '--duration', '0.3', '--no-pictures')
    assert done.status == 0 and 'singular positions at t = 0.1508' in ' '.join(done.warnings), done
    summary = json.loads((tmp_path / 'out' / 'summary.json').read_text())
    assert summary['singular_times_s'] == pytest.approx([0.150882], abs=1e-4) and summary['states'] == 301
    lost = mbse('simulate', file, '-o', tmp_path / 'lost', '--duration', '0.3', '--dt', '0.02', '--scheme',
                'forward_euler', '--no-pictures')
    assert lost.status == 1 and 'singular positions' in ' '.join(lost.warnings), lost
    file.write_text(parallelogram(0.0))
    for command in (['check', file], ['simulate', file, '-o', tmp_path / 'no']):
        assert 'initial.position' in refused(*command)
    assert not (tmp_path / 'no').exists()


WHEEL = '''format: mbse/machine/2
name: x
gravity: 9.81
points: {O: {fixed: [0, 0]}, E: [1, 0]}
bodies:
  arm: {points: [O, E], mass: 1 kg, uniform: true}
  wheel: {points: {E: [0, 0]}, mass: 1 kg, center_of_mass: [0, 0], inertia: 0}
'''
SPUN = SPATIAL[:SPATIAL.index('bodies:')] + '''bodies:
  arm: {points: {A: [0, 0, 0], E: [1, 0, 0]}, mass: 1, center_of_mass: [0.5, 0, 0], inertia: {yy: 1}}
  tip: {points: {E: [0, 0, 0]}, mass: 1, center_of_mass: [0.5, 0, 0], inertia: {xx: 0, yy: 1, zz: 1}}
joints:
  a: {type: revolute, parent: ground.A, child: arm.A, axis: [0, 1, 0]}
  e: {type: revolute, parent: arm.E, child: tip.E, axis: [1, 0, 0]}
'''


@pytest.mark.parametrize('text, kinds, body', [(WHEEL, KINDS, 'wheel'), (SPUN, KINDS[1:], 'tip')],
                         ids=['plane', 'space'])
def test_what_moves_without_inertia_is_refused(text, kinds, body):
    for coordinates in kinds:
        with pytest.raises(DescriptionError, match='no inertia for the motion of') as caught:
            check_start(built(text, coordinates))
        assert caught.value.key == f'bodies.{body}.inertia'
    check_start(built(WHEEL.replace('center_of_mass: [0, 0]', 'center_of_mass: [0.1, 0]'), 'relative'))


@pytest.mark.parametrize('base, joint', [(PLANE, JOINTS[2]['revolute']), (SPACE, JOINTS[3]['revolute'])])
@pytest.mark.parametrize('section, item, fits', [
    ('springs', '{points: [arm.P, tool.Q], damping: 2}', False),
    ('springs', '{points: [arm.P, tool.Q], stiffness: 20, free: 0.4}', False),
    ('springs', '{points: [arm.P, tool.Q], stiffness: 20, free: 0}', True),
    ('sensors', '{kind: distance, points: [arm.P, tool.Q]}', False),
    ('sensors', '{kind: distance, points: [arm.P, tool.T]}', True)])
def test_a_line_between_points_at_one_place_has_no_direction(base, joint, section, item, fits):
    """Forces and outputs along it were NaN."""
    text = f'{base}  joint: {joint}\n{section}: {{s: {item}}}\n'
    if fits:
        assert np.isfinite(simulate(Model(parse_mechanism(text), backend='vm'), 0.01, 1e-3).q).all()
        return
    with pytest.raises(DescriptionError, match='apart at the start') as caught:
        Model(parse_mechanism(text), backend='vm')
    assert (caught.value.key, caught.value.value) == (f'{section}.s.points', ['arm.P', 'tool.Q'])


@pytest.mark.parametrize('base, joint', [(PLANE, JOINTS[2]['revolute']), (SPACE, JOINTS[3]['revolute'])])
@pytest.mark.parametrize('coordinates', ['relative', 'reference_point'])
def test_a_driver_that_is_much_too_fast_is_an_error_of_ours(base, joint, coordinates):
    text = f'{base}  joint: {joint}\ndrivers: {{d: {{coordinate: hinge, motion: 0.4 + 1e9*t}}}}\n'
    with warnings.catch_warnings(), pytest.raises(MbseError, match=r't = 0\.\d+ s'):
        warnings.simplefilter('error')
        simulate(Model(parse_mechanism(text), coordinates, backend='vm'), 0.2, 1e-3)


def test_rows_that_are_not_finite_have_no_rank():
    assert smallest(np.array([[1.0, np.nan], [0.0, 1.0]]), np.ones(2)) == 0.0


def test_every_command_refuses_a_singular_start(tmp_path):
    """By the same words, whatever it does: filters said LOST, the smoother a deviation of NaN."""
    file, table = tmp_path / 'flat.yaml', tmp_path / 'table.csv'
    file.write_text(parallelogram(0.0) + 'sensors: {e: {kind: encoder, coordinate: theta, stddev: 1 deg}}\n')
    table.write_text('t,e\n' + ''.join(f'{0.01 * k},{0.01 * k}\n' for k in range(20)))
    (tmp_path / 'map.yaml').write_text('format: mbse/table/1\nname: x\ntime: {column: t, unit: s}\n'
                                       'channels: {position/e: {column: e, unit: rad}}\n')
    bag, of = tmp_path / 'bag', ('--mechanism', file, '--sensors', 'e')
    assert mbse('import', table, '--map', tmp_path / 'map.yaml', '-o', bag).status == 0
    for words in (('check', file), ('simulate', file, '-o', tmp_path / 'x'), ('export-c', file, '-o', tmp_path / 'x'),
                  ('graph', file), ('graph', file, '--kind', 'inverse'), ('graph', file, '--kind', 'estimate'),
                  ('observability', file, '--sensors', 'e'), ('estimate', bag, *of), ('smooth', bag, *of),
                  ('tune', bag, *of, '--estimator', 'DEKF')):
        assert 'initial.position: got \'a singular position' in refused(*words), words


def test_constraints_of_a_constant_rank_are_not_searched(monkeypatch):
    """Their determinant has minima of rounding alone."""
    model, asked = load_model('chaplygin_sleigh', backend='vm'), []
    t, angle = np.linspace(0.0, 1.0, 101), np.linspace(0.0, 3.0, 101)
    q = np.repeat(model.start.q[None], len(t), axis=0) + angle[:, None] * [0.3, 0.1, 1.0, 0.3, 0.1]
    residual = model.residual
    monkeypatch.setattr(model, 'residual', lambda *at: asked.append(at) or residual(*at))
    assert passes(model, t, q) == [] and len(asked) == len(t)
