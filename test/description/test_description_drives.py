# SPDX-License-Identifier: Apache-2.0
"""The section `drives`, and sensors of efforts and currents."""

import pytest
import small_arm

from mbse_ros.description.load import parse_mechanism
from mbse_ros.description.model import fingerprint
from mbse_ros.errors import DescriptionError


def changed(*pairs: tuple[str, str]) -> str:
    text = small_arm.TEXT
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def test_numbers_of_a_drive():
    of = parse_mechanism(small_arm.TEXT, 'small_arm.yaml')
    drive = of.drives['elbow']
    assert of.is_machine and not of.cylinders and of.coordinate_type == 'relative'
    assert (drive.coordinate, drive.unit, drive.largest, drive.gear_ratio) == ('elbow_angle', 'rad', 40.0, 100.0)
    assert drive.friction.coulomb.value == drive.friction.static.value == 1.0
    assert drive.friction.coulomb.stddev == pytest.approx(0.3) and drive.rotor_inertia.value == 1e-5


def test_friction_that_is_left_out_is_typical_and_marked_as_assumed():
    text = changed(('    friction: {coulomb: {value: 1 N*m, stddev: 30 %}, viscous: {value: 1.5, stddev: 30 %}}\n', ''))
    friction = parse_mechanism(text).drives['elbow'].friction
    assert friction.coulomb.value == pytest.approx(1.2) and friction.scale.stddev == 0.5
    assert friction.scale.source.startswith('assumed') and friction.scale.key == 'drives.elbow.friction.scale'


def test_offset_and_gain_that_are_left_out_are_assumed():
    text = changed((', offset: {value: 0, stddev: 1 N*m}, gain: {value: 1, stddev: 0.1}', ''))
    sensor = parse_mechanism(text).sensors['effort_1']
    assert sensor.gain.stddev == pytest.approx(0.1 / 3 ** 0.5)
    assert sensor.bias[0].stddev == pytest.approx(0.8 / 3 ** 0.5)


def test_files_without_drives_have_the_fingerprints_that_they_had():
    rod = parse_mechanism('format: mbse/machine/2\nname: rod\ngravity: 0\npoints: {a: {fixed: [0, 0]}, b: [1, 0]}\n'
                          'bodies: {rod: {points: [a, b], mass: 1, uniform: true}}\n')
    assert 'drives={}' in repr(rod) and fingerprint(rod) == 'd31dc30c'


@pytest.mark.parametrize('pair, expected', [
    (('joint: elbow_angle', 'joint: shoulder_angle'), 'drives.elbow: got .*one drive a joint, shoulder moves'),
    (('joint: elbow_angle', 'joint: wrist'), 'drives.elbow.joint: got .wrist., expected a coordinate'),
    (('largest: 40 N*m', 'largest: 0 N*m'), 'drives.elbow.largest: got .* expected a number above 0'),
    (('largest: 40 N*m', 'largest: 40 N'), "drives.elbow.largest: got .*'N' is not a unit of N"),
    (('coulomb: {value: 1 N*m, stddev: 30 %}', 'coulomb: 1, static: 0.5'), 'static: got .*no less than the Coulomb'),
    (('kind: effort, drive: elbow, stddev: 0.15 N*m', 'kind: current, drive: elbow, stddev: 0.1 A'),
     'sensors.effort_2.drive: got .elbow., expected a drive with the key `torque_constant`: elbow has none'),
    (('drive: elbow, stddev: 0.15 N*m,', 'drive: elbow,'), 'sensors.effort_2.stddev: .*a deviation or a resolution'),
    (('drive: elbow', 'drive: shoulder'), 'one sensor a place, effort_1 measures this already')])
def test_what_is_wrong_is_said_with_its_key(pair, expected):
    with pytest.raises(DescriptionError, match=expected):
        parse_mechanism(changed(pair), 'small_arm.yaml')


def test_hydraulics_and_a_payload_need_what_moves_them():
    without = small_arm.TEXT[:small_arm.TEXT.index('drives:')] + small_arm.TEXT[small_arm.TEXT.index('payload:'):]
    with pytest.raises(DescriptionError, match='payload.*the section `cylinders` as well.*, or `drives`'):
        parse_mechanism(without)
