# SPDX-License-Identifier: Apache-2.0
"""Wrong machine files: every one is refused with file, key path, value and what was expected.

What machines share with other mechanisms is in ``test_description_errors.py``.
"""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from linkage_mutations import REMOVED, changed

from mbse_ros.description.load import load_mechanism, parse_mechanism
from mbse_ros.errors import DescriptionError, DescriptionErrors
from mbse_ros.machine import Machine

CONFIG = Path(__file__).parents[2] / 'config' / 'machines'
TEXT = (CONFIG / 'patu655_lift.yaml').read_text(encoding='utf-8')
HEAD = 'format: mbse/machine/2\n'


def refused(text):
    with pytest.raises(DescriptionError) as caught:
        parse_mechanism(text, 'crane.yaml')
    assert caught.value.file == 'crane.yaml' and str(caught.value).startswith('crane.yaml: ')
    return caught.value


def found(text):
    """Keys of all errors of a file."""
    error = refused(text)
    return [one.key for one in getattr(error, 'errors', [error])]


CYLINDER, VALVE, PISTON = 'cylinders/lift', 'hydraulics/valves/lift_valve', 'hydraulics/volumes/lift_piston'
FIXED = {'type': 'fixed', 'parent': 'ground.boom_pivot', 'child': 'boom.pivot'}
FLOATING = {'mass': 1, 'center_of_mass': [0, 0, 0], 'inertia': {'xx': 1, 'yy': 1, 'zz': 1}, 'points': {'a': [0, 0, 0]},
            'position': [0, 0, 0]}
SUPPLY = {'kind': 'pressure', 'supply': 'pump', 'stddev': '1 kPa'}
CASES = [
    # sections
    ('format', 'mbse/machine/1', 'format', '`mbse convert crane.yaml -o NEW.yaml` rewrites it'),
    ('format', 'mbse/machine/3', 'format', 'mbse/machine/2'),
    ('format', REMOVED, 'format', 'mbse/machine/2'),
    ('cylinders', REMOVED, 'hydraulics', '`cylinders` as well'),
    ('cylinder', {}, 'cylinder', 'did you mean cylinders?'),
    # numbers
    ('bodies/boom/mass', '143 kgg', 'bodies.boom.mass', "'kgg' is not a known unit"),
    ('bodies/boom/mass', float('nan'), 'bodies.boom.mass', 'a number'),
    ('bodies/boom/mass', True, 'bodies.boom.mass', 'a number'),
    (f'{CYLINDER}/friction/coulomb', {'value': 0, 'stddev': '1 %'}, 'cylinders.lift.friction.coulomb.stddev', 'of 0'),
    (f'{CYLINDER}/bore', 100, 'cylinders.lift.bore', 'from 0.001 to 5 m'),
    (f'{CYLINDER}/friction/scale', '10 deg', 'cylinders.lift.friction.scale', 'not a plain factor'),
    ('hydraulics/oil_bulk_modulus', '1650 mPa', 'hydraulics.oil_bulk_modulus', 'from 1e+06'),
    ('joints/boom_joint/start', '5 %', 'joints.boom_joint.start', "'%' is not a unit of rad"),
    ('bodies/boom/points/rod_eye/stddev', [1, 2], 'bodies.boom.points.rod_eye.stddev', 'one'),
    # bodies and joints
    ('bodies/boom/inertia', {'xx': 3}, 'bodies.boom.inertia', 'one is enough where'),
    ('joints/boom_joint/limits', ['5 deg', '-5 deg'], 'joints.boom_joint.limits', 'a lower and a higher'),
    ('joints/boom_joint/limits', [-60, 85], 'joints.boom_joint.limits[0]', 'from -20 to 20 rad'),
    ('joints/boom_joint/start', '86 deg', 'joints.boom_joint.start', 'inside the limits'),
    # cylinders
    (f'{CYLINDER}/rod', '100 mm', 'cylinders.lift.rod', 'thinner than the bore, 0.1 m'),
    (f'{CYLINDER}/stroke', 0, 'cylinders.lift.stroke', 'above 0'),
    (f'{CYLINDER}/base', 'boom.tip', 'cylinders.lift.rod_eye', 'another body than the base'),
    (f'{CYLINDER}/base', 'ground.boom_pivt', 'cylinders.lift.base', 'did you mean boom_pivot?'),
    (f'{CYLINDER}/rod_eye', 'boom.pivot', '', ''),          # no error of the file alone: a distance that can change
    (f'{CYLINDER}/friction/static', '100 N', 'cylinders.lift.friction.static', 'no less than the Coulomb friction'),
    (f'{CYLINDER}/end_stop', {'stiffness': 1, 'damping': 1, 'length': 1}, 'cylinders.lift.end_stop.length',
     'up to 0.2675'),
    (f'{CYLINDER}/count', 0, 'cylinders.lift.count', 'how many cylinders work side by side'),
    (f'{CYLINDER}/count', 1.5, 'cylinders.lift.count', 'how many cylinders work side by side'),
    (f'{CYLINDER}/barrel_mass', '-1 kg', 'cylinders.lift.barrel_mass', 'from 0'),
    (f'{CYLINDER}/friction/out_scale', -1, 'cylinders.lift.friction.out_scale', 'from 0'),
    (f'{CYLINDER}/friction/outscale', 1, 'cylinders.lift.friction.outscale', 'did you mean out_scale?'),
    (f'{CYLINDER}/parallel', {}, 'cylinders.lift.parallel', 'one of the keys constant, linear, cubic, damping'),
    (f'{CYLINDER}/parallel', {'about': '10 mm'}, 'cylinders.lift.parallel', 'at least one of the keys'),
    (f'{CYLINDER}/parallel', {'dampng': 1}, 'cylinders.lift.parallel.dampng', 'did you mean damping?'),
    (f'{CYLINDER}/parallel', '5 N', 'cylinders.lift.parallel', 'a mapping'),
    (f'{CYLINDER}/parallel', {'damping': '1e9 N*s/m'}, 'cylinders.lift.parallel.damping', 'from -1e+08 to 1e+08'),
    (f'{CYLINDER}/parallel', {'linear': float('nan')}, 'cylinders.lift.parallel.linear', 'from -1e+09 to 1e+09'),
    (f'{CYLINDER}/parallel', {'cubic': '1 N/m'}, 'cylinders.lift.parallel.cubic', 'not a unit of N/m^3'),
    (f'{CYLINDER}/parallel', {'constant': [1, 2]}, 'cylinders.lift.parallel.constant', 'a number'),
    (f'{CYLINDER}/force_error', {'time': '1 s'}, 'cylinders.lift.force_error.stddev', 'is missing'),
    (f'{CYLINDER}/force_error', {'stddev': '-1 N'}, 'cylinders.lift.force_error.stddev', 'from 0'),
    (f'{CYLINDER}/force_error', {'stddev': '3 kPa'}, 'cylinders.lift.force_error.stddev', 'not a unit of N'),
    (f'{CYLINDER}/force_error', {'stddev': '3 kN', 'time': '0 s'}, 'cylinders.lift.force_error.time',
     'from 0.001 to 60'),
    (f'{CYLINDER}/force_error', {'stddev': '3 kN', 'tim': '1 s'}, 'cylinders.lift.force_error.tim',
     'did you mean time?'),
    ('cylinders/boom_joint', {}, 'cylinders.boom_joint', 'a joint or a coordinate of this name'),
    # hydraulics
    (f'{PISTON}/chambers', ['lift.piston', 'lift.rod'], 'hydraulics.volumes.lift_rod.chambers[0]', 'one volume, once'),
    (f'{PISTON}/chambers', [], 'hydraulics.volumes.lift_piston.chambers', 'at least one'),
    (f'{PISTON}/chambers', ['tilt.piston'], 'hydraulics.volumes.lift_piston.chambers[0]', 'lift.piston, lift.rod'),
    (f'{PISTON}/hoses', [], 'hydraulics.volumes.lift_piston.hoses', 'never be empty'),
    ('hydraulics/volumes/lift_piston/chambers', ['lift.rod'], 'hydraulics.volumes.lift_rod.chambers[0]', 'once'),
    ('hydraulics/volumes', {'lift_rod': {'chambers': ['lift.piston'], 'cylinder_bulk_modulus': '2e5 MPa',
     'hoses': [{'volume': '1 l', 'bulk_modulus': '700 MPa'}]}}, 'hydraulics.volumes.lift_rod',
     'lift.rod is in no volume'),
    ('hydraulics/oil', 'hlp46', 'hydraulics.oil', 'only one of the keys'),
    (f'{CYLINDER}/friction', 'typicl', 'cylinders.lift.friction', 'did you mean typical?'),
    (f'{CYLINDER}/friction', {'scale': 1}, 'cylinders.lift.friction.coulomb', 'missing'),
    (f'{CYLINDER}/friction', {'preset': 'usual'}, 'cylinders.lift.friction.preset', 'typical'),
    (f'{CYLINDER}/friction', {'preset': 'typical', 'coulomb': '900 N'}, 'cylinders.lift.friction', 'no less than'),
    ('hydraulics/supplies/lift_rod', '1 MPa', 'hydraulics.supplies.lift_rod', 'a volume of this name'),
    (f'{VALVE}/kind', 'orifis', 'hydraulics.valves.lift_valve.kind', 'did you mean orifice?'),
    (f'{VALVE}/laminar_pressure', 0, 'hydraulics.valves.lift_valve.laminar_pressure', 'above 0'),
    (f'{VALVE}/nominal_flow', REMOVED, 'hydraulics.valves.lift_valve.nominal_flow', 'missing'),
    (f'{VALVE}/nominal_flow', 2400, 'hydraulics.valves.lift_valve.nominal_flow', 'm^3/s'),
    (f'{VALVE}/dead_band', '9.9 V', 'hydraulics.valves.lift_valve.dead_band', 'less than nominal_command, 9.9 V'),
    (f'{VALVE}/dead_band', '-1 V', 'hydraulics.valves.lift_valve.dead_band', 'from 0'),
    (f'{VALVE}/gains', {'pump_c': 1}, 'hydraulics.valves.lift_valve.gains.pump_c', 'did you mean pump'),
    (f'{VALVE}/gains', {'pump_a': 0}, 'hydraulics.valves.lift_valve.gains.pump_a', 'above 0'),
    (f'{VALVE}/ports/b', 'lift_piston', 'hydraulics.valves.lift_valve.ports.b', 'another volume than port a'),
    (f'{VALVE}/ports/pump', 'pomp', 'hydraulics.valves.lift_valve.ports.pump', 'did you mean pump?'),
    (f'{VALVE}/ports/pump', 'tank', 'hydraulics.valves.lift_valve.ports.pump', 'higher pressure than the tank'),
    # payload, base
    ('payload/point', 'ground.boom_pivot', 'payload.point', 'fixed to the ground'),
    ('payload/limits', [5, 1], 'payload.limits', 'a lower and a higher mass'),
    ('payload', {'body': 'boom', 'limits': [0, 1]}, 'payload.center', 'missing'),
    ('payload', {'body': 'bom', 'center': [0, 0, 0], 'limits': [0, 1]}, 'payload.body', 'did you mean boom?'),
    ('payload/gyration_radius', '-1 cm', 'payload.gyration_radius', 'from 0 to 20 m'),
    ('payload/gyration_radius', '400', 'payload.gyration_radius', 'from 0 to 20 m'),
    ('payload/hanging', '1 cm', 'payload.hanging', 'from 0.1 to 100 m'),
    ('payload/hanging', '2 kg', 'payload.hanging', 'not a unit of m'),
    ('payload', {'point': 'boom.tip', 'limits': [0, 1], 'hanging': '2 m', 'gyration_radius': '1 m'},
     'payload.gyration_radius', 'does not turn with the body'),
    ('payload', {'body': 'boom', 'center': {'value': [2.9, 0, 0], 'stddev': 0.1}, 'limits': [0, 1], 'hanging': '2 m'},
     'payload.center', 'a centre without stddev'),
    ('base', {'roll': '50 deg'}, 'base.roll', 'from -0.8 to 0.8 rad'),
    ('base', {'yaw': 0}, 'base.yaw', 'roll, pitch'),
    ('base/support', {'height': 0}, 'base.support.corners', 'missing'),
    ('base/support', [[0, 0], [1, 0], [0, 1]], 'base.support', 'a mapping with the keys corners'),
    ('base/support', {'corners': [[0, 0], [1, 1]]}, 'base.support.corners', 'three corners that are not on one line'),
    ('base/support', {'corners': [[0, 0], [1, 1], [2, 2], [1, 1]]}, 'base.support.corners', 'not on one line'),
    ('base/support', {'corners': [[0, 0], [1, 0, 0], [0, 1]]}, 'base.support.corners[1]', '2 numbers'),
    ('base/support', {'corners': [[0, 0], [1, 0], [0, '200 m']]}, 'base.support.corners[2][1]', 'from -100 to 100 m'),
    ('base/support', {'corners': [[0, 0], ['1 kg', 0], [0, 1]]}, 'base.support.corners[1][0]', 'not a unit of m'),
    ('base/support', {'corners': [[0, 0], [1, 0], [0, 1]], 'mass': '5 t'}, 'base.support.center_of_mass', 'both'),
    ('base/support', {'corners': [[0, 0], [1, 0], [0, 1]], 'center_of_mass': [0, 0, 0]}, 'base.support.center_of_mass',
     'both or none'),
    ('base/support', {'corners': [[0, 0], [1, 0], [0, 1]], 'mass': '-5 t'}, 'base.support.mass', 'from 0'),
    # sensors
    ('sensors/second', {'kind': 'stroke', 'cylinder': 'lift', 'stddev': 1}, 'sensors.second', 'lift_stroke measures'),
    ('sensors/lift_stroke/cylinder', 'tilt', 'sensors.lift_stroke.cylinder', 'a cylinder: lift'),
    ('sensors/lift_rod/stddev', 0, 'sensors.lift_rod.stddev', 'above 0'),
    ('sensors/lift_rod/volume', 'rod', 'sensors.lift_rod.volume', 'a volume: lift_piston, lift_rod'),
    ('sensors/lift_rod/supply', 'pump', 'sensors.lift_rod.volume', 'exactly one of the keys volume, supply'),
    ('sensors/pump', {**SUPPLY, 'supply': 'pomp'}, 'sensors.pump.supply', 'did you mean pump?'),
    ('sensors/pump', {**SUPPLY, 'gain': 0}, 'sensors.pump.gain', 'from 0.1 to 10'),
    ('sensors/pump', {**SUPPLY, 'offset': '1 V'}, 'sensors.pump.offset', 'not a unit of Pa'),
    ('sensors/pump', {**SUPPLY, 'reference': 'relative'}, 'sensors.pump.reference', 'absolute or gauge'),
    ('sensors/pump', {**SUPPLY, 'bias': 0}, 'sensors.pump.bias', 'one of the keys'),
    ('sensors/imu', {'kind': 'accelerometer', 'body': 'base', 'stddev': 1}, 'sensors.imu.point', 'or `body: ground`'),
    ('sensors/lift_rod/delay', '-1 ms', 'sensors.lift_rod.delay', 'from 0 to 0.5 s'),
    ('sensors/lift_stroke/delay', '0.6 s', 'sensors.lift_stroke.delay', 'from 0 to 0.5 s'),
    ('sensors/lift_rod/delay', float('nan'), 'sensors.lift_rod.delay', 'from 0 to 0.5 s'),
    ('sensors/lift_rod/delay', '1 mm', 'sensors.lift_rod.delay', 'not a unit of s'),
    ('sensors/lift_rod/delay', {'value': 0, 'stddev': '-1 ms'}, 'sensors.lift_rod.delay.stddev', 'from 0'),
    ('sensors/lift_rod/dely', '1 ms', 'sensors.lift_rod.dely', 'did you mean delay?'),
    ('sensors/lift_rod/range', ['9 MPa', '1 MPa'], 'sensors.lift_rod.range', 'a lower and a higher value'),
    ('sensors/lift_rod/range', '9 MPa', 'sensors.lift_rod.range', 'the lowest and the highest value'),
    ('sensors/lift_stroke/range', ['0 m', '2 MPa'], 'sensors.lift_stroke.range[1]', 'text with a unit'),
]


@pytest.mark.parametrize('path, value, key, expected', CASES, ids=[f'{case[0]}={case[1]}'[:60] for case in CASES])
def test_a_wrong_value_is_refused_with_its_key(path, value, key, expected):
    if not expected:        # near the wrong ones; the model refuses it
        with pytest.raises(DescriptionError):
            Machine(parse_mechanism(changed(TEXT, path, value), 'crane.yaml'))
        return
    error = refused(changed(TEXT, path, value))
    assert (error.key, expected in error.expected) == (key, True), str(error)
    assert path in MANY or not isinstance(error, DescriptionErrors), str(error)


MANY = 'cylinders', 'joints/boom_joint/limits', f'{CYLINDER}/friction'      # several errors each
SINGLE = [case for case in CASES if case[3] and case[0] not in ('format', 'hydraulics', 'cylinder', *MANY)
          and case[2] != 'bodies.boom.inertia']


NUMBERS = 'mass', 'bore', 'scale', 'oil_bulk_modulus', 'delay', 'stroke', 'barrel_mass', 'roll', 'limits', 'range'


@given(st.lists(st.sampled_from(SINGLE), min_size=2, max_size=4, unique_by=lambda case: case[0].split('/')[0]))
def test_several_wrong_values_are_said_at_once(cases):
    """Nothing is said that is not wrong, and of numbers, which break nothing, all are said."""
    text = TEXT
    for path, value, _, _ in cases:
        text = changed(text, path, value)
    keys = found(text)
    assert set(keys) <= {case[2] for case in cases} and len(set(keys)) == len(keys)
    plain = [case for case in cases if case[0].split('/')[-1] in NUMBERS]
    assert {case[2] for case in plain} <= set(keys) or len(plain) < len(cases)


def test_a_file_of_many_mistakes_is_refused_once():
    """Mistakes of one who writes a first file: each is said, with the nearest name."""
    text = (CONFIG / 'zx200.yaml').read_text(encoding='utf-8')
    mistakes = {
        'bodies/boom/mass': ('231O kg', 'a number'), 'bodies/arm/masse': (1, 'did you mean mass?'),
        'joints/arm_joint/parent': ('boom.arm_pn', 'did you mean arm_pin?'),
        'joints/bucket_joint/limits': (['2 rad', '-1 rad'], 'a lower and a higher limit'),
        'cylinders/boom/bore': (120, 'from 0.001 to 5 m'), 'cylinders/boom/rod': ('85 MPa', 'not a unit of m'),
        'cylinders/arm/friction/viscous': (REMOVED, 'is missing'),
        'cylinders/bucket/rod_eye': ('rocker.ey', 'did you mean eye?'),
        'hydraulics/volumes/arm_rod/chambers': (['arm.rodd'], 'did you mean arm.rod?'),
        'hydraulics/valves/boom_valve/kind': ('orfice', 'did you mean orifice?'),
        'payload/limits': (['2500 kg', '0 kg'], 'a lower and a higher mass'),
        'sensors/boom_piston/volume': ('boom_pston', 'did you mean boom_piston?'),
        'sensors/swing_angle/coordinate': ('swing', 'did you mean swing_joint?'),
        'sensors/boom_stroke/stddev': ('1 bar', 'not a unit of m')}
    for path, (value, _) in mistakes.items():
        text = changed(text, path, value)
    errors = refused(text).errors
    said = {error.key.removesuffix('[0]'): error.expected for error in errors}
    assert said.keys() == {path.replace('/', '.').removesuffix('[0]') for path in mistakes}
    assert all(words in said[path.replace('/', '.')] for path, (_, words) in mistakes.items()), said


@pytest.mark.parametrize('path, value, key, expected', [
    (f'{CYLINDER}/closed_length', '10 m', 'cylinders.lift', '10 to 10.535 m'),
    (f'{CYLINDER}/closed_length', '0.3 m', 'cylinders.lift', '0.3 to 0.835 m'),
    ('joints/boom_joint/start', '-50 deg', 'cylinders.lift', '0.82 to 1.355 m')])
def test_pins_out_of_the_cylinders_reach(path, value, key, expected):
    error = refused(changed(TEXT, path, value))
    assert (error.key, expected in error.expected) == (key, True), str(error)


@pytest.mark.parametrize('path, value, expected', [
    ('joints/boom_joint', FIXED, 'a body that can move'),
    ('bodies/balloon', FLOATING, 'sees the motion of'),
    ('sensors/lift_stroke', REMOVED, 'sees the motion of boom_joint'),
    ('sensors/knob', {'kind': 'position', 'point': 'boom.tip', 'stddev': 1}, 'a sensor of a machine: stroke, encoder'),
])
def test_what_makes_no_machine_is_refused(path, value, expected):
    with pytest.raises(DescriptionError) as caught:
        Machine(parse_mechanism(changed(TEXT, path, value), 'crane.yaml'))
    assert expected in caught.value.expected, str(caught.value)


@pytest.mark.parametrize('text, key, expected', [
    ('', '', 'the file is empty'),
    ('just text', '', 'a mapping with the keys format'),
    (HEAD + 'name: [1, 2\n', 'line 3', 'correct YAML'),
    (HEAD + '\tname: x\n', 'line 2', 'correct YAML'),
    (TEXT + 'name: again\n', f'line {TEXT.count(chr(10)) + 1}', 'each key once'),
    (TEXT + '? [1, 2]\n: 3\n', f'line {TEXT.count(chr(10)) + 1}', 'a word as key'),
    ('--- {}\n--- {}\n', 'line 2', 'correct YAML'),
    (HEAD + 'name: !!python/object:os.system x\n', 'line 2', 'without a tag'),
    ('a: &a [*a]\n', 'line 1', 'levels'),
    ('[' * 5000, '', 'nested brackets'),
    ('- ' * 3000, 'line 1', 'levels'),
    ('a: &a [1,1,1,1,1,1,1,1,1]\n' + ''.join(f'{b}: &{b} [*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a}]\n'
                                             for a, b in zip('abcdefgh', 'bcdefghi')), 'line 1', '50000 values'),
    ('a: \x07\n', '', 'correct YAML')])
def test_text_that_is_no_usable_yaml_is_refused_with_its_line(text, key, expected):
    error = refused(text)
    assert (error.key, expected in error.expected) == (key, True), str(error)


def test_an_unfed_volume_is_refused():
    """Two cranes in one file, and a valve for one of them."""
    tree = yaml.safe_load(TEXT)
    pairs = {'bodies': ('boom', 'arm'), 'joints': ('boom_joint', 'arm_joint'), 'cylinders': ('lift', 'tilt')}
    for section, (old, new) in pairs.items():
        tree[section][new] = {**tree[section][old]}
    tree['joints']['arm_joint']['child'] = 'arm.pivot'
    tree['cylinders']['tilt']['rod_eye'] = 'arm.rod_eye'
    tree['sensors']['tilt_stroke'] = {'kind': 'stroke', 'cylinder': 'tilt', 'stddev': '1 mm'}
    for side in ('piston', 'rod'):
        tree['hydraulics']['volumes'][f'tilt_{side}'] = {**tree['hydraulics']['volumes'][f'lift_{side}'],
                                                         'chambers': [f'tilt.{side}']}
    tree['hydraulics']['volumes']['both'] = {**tree['hydraulics']['volumes'].pop('tilt_rod'),
                                             'chambers': ['tilt.rod', 'lift.rod']}
    del tree['hydraulics']['volumes']['lift_rod']
    tree['hydraulics']['valves']['lift_valve']['ports']['b'] = 'both'
    del tree['sensors']['lift_rod']
    error = refused(yaml.safe_dump(tree))
    assert error.key == 'hydraulics.valves' and 'not fed: tilt_piston' in error.expected
    tree['hydraulics']['valves']['tilt_valve'] = {'kind': 'unknown', 'ports': {'a': 'tilt_piston', 'b': 'both'}}
    assert list(parse_mechanism(yaml.safe_dump(tree, sort_keys=False)).cylinders) == ['lift', 'tilt']


def test_a_base_of_a_plane_is_refused():
    tree = {'format': 'mbse/machine/2', 'name': 'flat', 'gravity': 9.81, 'base': {'roll': 0},
            'points': {'A': {'fixed': [0, 0]}, 'B': [1, 0]},
            'bodies': {'bar': {'points': ['A', 'B'], 'mass': 1, 'uniform': True}}}
    assert 'in space only' in refused(yaml.safe_dump(tree)).expected


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    folder = tmp_path / 'folder.yaml'
    folder.mkdir()
    for path, words in ((tmp_path / 'none.yaml', 'No such file or directory'), (folder, 'Is a directory')):
        with pytest.raises(DescriptionError) as caught:
            load_mechanism(path)
        assert str(caught.value) == f'{path}: got {words!r}, expected a readable text file'


def test_yaml_1_1_does_not_guess():
    text = TEXT.replace('pump: 10 MPa', 'on: 1e7').replace('pump: pump', 'pump: on').replace('143.66 kg', '0143.66')
    machine = parse_mechanism(text)
    assert machine.hydraulics.supplies['on'].value == 1e7
    assert machine.bodies['boom'].mass.value == 143.66
    for trap in ('1:30', '0x10', '1_000', 'yes', '.inf'):
        assert refused(TEXT.replace('143.66 kg', trap)).key == 'bodies.boom.mass.value'


def test_a_missing_moment_is_allowed_only_about_one_axis():
    tree = yaml.safe_load(changed(TEXT, 'joints/boom_joint/axis', [0, -1, 1]))
    assert refused(yaml.safe_dump(tree)).key == 'bodies.boom.inertia'
    tree['bodies']['boom']['inertia'] = {'xx': 1, 'yy': 67, 'zz': 67}
    axis = parse_mechanism(yaml.safe_dump(tree)).joints['boom_joint'].axis
    assert axis == pytest.approx((0.0, -0.5 ** 0.5, 0.5 ** 0.5))
