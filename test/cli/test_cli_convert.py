# SPDX-License-Identifier: Apache-2.0
"""`mbse convert`: an old machine file becomes one of the present format, word for word where nothing changed."""

import pytest
from cli_support import mbse, refused
from source_tree import ROOT

from mbse_ros.description.convert import convert_text
from mbse_ros.description.load import parse_mechanism
from mbse_ros.machine import Machine

NEW = (ROOT / 'config' / 'machines' / 'patu655_lift.yaml').read_text()
HEAD = NEW[:NEW.index('format:')]
OLD = HEAD + '''format: mbse/machine/1
name: patu655_lift
''' + NEW[NEW.index('source:'):NEW.index('points:')] + '''ground:
  points:
    boom_pivot: [0 m, 0 m, 0 m]
    cylinder_base: [0.26 m, 0 m, -1.039986751 m]
''' + NEW[NEW.index('\nbodies:'):NEW.index('sensors:')] + '''sensors:
  position:
    lift: {stddev: 0.4 mm}
  pressure:
    lift_piston: {stddev: 12 kPa}
    lift_rod: {stddev: 8 kPa}
'''


@pytest.fixture
def old(tmp_path):
    (tmp_path / 'old.yaml').write_text(OLD)
    return tmp_path / 'old.yaml'


def test_the_default_machine_comes_out_as_it_is_in_the_package(old, tmp_path):
    done = mbse('convert', old, '-o', tmp_path / 'new' / 'mine.yaml')
    assert done.status == 0 and done.out.startswith(f'wrote {tmp_path}/new/mine.yaml: machine patu655_lift; mbse check')
    assert (tmp_path / 'new' / 'mine.yaml').read_text() == NEW
    assert old.read_text() == OLD
    assert mbse('check', tmp_path / 'new' / 'mine.yaml').status == 0


def test_an_old_file_names_the_command_that_rewrites_it(old, tmp_path):
    line = refused('check', old)
    assert line.endswith(f'the file is in the old format: `mbse convert {old} -o NEW.yaml` rewrites it')
    assert refused('estimate', tmp_path, '--machine', old) == refused('simulate', old, '-o', tmp_path / 'bag') == line


def test_lists_and_comments():
    """A point over several lines comes on one; comments between the sections, and after one of a line, stay where they
    are."""
    text = OLD.replace('[0.26 m, 0 m, -1.039986751 m]',
                       '\n      - 0.26 m\n      - 0 m    # a comment\n      - -1.039986751 m')
    def remarked(text):
        return text.replace('joints:', '# Joints of the crane.\njoints:').replace('name: ', '# Its name.\nname: ', 1)
    assert convert_text(remarked(text)) == remarked(NEW)


def test_every_old_machine_is_still_a_machine(tmp_path):
    """With deviations of its points, without pressure sensors."""
    text = OLD.replace('boom_pivot: [0 m, 0 m, 0 m]',
                       'boom_pivot: {value: [0 m, 0 m, 0 m], stddev: [1 mm, 0 mm, 1 mm]}')
    text = text[:text.index('  pressure:\n')]
    machine = Machine(parse_mechanism(convert_text(text)))
    assert machine.channels == ('position/lift',)
    assert machine.description.ground['boom_pivot'][0].stddev == 1e-3


@pytest.mark.parametrize('change, text', [
    (('machine/1', 'machine/2'), "format: got 'mbse/machine/2', expected mbse/machine/1"),
    (('format: mbse/machine/1', 'format: 3'), 'format: got '),
    (('bodies:', 'bodies: {} # bodies:'), 'expected'),
    (('ground:\n', 'ground: {points: {}}\nother:\n'), "ground.points: got 'an empty mapping', expected at least one"),
    (('ground:\n  points:', 'ground:\n  places:'), "ground.places: got 'places', expected"),
    (('ground:\n', 'ground: 3\nother:\n'), "ground: got '3', expected"),
    (('    lift: {stddev: 0.4 mm}', '    lift: {}'), 'sensors.position.lift.stddev: got None, expected'),
    (('    lift: {stddev: 0.4 mm}', '    lift: 0.4 mm'), "sensors.position.lift: got '0.4 mm', expected"),
    (('  position:\n', '  angle:\n'), "sensors.angle: got 'angle', expected"),
    (('bore: 100 mm', 'bore: 100 bar'), 'cylinders.lift.bore: got '),
    (('bodies:', 'bodies: ['), 'expected correct YAML')])
def test_refused(change, text, tmp_path):
    assert change[0] in OLD
    (tmp_path / 'x.yaml').write_text(OLD.replace(*change, 1))
    line = refused('convert', tmp_path / 'x.yaml', '-o', tmp_path / 'new.yaml')
    assert text in line and line.startswith(f'{tmp_path}/x.yaml: ') and not (tmp_path / 'new.yaml').exists()


def test_no_file_is_overwritten(old, tmp_path):
    (tmp_path / 'kept.yaml').write_text('x')
    assert 'a file that exists' in refused('convert', old, '-o', tmp_path / 'kept.yaml')
    assert (tmp_path / 'kept.yaml').read_text() == 'x'
    assert 'a file that ends with .yaml' in refused('convert', old, '-o', tmp_path / 'new.txt')
    assert 'a readable text file' in refused('convert', tmp_path / 'none.yaml', '-o', tmp_path / 'new.yaml')
