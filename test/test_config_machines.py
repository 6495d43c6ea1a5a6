# SPDX-License-Identifier: Apache-2.0
"""The machines that come with the package: numbers, derived numbers, what `explain` and `parameters` say of them."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mbse_ros.mechanism.description.explain import explain, volume_range
from mbse_ros.mechanism.description.kinematics import cylinder_length, frames, point_position, values
from mbse_ros.mechanism.description.listing import quantities, uncertain
from mbse_ros.mechanism.description.load import load_description
from mbse_ros.mechanism.description.model import PointRef, Quantity

MACHINES = Path(__file__).parents[1] / 'config' / 'machines'


@pytest.fixture(scope='module')
def lift():
    return load_description(MACHINES / 'patu655_lift.yaml')


@pytest.fixture(scope='module')
def measured():
    return load_description(MACHINES / 'patu655_measured.yaml')


def test_the_default_machine(lift):
    boom, cylinder = lift.bodies['boom'], lift.cylinders['lift']
    valve = lift.hydraulics.valves['lift_valve']
    assert boom.mass == Quantity(143.66, pytest.approx(1.4366))
    assert [item.value for item in boom.inertia] == [0.0, 67.053707, 0.0, 0.0, 0.0, 0.0]
    assert boom.points['rod_eye'] == (Quantity(0.3025, 1e-3), Quantity(0.0), Quantity(-0.105, 1e-3))
    assert lift.joints['boom_joint'].start == pytest.approx(math.radians(-5.0))
    assert lift.joints['boom_joint'].axis == (0.0, -1.0, 0.0)
    assert (cylinder.base, cylinder.rod_eye) == (PointRef('ground', 'cylinder_base'), PointRef('boom', 'rod_eye'))
    assert cylinder.piston_area == pytest.approx(7.853982e-3, rel=1e-6)
    assert cylinder.rod_area == pytest.approx(5.390973e-3, rel=1e-6)
    assert cylinder.friction.scale == Quantity(1.0, 0.1) and cylinder.end_stop is None
    assert valve.nominal_flow.value == pytest.approx(4e-4) and valve.time_constant.value == pytest.approx(4.5e-3)
    assert (valve.pump, valve.tank, valve.a, valve.b) == ('pump', 'tank', 'lift_piston', 'lift_rod')
    assert lift.hydraulics.volumes['lift_rod'].chambers == (('lift', 'rod'),)
    assert lift.sensors.pressure == {'lift_piston': pytest.approx(12e3), 'lift_rod': pytest.approx(8e3)}
    assert values(lift.gravity).tolist() == [0.0, 0.0, -9.8066]


def test_the_default_machine_starts_where_the_reference_plant_does(lift):
    assert cylinder_length(lift, frames(lift), 'lift') == pytest.approx(0.909591735, abs=1e-9)


def test_volume_sizes(lift):
    low, high = volume_range(lift, lift.hydraulics.volumes['lift_piston'])
    assert (low, high) == (pytest.approx(1.90019e-4), pytest.approx(1.90019e-4 + 0.535 * 7.853982e-3))


def test_the_simple_crane():
    crane = load_description(MACHINES / 'lut_simple_crane.yaml')
    cylinder = crane.cylinders['lift']
    assert crane.bodies['rod'].inertia[1].value == pytest.approx(500.0 / 12.0, rel=1e-8)
    assert cylinder_length(crane, frames(crane), 'lift') == pytest.approx(0.5, abs=1e-6)
    assert cylinder.closed_length.source.startswith('chosen')
    assert cylinder.end_stop.length.value == pytest.approx(8e-3)
    assert crane.hydraulics.volumes['lift_rod'].hoses[0].volume.value == 7.85e-5


def test_the_measured_machine_hangs_its_tilt_boom_below(measured):
    placed = frames(measured, {'boom_joint': 0.0})
    angle = math.radians(46.02)
    place = point_position(measured, placed, PointRef('extension', 'payload'))
    expected = [2.881080943 + 2.113 * math.cos(angle) + 0.26 * math.sin(angle), 0.0,
                0.021592554 - 2.113 * math.sin(angle) + 0.26 * math.cos(angle)]
    assert place == pytest.approx(expected, abs=1e-12)
    assert measured.hydraulics.valves['lift_valve'].pump == '' and measured.hydraulics.supplies == {}


def test_the_measured_machine_weighs_its_load_at_rest(measured, shared_data):
    """Mean length and pressures of the run after 23 s, static balance by virtual work."""
    rows = np.genfromtxt(shared_data / 'patu655' / 'lift_measured_100hz.csv', delimiter=',', names=True)
    rest = rows[rows['t'] > 23.0]
    cylinder = measured.cylinders['lift']
    force = rest['p1_pa'].mean() * cylinder.piston_area - rest['p2_pa'].mean() * cylinder.rod_area

    def state(angle):
        placed = frames(measured, {'boom_joint': angle})
        heights = [body.mass.value * (placed[name][1] + placed[name][0] @ values(body.center_of_mass))[2]
                   for name, body in measured.bodies.items()]
        return np.array([cylinder_length(measured, placed, 'lift'), sum(heights),
                         point_position(measured, placed, measured.payload.point)[2]])

    grid = np.linspace(0.0, 1.2, 241)
    angle = np.interp(rest['s1_mm'].mean() * 1e-3, [state(item)[0] for item in grid], grid)
    length, moment, arm = (state(angle + 1e-5) - state(angle - 1e-5)) / 2e-5
    assert (force * length / 9.8066 - moment) / arm == pytest.approx(209.0, abs=4.0)


def test_explain_tells_derived_numbers_units_and_uncertainties(lift):
    rows = {(section.title, row.name): row for section in explain(lift) for row in section.rows}
    assert rows['machine patu655_lift', 'degrees of freedom'].value == '1'
    assert rows['cylinder lift', 'piston area'].value == '78.53982 cm^2'
    assert rows['cylinder lift', 'length'].value == '820 mm to 1355 mm'
    assert rows['cylinder lift', 'piston position at start'].value == '89.59174 mm'
    assert rows['hydraulics', 'volume lift_rod'].value == '0.190019 l to 3.07419 l'
    assert rows['body boom', 'mass'].value == '143.66 +- 1.437 kg'
    assert rows['uncertain parameters (1 sigma)', 'cylinders.lift.friction.scale'].note == 'SI; 10 %'
    assert rows['joints', 'boom_joint'].note.endswith('from -60 deg to 85 deg, start -5 deg')


def test_quantities_by_key_path(lift, measured):
    assert list(uncertain(lift)) == ['bodies.boom.mass', 'bodies.boom.points.rod_eye.x', 'bodies.boom.points.rod_eye.z',
                                     'cylinders.lift.friction.scale', 'hydraulics.oil_bulk_modulus']
    assert 'joints.tilt_joint.rpy.1' in uncertain(measured)
    known = quantities(lift)
    assert known['hydraulics.volumes.lift_rod.hoses.0.volume'].value == 1.90019e-4
    assert known['ground.points.cylinder_base.z'].value == -1.039986751
    assert known['bodies.boom.inertia.yy'].value == 67.053707


def test_loading_needs_no_pint_for_usual_units():
    code = (f'import sys; from mbse_ros.mechanism.description.load import load_description; '
            f'load_description({str(MACHINES / "patu655_lift.yaml")!r}); sys.exit("pint" in sys.modules)')
    assert subprocess.run([sys.executable, '-c', code], cwd=MACHINES.parents[1]).returncode == 0
