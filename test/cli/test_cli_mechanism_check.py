# SPDX-License-Identifier: Apache-2.0
"""`mbse check` of mechanisms: what is understood, what is odd, what is wrong in one line, a drawing."""

import pytest
from cli_support import mbse, refused
from PIL import Image
from printed import within
from source_tree import ROOT

MECHANISMS = sorted(path.stem for path in (ROOT / 'config' / 'mechanisms').glob('*.yaml'))
SLIDER = (ROOT / 'config' / 'mechanisms' / 'slider_crank.yaml').read_text()
THREE_CRANKS = '''format: mbse/mechanism/1
name: three_cranks
gravity: 9.81
points:
  A0: {fixed: [0, 0]}
  A1: {fixed: [1, 0]}
  A2: {fixed: [2, 0]}
  B0: [0.2, 1]
  B1: [1.2, 1]
  B2: [2.2, 1]
bodies:
  crank_0: {points: [A0, B0], length: 1, mass: 1, uniform: true}
  crank_1: {points: [A1, B1], length: 1, mass: 1, uniform: true}
  crank_2: {points: [A2, B2], length: 1, mass: 1, uniform: true}
  beam: {points: {B0: [0, 0], B1: [1, 0], B2: [2, 0]}, mass: 3, center_of_mass: [1, 0], inertia: 1}
named:
  theta: {angle: crank_0}
independent: [theta]
'''


def words(*command):
    done = mbse('check', *command)
    assert done.status == 0, done
    return ' '.join(done.out.split()), done.warnings


@pytest.mark.usefixtures('vm')
@pytest.mark.parametrize('name', MECHANISMS)
def test_mechanisms_of_the_package(name, tmp_path):
    """Each is in order, without a warning, and can be drawn."""
    text, warnings = words(name, '--draw', tmp_path / 'new' / 'x.png')
    assert text.startswith('ok: ') and f'{name}.yaml: all loops close at the start mechanism {name} ' in text
    assert not warnings and 'none redundant' in text
    with Image.open(tmp_path / 'new' / 'x.png') as picture:
        assert picture.size[0] == 1080 and len(set(picture.convert('L').tobytes())) > 20


def test_counts_and_the_assembled_start():
    """Five coordinates, four constraints; the energy of rods at the heights of two circles' crossing."""
    from four_bar_by_hand import joints, potential
    text, _ = words('four_bar')
    assert 'coordinates 5 natural coordinates constraints 4 none redundant degrees of freedom 1' in text
    assert within('independent coordinates theta condition 2.55', text) and within('theta 1.047198 rad (60 deg)', text)
    assert within(f'P2.x {joints(1.0471975512)[1, 0]:.7g} m', text)
    assert within(f'energy {potential(1.0471975512):.7g} J kinetic 0 J', text)


def test_other_coordinates():
    text, _ = words('four_bar', '--coordinates', 'relative')
    assert 'coordinates 3 relative coordinates constraints 2' in text
    text, _ = words('n_four_bar:3', '--coordinates', 'reference_point')
    assert 'coordinates 21 reference-point coordinates constraints 20' in text and 'moving at -1 rad/s' in text


def test_redundant_constraints_are_named(tmp_path):
    (tmp_path / 'x.yaml').write_text(THREE_CRANKS)
    text, warnings = words(tmp_path / 'x.yaml')
    assert 'constraints 7 6 that count' in text and 'degrees of freedom 1' in text
    assert 'redundant constraint beam.B1.y implied by crank_0.length, crank_1.length' in text
    assert len(warnings) == 1 and 'the reactions in the joints concerned are not' in warnings[0]


def test_a_start_near_a_dead_point(tmp_path):
    """Crank and rod nearly in line: the stroke says little; the crank's angle is proposed."""
    near = SLIDER.replace('independent: [theta]', 'independent: [stroke]').replace('start: 60 deg', 'start: 0.1 deg')
    (tmp_path / 'x.yaml').write_text(near.replace('[0.337228, 0]', '[0.4, 0]'))
    _, warnings = words(tmp_path / 'x.yaml')
    assert len(warnings) == 1
    assert 'hardly determined by stroke (condition' in warnings[0] and 'better here: theta (condition 1' in warnings[0]


@pytest.mark.parametrize('coordinates', ['natural', 'reference_point', 'relative'])
def test_a_start_at_a_dead_point_is_refused(coordinates, tmp_path):
    """It was `ok`, and no motion could begin there; `simulate --independent auto` can still."""
    dead = SLIDER.replace('independent: [theta]', 'independent: [stroke]').replace('start: 60 deg', 'start: 0 deg')
    (tmp_path / 'x.yaml').write_text(dead.replace('[0.337228, 0]', '[0.4, 0]'))
    line = refused('check', tmp_path / 'x.yaml', '--coordinates', coordinates)
    assert "x.yaml: independent: got 'stroke', expected coordinates that determine the motion" in line
    assert 'theta instead of stroke' in line
    assert mbse('simulate', tmp_path / 'x.yaml', '-o', tmp_path / 'x', '--independent', 'auto', '--duration', '0.01',
                '--coordinates', coordinates, '--no-pictures').status == 0


def test_a_guess_far_from_any_start(tmp_path):
    text = (ROOT / 'config' / 'mechanisms' / 'four_bar.yaml').read_text()
    (tmp_path / 'x.yaml').write_text(text.replace('[8.412459, 4.741278]', '[8.0, 5.5]'))
    _, warnings = words(tmp_path / 'x.yaml')
    assert len(warnings) == 1 and 'P2.' in warnings[0] and 'look at the drawing' in warnings[0]


def test_a_file_of_an_unknown_format(tmp_path):
    for content, text in (('format: mbse/robot/1\n', "format: got 'mbse/robot/1', expected mbse/machine/2"),
                          ('format: mbse/mechanism/7\n', "format: got 'mbse/mechanism/7', expected mbse/machine/2"),
                          ('"format": mbse/mechanism/1\nname: x\n', 'gravity')):
        (tmp_path / 'x.yaml').write_text(content)
        assert text in mbse('check', tmp_path / 'x.yaml').err


def test_an_unknown_name_lists_both():
    line = refused('check', 'excavator')
    assert 'one of the machines lut_simple_crane, ' in line
    assert 'mechanisms andrews, chaplygin_sleigh, excavator_arm, ' in line
    assert 'n_four_bar:N' in line
    assert 'a whole number of loops' in refused('check', 'n_four_bar:many')


@pytest.mark.parametrize('options, text', [
    (['--draw', 'x.pdf'], "--draw: got 'x.pdf', expected a file that ends with .png"),
    (['--coordinates', 'polar'], "coordinates: got 'polar', expected one of natural"),
    (['--draw', '{file}/x.png'], 'expected a place that can be written')])
def test_wrong_options(options, text, tmp_path):
    (tmp_path / 'file').write_text('')
    assert text in refused('check', 'four_bar', *(o.format(file=tmp_path / 'file') for o in options))


@pytest.mark.usefixtures('vm')
def test_a_machine_is_drawn_too(tmp_path):
    """With its cylinders, which are actuators; in other coordinates the motion is the same."""
    for options, text in (([], 'coordinates 9 relative coordinates constraints 8 5 that count'),
                          (['--coordinates', 'reference_point'], 'reference-point coordinates')):
        text_, warnings = words('zx200', '--all', '--draw', tmp_path / 'x.png', *options)
        assert text in text_ and 'degrees of freedom 4' in text_ and not warnings
        with Image.open(tmp_path / 'x.png') as picture:
            assert picture.size[0] == 1080 and len(set(picture.convert('L').tobytes())) > 20


def test_natural_coordinates_are_for_a_plane():
    assert 'coordinates: got ' in refused('check', 'spatial_crane', '--coordinates', 'natural')
