# SPDX-License-Identifier: Apache-2.0
"""Wrong machine files: every one is refused with file, key path, value and what was expected."""

from pathlib import Path

import pytest
import yaml

from mbse_ros.errors import DescriptionError
from mbse_ros.mechanism.description.load import load_description, parse_description

TEXT = (Path(__file__).parents[1] / 'config' / 'machines' / 'patu655_lift.yaml').read_text(encoding='utf-8')
REMOVED = '(removed)'     # a word that no file says


def refused(text):
    with pytest.raises(DescriptionError) as caught:
        parse_description(text, 'crane.yaml')
    assert caught.value.file == 'crane.yaml' and str(caught.value).startswith('crane.yaml: ')
    return caught.value


def changed(path, value):
    """The good file with one key replaced, added or removed; '/' divides the keys."""
    tree = yaml.safe_load(TEXT)
    *way, last = path.split('/')
    place = tree
    for key in way:
        place = place[int(key) if isinstance(place, list) else key]
    if value is REMOVED:
        del place[last]
    else:
        place[int(last) if isinstance(place, list) else last] = value
    return yaml.safe_dump(tree, sort_keys=False)


CYLINDER, VALVE, PISTON = 'cylinders/lift', 'hydraulics/valves/lift_valve', 'hydraulics/volumes/lift_piston'
TWO_LIFTS = {name: {'type': 'fixed', 'parent': 'ground.boom_pivot', 'child': 'boom.pivot'} for name in ('one', 'two')}
CASES = [
    # keys
    ('format', 'mbse/machine/2', 'format', 'mbse/machine/1'),
    ('format', REMOVED, 'format', 'mbse/machine/1'),
    ('bodies/boom/mas', '1 kg', 'bodies.boom.mas', 'did you mean mass?'),
    ('bodies/boom/mass', REMOVED, 'bodies.boom.mass', 'this key, which is missing'),
    ('joints/boom_joint/type', REMOVED, 'joints.boom_joint.type', 'this key, which is missing'),
    ('joints/boom_joint', 'revolute', 'joints.boom_joint', 'a mapping with the keys type'),
    ('payload', REMOVED, 'payload', 'missing'),
    ('bodies', {}, 'bodies', 'at least one'),
    ('bodies', ['boom'], 'bodies', 'a mapping from names to bodies'),
    ('bodies/boom arm', {}, 'bodies.boom arm', 'a name of letters'),
    ('name', 'my/crane', 'name', 'a name of letters'),
    ('source', ['me'], 'source', 'text'),
    # numbers and units
    ('bodies/boom/mass', '143 m', 'bodies.boom.mass.value', "'m' is not a unit of kg"),
    ('bodies/boom/mass', '143 kgg', 'bodies.boom.mass.value', "'kgg' is no known unit"),
    ('bodies/boom/mass', -5, 'bodies.boom.mass.value', 'above 0'),
    ('bodies/boom/mass', float('nan'), 'bodies.boom.mass.value', 'no number'),
    ('bodies/boom/mass', float('inf'), 'bodies.boom.mass.value', 'no number'),
    ('bodies/boom/mass', True, 'bodies.boom.mass.value', 'no number'),
    ('bodies/boom/mass', None, 'bodies.boom.mass.value', 'a number'),
    ('bodies/boom/mass', ['1 kg'], 'bodies.boom.mass.value', 'a number'),
    ('bodies/boom/mass', {'value': '1 kg', 'std': 1}, 'bodies.boom.mass.std', 'did you mean stddev?'),
    ('bodies/boom/mass', {'stddev': 1}, 'bodies.boom.mass.value', 'missing'),
    ('bodies/boom/mass', {'value': 1, 'stddev': '-1 %'}, 'bodies.boom.mass.stddev', 'from 0'),
    ('bodies/boom/mass', {'value': 1, 'stddev': '1 mm'}, 'bodies.boom.mass.stddev', 'not a unit of kg'),
    (f'{CYLINDER}/friction/coulomb', {'value': 0, 'stddev': '1 %'}, 'cylinders.lift.friction.coulomb.stddev', 'of 0'),
    (f'{CYLINDER}/bore', 100, 'cylinders.lift.bore', 'from 0.001 to 5 m'),
    (f'{CYLINDER}/closed_length', '10 m', 'cylinders.lift', '10 to 10.535 m'),
    (f'{CYLINDER}/closed_length', '0.3 m', 'cylinders.lift', '0.3 to 0.835 m'),
    (f'{CYLINDER}/friction/scale', '10 deg', 'cylinders.lift.friction.scale', 'no plain factor'),
    ('hydraulics/oil_bulk_modulus', '1650 mPa', 'hydraulics.oil_bulk_modulus', 'from 1e+06'),
    ('joints/boom_joint/limits', ['-60', '85'], 'joints.boom_joint.limits[0]', 'from -20 to 20 rad'),
    ('joints/boom_joint/start', '5 %', 'joints.boom_joint.start', "'%' is not a unit of rad"),
    ('gravity', -9.81, 'gravity', 'from 0'),
    ('gravity', [0, 0], 'gravity', 'three values x, y, z'),
    ('bodies/boom/center_of_mass', '1 m', 'bodies.boom.center_of_mass', 'three values x, y, z'),
    ('bodies/boom/center_of_mass', [0, 0, '1 kg'], 'bodies.boom.center_of_mass[2]', 'not a unit of m'),
    ('bodies/boom/points/rod_eye/stddev', [1, 2], 'bodies.boom.points.rod_eye.stddev', 'deviation or three'),
    # bodies and joints
    ('bodies/boom/inertia', {'xx': 1, 'yy': 1, 'zz': 3}, 'bodies.boom.inertia', 'sum of the other two'),
    ('bodies/boom/inertia', {'yy': 3, 'xy': 1}, 'bodies.boom.inertia', 'xx, yy and zz beside products'),
    ('bodies/boom/inertia', {'xx': 3}, 'bodies.boom.inertia', 'one is enough where'),
    ('bodies/boom/inertia', {'yy': -3}, 'bodies.boom.inertia.yy', 'from 0'),
    ('bodies/boom/outline', ['tip', 'top'], 'bodies.boom.outline[1]', 'pivot, rod_eye, tip; did you mean tip?'),
    ('bodies/ground', {'mass': 1, 'center_of_mass': [0, 0, 0], 'inertia': {}, 'points': {'a': [0, 0, 0]}},
     'bodies.ground', 'is the ground'),
    ('bodies/arm', {'mass': 1, 'center_of_mass': [0, 0, 0], 'inertia': {}, 'points': {'a': [0, 0, 0]}},
     'bodies.arm', 'the child of exactly one joint'),
    ('joints', TWO_LIFTS, 'bodies.boom', 'the child of exactly one joint'),
    ('joints/boom_joint/type', 'hinge', 'joints.boom_joint.type', 'revolute, prismatic, fixed'),
    ('joints/boom_joint/type', 'fixed', 'joints.boom_joint.axis', 'one of the keys'),
    ('joints/boom_joint/type', 'prismatic', 'joints.boom_joint.start', 'not a unit of m'),
    ('joints/boom_joint/axis', [0, 0, 0], 'joints.boom_joint.axis', 'not a zero vector'),
    ('joints/boom_joint/parent', 'ground', 'joints.boom_joint.parent', "as 'body.point'"),
    ('joints/boom_joint/parent', 'grund.boom_pivot', 'joints.boom_joint.parent', 'did you mean ground?'),
    ('joints/boom_joint/parent', 'ground.pivot', 'joints.boom_joint.parent', 'boom_pivot, cylinder_base'),
    ('joints/boom_joint/parent', 'boom.tip', 'joints.boom_joint.child', 'another body than the parent'),
    ('joints/boom_joint/child', 'ground.boom_pivot', 'joints.boom_joint.child', 'one of the bodies: boom'),
    ('joints/boom_joint/limits', ['5 deg', '-5 deg'], 'joints.boom_joint.limits', 'a lower and a higher'),
    ('joints/boom_joint/start', '86 deg', 'joints.boom_joint.start', 'inside the limits'),
    ('joints/boom_joint/start', '-50 deg', 'cylinders.lift', '0.82 to 1.355 m'),
    ('joints', {'one': TWO_LIFTS['one']}, 'cylinders', 'each of the 0 degrees of freedom'),
    # cylinders and hydraulics
    (f'{CYLINDER}/rod', '100 mm', 'cylinders.lift.rod', 'thinner than the bore, 0.1 m'),
    (f'{CYLINDER}/stroke', 0, 'cylinders.lift.stroke', 'above 0'),
    (f'{CYLINDER}/base', 'boom.tip', 'cylinders.lift.rod_eye', 'another body than the base'),
    (f'{CYLINDER}/friction/static', '100 N', 'cylinders.lift.friction.static', 'no less than the Coulomb friction'),
    (f'{CYLINDER}/end_stop', {'stiffness': 1, 'damping': 1, 'length': 1}, 'cylinders.lift.end_stop.length',
     'up to 0.2675'),
    (f'{PISTON}/chambers', ['lift.piston', 'lift.rod'], 'hydraulics.volumes.lift_rod.chambers[0]', 'one volume, once'),
    (f'{PISTON}/chambers', [], 'hydraulics.volumes.lift_piston.chambers', 'at least one'),
    (f'{PISTON}/chambers', ['tilt.piston'], 'hydraulics.volumes.lift_piston.chambers[0]', 'lift.piston, lift.rod'),
    (f'{PISTON}/hoses', [], 'hydraulics.volumes.lift_piston.hoses', 'never be empty'),
    ('hydraulics/volumes/lift_rod', REMOVED, 'hydraulics.volumes', 'missing: lift.rod'),
    (f'{VALVE}/kind', 'orifis', 'hydraulics.valves.lift_valve.kind', 'did you mean orifice?'),
    (f'{VALVE}/laminar_pressure', 0, 'hydraulics.valves.lift_valve.laminar_pressure', 'above 0'),
    (f'{VALVE}/nominal_flow', REMOVED, 'hydraulics.valves.lift_valve.nominal_flow', 'missing'),
    (f'{VALVE}/nominal_flow', 24, 'hydraulics.valves.lift_valve.nominal_flow', 'up to 10 m^3/s'),
    (f'{VALVE}/ports/b', 'lift_piston', 'hydraulics.valves.lift_valve.ports.b', 'another volume than port a'),
    (f'{VALVE}/ports/pump', 'pomp', 'hydraulics.valves.lift_valve.ports.pump', 'did you mean pump?'),
    (f'{VALVE}/ports/pump', 'tank', 'hydraulics.valves.lift_valve.ports.pump', 'higher pressure than the tank'),
    # payload and sensors
    ('payload/point', 'ground.boom_pivot', 'payload.point', 'one of the bodies: boom'),
    ('payload/limits', [5, 1], 'payload.limits', 'a lower and a higher mass'),
    ('sensors/position/lift', REMOVED, 'sensors.position.lift', 'missing'),
    ('sensors/position/tilt', {'stddev': 1}, 'sensors.position.tilt', 'one of the keys lift'),
    ('sensors/pressure/lift_rod/stddev', 0, 'sensors.pressure.lift_rod.stddev', 'above 0'),
]


@pytest.mark.parametrize('path, value, key, expected', CASES, ids=[f'{case[0]}={case[1]}'[:60] for case in CASES])
def test_a_wrong_value_is_refused_with_its_key(path, value, key, expected):
    if path == 'bodies/boom/mass' and not isinstance(value, dict) and value is not REMOVED:
        path += '/value'
    error = refused(changed(path, value))
    assert (error.key, expected in error.expected) == (key, True), str(error)


@pytest.mark.parametrize('text, key, expected', [
    ('', '', 'the file is empty'),
    ('just text', '', 'a mapping with the keys format'),
    ('format: mbse/machine/1\nname: [1, 2\n', 'line 3', 'correct YAML'),
    ('format: mbse/machine/1\n\tname: x\n', 'line 2', 'correct YAML'),
    (TEXT + 'name: again\n', f'line {TEXT.count(chr(10)) + 1}', 'each key once'),
    (TEXT + '? [1, 2]\n: 3\n', f'line {TEXT.count(chr(10)) + 1}', 'a word as key'),
    ('--- {}\n--- {}\n', 'line 2', 'correct YAML'),
    ('format: mbse/machine/1\nname: !!python/object:os.system x\n', 'line 2', 'without a tag'),
    ('a: &a [*a]\n', 'line 1', 'levels'),
    ('[' * 5000, '', 'nested brackets'),
    ('- ' * 3000, 'line 1', 'levels'),
    ('a: &a [1,1,1,1,1,1,1,1,1]\n' + ''.join(f'{b}: &{b} [*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a}]\n'
                                             for a, b in zip('abcdefgh', 'bcdefghi')), 'line 1', '50000 values'),
    ('a: \x07\n', '', 'correct YAML')])
def test_text_that_is_no_usable_yaml_is_refused_with_its_line(text, key, expected):
    error = refused(text)
    assert (error.key, expected in error.expected) == (key, True), str(error)


def test_a_circle_of_joints_is_refused():
    text = changed('bodies/arm', {'mass': 1, 'center_of_mass': [0, 0, 0], 'inertia': {}, 'points': {'a': [0, 0, 0]}})
    tree = yaml.safe_load(text)
    tree['joints'] = {'one': {'type': 'fixed', 'parent': 'boom.tip', 'child': 'arm.a'},
                      'two': {'type': 'fixed', 'parent': 'arm.a', 'child': 'boom.pivot'}}
    error = refused(yaml.safe_dump(tree))
    assert error.key == 'joints.one.parent' and 'round in a circle' in error.expected


def test_an_unfed_volume_is_refused():
    """Two cranes in one file, and a valve for one of them."""
    tree = yaml.safe_load(TEXT)
    pairs = {'bodies': ('boom', 'arm'), 'joints': ('boom_joint', 'arm_joint'), 'cylinders': ('lift', 'tilt')}
    for section, (old, new) in pairs.items():
        tree[section][new] = {**tree[section][old]}
    tree['joints']['arm_joint']['child'] = 'arm.pivot'
    tree['cylinders']['tilt']['rod_eye'] = 'arm.rod_eye'
    tree['sensors']['position']['tilt'] = {'stddev': '1 mm'}
    for side in ('piston', 'rod'):
        tree['hydraulics']['volumes'][f'tilt_{side}'] = {**tree['hydraulics']['volumes'][f'lift_{side}'],
                                                         'chambers': [f'tilt.{side}']}
    error = refused(yaml.safe_dump(tree))
    assert error.key == 'hydraulics.valves' and 'not fed: tilt_piston, tilt_rod' in error.expected
    tree['hydraulics']['valves']['tilt_valve'] = {'kind': 'unknown', 'ports': {'a': 'tilt_piston', 'b': 'tilt_rod'}}
    assert list(parse_description(yaml.safe_dump(tree, sort_keys=False)).cylinders) == ['lift', 'tilt']


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(DescriptionError, match='a readable text file'):
        load_description(tmp_path / 'none.yaml')
    (tmp_path / 'latin.yaml').write_bytes(b'name: \xff\xfe')
    with pytest.raises(DescriptionError, match='a readable text file'):
        load_description(tmp_path / 'latin.yaml')


def test_yaml_1_1_does_not_guess():
    text = TEXT.replace('pump: 10 MPa', 'on: 1e7').replace('pump: pump', 'pump: on').replace('143.66 kg', '0143.66')
    machine = parse_description(text)
    assert machine.hydraulics.supplies['on'].value == 1e7
    assert machine.bodies['boom'].mass.value == 143.66
    for trap in ('1:30', '0x10', '1_000', 'yes', '.inf'):
        assert refused(TEXT.replace('143.66 kg', trap)).key == 'bodies.boom.mass.value'


def test_a_missing_moment_is_allowed_only_about_one_axis():
    tree = yaml.safe_load(changed('joints/boom_joint/axis', [0, -1, 1]))
    assert refused(yaml.safe_dump(tree)).key == 'bodies.boom.inertia'
    tree['bodies']['boom']['inertia'] = {'xx': 1, 'yy': 67, 'zz': 67}
    axis = parse_description(yaml.safe_dump(tree)).joints['boom_joint'].axis
    assert axis == pytest.approx((0.0, -0.5 ** 0.5, 0.5 ** 0.5))
