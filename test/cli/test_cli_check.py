# SPDX-License-Identifier: Apache-2.0
"""`mbse check`: what is understood is printed with units, what is wrong is one line with file, key, value, expected."""

from pathlib import Path

import pytest
from cli_support import mbse, refused
from machine_variants import changed
from source_tree import ROOT

from mbse_ros.api.check import form_warnings

MACHINES = sorted(path.stem for path in (ROOT / 'config' / 'machines').glob('*.yaml'))
LIFT = (ROOT / 'config' / 'machines' / 'patu655_lift.yaml').read_text()


@pytest.mark.usefixtures('vm')
@pytest.mark.parametrize('machine', MACHINES)
def test_machines_of_the_package(machine):
    done = mbse('check', machine)
    assert done.status == 0 and not done.err
    verdict, *lines = done.out.splitlines()
    assert verdict.startswith('ok: ') and f'{machine}.yaml' in verdict and max(map(len, lines)) <= 80
    lines = mbse('check', machine, '--all').out.splitlines()
    assert lines[0] == verdict and lines[1].split() == ['machine', machine]
    assert any('closed_length' in line and ' mm' in line for line in lines)


def test_what_was_understood():
    """Values in units that people read, the uncertainty, and what follows from them."""
    words = ' '.join(mbse('check', 'patu655_lift', '--all').out.split())
    for text in ('bore 100 mm', 'mass 143.66 +- 1.437 kg', 'piston area 78.53982 cm^2',
                 'position/lift sensor lift_stroke 1 sigma 0.4 mm',
                 'command/lift_valve command, V', 'lift 0 mm to 535 mm moved by cylinders',
                 'lift 0 mm to 535 mm boom_joint -24.37 deg to 91.51 deg', 'degrees of freedom 1',
                 'volume lift_piston 0.190019 l to 4.391899 l', 'friction scale 1 +- 0.1', 'payload 0 to 1000 kg'):
        assert text in words


def test_a_file_is_checked_by_its_path(tmp_path):
    (tmp_path / 'mine.yaml').write_text(LIFT.replace('public code of', 'measured [red]by[/red]'))
    done = mbse('check', tmp_path / 'mine.yaml', '--all')
    assert done.status == 0 and '[red]by[/red]' in done.out     # a file's words are not markup


@pytest.mark.usefixtures('vm')
@pytest.mark.parametrize('changes, key', [
    ({'cylinders/lift/parallel': {'damping': '-350 N*s/m'}}, 'cylinders.lift.parallel.damping'),
    ({'cylinders/lift/parallel': {'linear': '1 kN/m', 'about': '540 mm'}}, 'cylinders.lift.parallel.about'),
    ({'sensors/lift_rod/delay': {'value': '10 ms', 'stddev': '31 ms'}}, 'sensors.lift_rod.delay'),
    ({'cylinders/lift/parallel': {'damping': '-320 N*s/m', 'about': '530 mm'},
      'sensors/lift_rod/delay': {'value': '10 ms', 'stddev': '29 ms'}}, ''),
    ({'sensors/lift_rod/delay': {'value': 0, 'stddev': '5 ms'}}, '')])
def test_forms_that_are_odd(changes, key):
    """A damping that drives more than friction brakes, a place beyond the stroke, a delay that is hardly known."""
    found = list(form_warnings(changed('patu655_lift', changes)))
    assert [line.partition(':')[0] for line in found] == [key] * bool(key)


@pytest.mark.parametrize('bore, rod, odd', [(530, 120, False), (540, 120, True), (270, 56, False), (290, 56, True)])
def test_a_bore_in_another_unit_is_odd(tmp_path, bore, rod, odd):
    """More than the stroke, 535 mm, or than five times the rod."""
    (tmp_path / 'own.yaml').write_text(LIFT.replace('bore: 100 mm', f'bore: {bore} mm').replace(
        'rod: 56 mm', f'rod: {rod} mm'))
    done = mbse('check', tmp_path / 'own.yaml')
    assert done.status == 0
    assert (f'warning: cylinders.lift.bore: {bore} mm, with a stroke of 535 mm' in done.err) is odd


@pytest.mark.parametrize('old, new, key', [
    ('stddev: 0.4 mm', 'stddev: 26 mm', ''), ('stddev: 0.4 mm', 'stddev: 0.4 m', 'sensors.lift_stroke.stddev: 400 mm'),
    ('stddev: 12 kPa', 'stddev: 12 MPa', 'sensors.lift_piston.stddev: 12 MPa'),
    ('24 l/min', '24 l/s', 'hydraulics.valves.lift_valve.nominal_flow: 1440 l/min'), ('24 l/min', '1 l/min', '')])
def test_noises_and_flows_in_another_unit_are_odd(tmp_path, old, new, key):
    """More than a twentieth of the stroke or the supply; a full stroke in less than 0.2 s or more than 300."""
    (tmp_path / 'own.yaml').write_text(LIFT.replace(old, new))
    done = mbse('check', tmp_path / 'own.yaml')
    assert done.status == 0 and (f'warning: {key}' in done.err if key else not done.err), done


@pytest.mark.parametrize('mass, odd', [('143.66 kg', False), ('5 kg', False), ('0.5 kg', True), ('1e6 kg', True)])
def test_a_mass_that_does_not_fit_the_moment_of_inertia_is_odd(tmp_path, mass, odd):
    """67 kg m2 and points within 1.7 m: a radius of gyration between 5 cm and 5 m."""
    (tmp_path / 'own.yaml').write_text(LIFT.replace('143.66 kg', mass))
    done = mbse('check', tmp_path / 'own.yaml')
    assert done.status == 0 and ('warning: bodies.boom: ' in done.err) is odd, done


@pytest.mark.usefixtures('vm')
@pytest.mark.parametrize('word, said', [
    ('payload.min_speed=0.002', 'payload.min_speed: 0.002 m/s is below the speed up to which friction changes'),
    ('graph.min_speed=0.001', 'graph.min_speed: 0.001 m/s is below'),
    ('payload.stroke_margin=0.27', 'payload.stroke_margin: 0.27 m at each end leaves nothing of the stroke of lift'),
    ('scale.least_load=1000', 'scale.least_load: 1000 kg is not below 1000 kg'), ('payload.min_speed=0.02', '')])
def test_settings_that_contradict_the_file_are_said(word, said):
    done = mbse('check', 'patu655_lift', '--set', word)
    assert done.status == 0 and (f'warning: {said}' in done.err if said else not done.err)


@pytest.mark.usefixtures('vm')
def test_settings_that_nothing_has_are_refused():
    assert "--set: got 'payload.speed', expected a setting of payload: " in refused(
        'check', 'patu655_lift', '--set', 'payload.speed=1')
    assert 'linkage.gate: got 2.0' in refused('check', 'four_bar', '--set', 'linkage.gate=2')
    assert 'options: got' in refused('check', 'four_bar', '--set', 'linkage.options=depth=3')
    assert mbse('check', 'four_bar', '--set', 'linkage.gate=0.999').status == 0


BROKEN = {      # what to replace, by what; what the line must say after the name of the file
    'unknown key': ('bore:', 'boar:', "cylinders.lift.boar: got 'boar', expected one of the keys", 'mean bore?'),
    'unit of another kind': ('100 mm', '100 bar', "cylinders.lift.bore: got '100 bar', expected", 'such as'),
    'no unit': ('100 mm', '100', "cylinders.lift.bore: got '100', expected", 'with a unit'),
    'type': ('100 mm', '[1, 2]', "cylinders.lift.bore: got ['1', '2'], expected a number", ''),
    'not positive': ('143.66 kg', '-3 kg', "bodies.boom.mass.value: got '-3 kg', expected", 'above 0'),
    'missing key': ('    bore: 100 mm\n', '', 'cylinders.lift.bore: got None, expected this key, which is missing', ''),
    'twice': ('    rod: 56 mm', '    rod: 56 mm\n    rod: 50 mm', "got 'rod', expected each key once", ''),
    'no such point': ('boom.rod_eye', 'boom.eye', "cylinders.lift.rod_eye: got 'boom.eye', expected", 'rod_eye'),
    'rod too thick': ('rod: 56 mm', 'rod: 156 mm', "cylinders.lift.rod: got '156 mm', expected a rod thinner", ''),
    'no such kind': ('kind: orifice', 'kind: servo', "lift_valve.kind: got 'servo', expected",
                     'orifice, compensated, unknown'),
    'another format': ('machine/2', 'machine/9', "format: got 'mbse/machine/9', expected mbse/machine/2", ''),
    'the old format': ('machine/2', 'machine/1', 'expected mbse/machine/2; the file is in the old format: `mbse '
                       'convert ', 'broken.yaml -o NEW.yaml` rewrites it'),
    'no YAML': ('points:', 'points: [', 'expected correct YAML', 'line '),
    'out of reach': ('stroke: 0.535 m', 'stroke: 1.75 m', "cylinders.lift: got 'a piston at ", "m', expected "
                     'closed_length, stroke and points with which the mechanism reaches it'),
}


@pytest.mark.parametrize('name', BROKEN)
def test_broken_file(name, tmp_path):
    old, new, *expected = BROKEN[name]
    assert old in LIFT
    path = tmp_path / 'broken.yaml'
    path.write_text(LIFT.replace(old, new, 1))
    line = refused('check', path)
    assert line.startswith(f'{path}: ') and all(text in line for text in expected), line


def test_all_errors_of_a_file(tmp_path):
    """One line for each, the file once."""
    path = tmp_path / 'broken.yaml'
    path.write_text(LIFT.replace('bore: 100 mm', 'bore: 100').replace('143.66 kg', '-3 kg').replace('m.tip', 'm.tp'))
    done = mbse('check', path)
    first, *lines = done.err.splitlines()
    assert done.status == 2 and first == f'mbse: {path}: 3 errors'
    assert [line.partition(':')[0] for line in lines] == ['- bodies.boom.mass.value', '- cylinders.lift.bore',
                                                          '- payload.point']


def test_estimate_and_simulate_refuse_it_in_the_same_words(tmp_path):
    path = tmp_path / 'broken.yaml'
    path.write_text(LIFT.replace('bore:', 'boar:'))
    line = refused('check', path)
    assert refused('simulate', path, '-o', tmp_path / 'bag') == line
    assert refused('estimate', tmp_path / 'bag', '--machine', path) == line
    assert not (tmp_path / 'bag').exists()


@pytest.mark.parametrize('content, text', [
    (b'', 'the file is empty'), (b'- 1\n', 'expected a mapping with the keys format, name'),
    ('name: \xe4'.encode('latin1'), 'a readable text file in UTF-8')])
def test_no_machine_at_all(content, text, tmp_path):
    (tmp_path / 'x.yaml').write_bytes(content)
    assert text in refused('check', tmp_path / 'x.yaml')


def test_no_such_machine(tmp_path):
    line = refused('check', 'excavators')
    assert line.startswith("excavators: name: got 'excavators', expected a path to a .yaml file, one of the machines "
                           + ', '.join(MACHINES))
    assert 'No such file' in refused('check', Path(tmp_path / 'none.yaml'))
