# SPDX-License-Identifier: Apache-2.0
"""The machines that come with the package: numbers, derived numbers, published poses, static balances by hand."""

import math
import subprocess
import sys
from functools import cache
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from lagrange_by_hand import Lagrange, numbers
from patu655_by_hand import angles, holding_forces

from mbse_ros.description.assumptions import is_assumed
from mbse_ros.description.basics import scalars, uncertain
from mbse_ros.description.explain import explain, volume_range
from mbse_ros.description.load import known_machines, load_mechanism
from mbse_ros.description.model import PointRef, Scalar
from mbse_ros.machine import Machine, load_machine

ROOT = Path(__file__).parents[2]
NAMES = ('lut_simple_crane', 'patu655', 'patu655_lift', 'patu655_measured', 'zx200', 'zx200_can')


@cache
def machine(name: str) -> Machine:
    return load_machine(name)


@pytest.fixture(scope='module')
def lift():
    return load_mechanism('patu655_lift')


@pytest.fixture(scope='module')
def measured():
    return load_mechanism('patu655_measured')


def start(name: str) -> dict[str, float]:
    """Coordinates at the start by name."""
    return dict(zip(machine(name).model.names, machine(name).model.start.q))


def test_all_machines_are_known_here():
    assert tuple(known_machines()) == NAMES


@pytest.mark.parametrize('name', NAMES)
def test_the_start_is_an_assembled_pose_within_all_limits(name):
    model, description = machine(name).model, machine(name).description
    assert np.max(np.abs(model.residual(model.start.q)[0])) < 1e-12
    loops = {'patu655': 'bracket_joint', 'zx200': 'linkage_joint', 'zx200_can': 'linkage_joint'}
    assert set(model.redundant) == {f'{loops[name]}.{row}' for row in ('y', 'tilt', 'other_tilt') if name in loops}
    for (low, high), piston in zip(machine(name).stroke, machine(name).pistons):
        assert low <= model.start.q[piston] <= high
    for joint in description.joints.values():
        if joint.limits is not None:
            assert joint.limits[0] <= start(name)[joint.name] <= joint.limits[1]


def test_the_default_machine(lift):
    boom, cylinder = lift.bodies['boom'], lift.cylinders['lift']
    valve = lift.hydraulics.valves['lift_valve']
    assert boom.mass == Scalar(143.66, stddev=pytest.approx(1.4366))
    assert [item.value for item in boom.inertia] == [0.0, 67.053707, 0.0, 0.0, 0.0, 0.0]
    assert boom.points['rod_eye'] == (Scalar(0.3025, stddev=1e-3), Scalar(0.0), Scalar(-0.105, stddev=1e-3))
    assert lift.joints['boom_joint'].axis == (0.0, -1.0, 0.0)
    assert (cylinder.base, cylinder.rod_eye) == (PointRef('ground', 'cylinder_base'), PointRef('boom', 'rod_eye'))
    assert cylinder.piston_area == pytest.approx(7.853982e-3, rel=1e-6)
    assert cylinder.rod_area == pytest.approx(5.390973e-3, rel=1e-6)
    assert cylinder.friction.scale == Scalar(1.0, stddev=0.1) and cylinder.end_stop is None
    assert valve.nominal_flow.value == pytest.approx(4e-4) and valve.time_constant.value == pytest.approx(4.5e-3)
    assert (valve.pump, valve.tank, valve.a, valve.b) == ('pump', 'tank', 'lift_piston', 'lift_rod')
    assert lift.hydraulics.volumes['lift_rod'].chambers == (('lift', 'rod'),)
    assert [lift.sensors[name].stddev for name in ('lift_piston', 'lift_rod')] == [pytest.approx(12e3),
                                                                                   pytest.approx(8e3)]
    assert numbers(lift.gravity).tolist() == [0.0, 0.0, -9.8066]


def test_the_default_machine_starts_where_the_reference_plant_does():
    assert start('patu655_lift')['boom_joint'] == pytest.approx(math.radians(-5.0))
    assert start('patu655_lift')['lift'] + 0.82 == pytest.approx(0.909591735, abs=1e-9)


def test_volume_sizes(lift):
    low, high = volume_range(lift, lift.hydraulics.volumes['lift_piston'])
    assert (low, high) == (pytest.approx(1.90019e-4), pytest.approx(1.90019e-4 + 0.535 * 7.853982e-3))


def test_the_simple_crane():
    crane = load_mechanism('lut_simple_crane')
    cylinder = crane.cylinders['lift']
    assert crane.bodies['rod'].inertia[1].value == pytest.approx(500.0 / 12.0, rel=1e-8)
    assert start(crane.name)['lift'] + cylinder.closed_length.value == pytest.approx(0.5, abs=1e-6)
    assert cylinder.closed_length.source.startswith('chosen')
    assert cylinder.end_stop.length.value == pytest.approx(8e-3)
    assert crane.hydraulics.volumes['lift_rod'].hoses[0].volume.value == 7.85e-5


def test_the_measured_machine_hangs_its_tilt_boom_below(measured):
    hand, angle = Lagrange(measured), math.radians(46.02)
    place = hand.point(hand.at({'boom_joint': 0.0}), 'extension.payload')
    expected = [2.881080943 + 2.113 * math.cos(angle) + 0.26 * math.sin(angle), 0.0,
                0.021592554 - 2.113 * math.sin(angle) + 0.26 * math.cos(angle)]
    assert place == pytest.approx(expected, abs=1e-12)
    assert measured.hydraulics.valves['lift_valve'].pump == '' and measured.hydraulics.supplies == {}


def test_the_measured_machine_weighs_its_load_at_rest(measured, shared_data):
    """Mean length and pressures of the run after 23 s, static balance by virtual work."""
    rows = np.genfromtxt(shared_data / 'patu655' / 'lift_measured_100hz.csv', delimiter=',', names=True)
    rest = rows[rows['t'] > 23.0]
    cylinder, hand = measured.cylinders['lift'], Lagrange(measured)
    force = rest['p1_pa'].mean() * cylinder.piston_area - rest['p2_pa'].mean() * cylinder.rod_area

    def state(angle):
        placed = hand.at({'boom_joint': angle})
        heights = [body.mass.value * (placed[name][1] + placed[name][0] @ numbers(body.center_of_mass))[2]
                   for name, body in measured.bodies.items()]
        return np.array([hand.piston(placed, 'lift') + 0.82, sum(heights), hand.point(placed, 'extension.payload')[2]])

    grid = np.linspace(0.0, 1.2, 241)
    angle = np.interp(rest['s1_mm'].mean() * 1e-3, [state(item)[0] for item in grid], grid)
    length, moment, arm = (state(angle + 1e-5) - state(angle - 1e-5)) / 2e-5
    assert (force * length / 9.8066 - moment) / arm == pytest.approx(209.0, abs=4.0)


POSES = ((1.01435036, 1.48824785, 14.2414, -66.4368), (1.03534786, 1.32778039, 17.9993, -32.6369))


@pytest.mark.parametrize('lift, tilt, boom, inner', POSES)
def test_published_poses_of_the_tilt_boom(lift, tilt, boom, inner):
    """Cylinder lengths, and the absolute angles of both booms, deg: within 0.001 deg of the public code."""
    found = machine('patu655').position(np.array([lift - 0.82, tilt - 1.05]))
    by_name = dict(zip(machine('patu655').model.names, np.degrees(found)))
    assert by_name['boom_joint'] == pytest.approx(boom, abs=1e-3)
    assert by_name['boom_joint'] + by_name['tilt_joint'] == pytest.approx(inner, abs=1e-3)
    assert np.degrees(angles(lift, tilt)[:2]) == pytest.approx(
        [by_name['boom_joint'], by_name['boom_joint'] + by_name['tilt_joint']], abs=1e-9)


def holding(name: str, z: np.ndarray, payload: float) -> np.ndarray:
    """Generalised forces (g,) that hold a machine at rest."""
    it = machine(name)
    f = ca.Function('f', [it.system.q, it.reduced.zd, it.payload, it.parameters.symbol], [-it.reduced.Qbar])
    return f(it.position(z), np.zeros(len(z)), payload, it.parameters.mean).full()[:, 0]


@pytest.mark.parametrize('payload', [0.0, 300.0])
@pytest.mark.parametrize('lift, tilt', [pose[:2] for pose in POSES] + [(1.2, 1.1), (0.9, 1.75)])
def test_forces_that_hold_both_booms(lift, tilt, payload):
    """Of lift and tilt cylinder: virtual work by hand, the load's way through the brackets included."""
    found = holding('patu655', np.array([lift - 0.82, tilt - 1.05]), payload)
    np.testing.assert_allclose(found, holding_forces(lift, tilt, payload), rtol=1e-7)


def boom_by_hand() -> tuple[float, float]:
    """Force, N, of both boom cylinders of zx200 together and its lever about the foot, m, in the reference pose."""
    d, (foot, base, eye) = load_mechanism('zx200'), ((0.33554, 1.95729), (0.79699, 1.35478), (2.35419, 3.30546))
    pins = {'arm': ((3.47998, 3.71837), (5.41485, 3.74032)), 'bucket': ((6.58601, 3.33888), (8.08222, 2.23054))}
    centres = [(2310, 2.80093), (1010, 6.78854), (660, 8.94864), (1, (7.94265 + 8.08222) / 2),
               (8, (8.08222 + 8.46362) / 2)]
    for name, ends in pins.items():        # uniform barrels and rods as long as the closed cylinder
        one, two = np.array(ends)
        half = (two - one) / np.linalg.norm(two - one) * d.cylinders[name].closed_length.value / 2
        centres += [(d.cylinders[name].barrel_mass.value, (one + half)[0]),
                    (d.cylinders[name].rod_mass.value, (two - half)[0])]
    moment = 9.81 * sum(mass * (x - foot[0]) for mass, x in centres)
    way = np.subtract(eye, base) / np.linalg.norm(np.subtract(eye, base))
    arm = np.subtract(base, foot)
    lever = abs(arm[0] * way[1] - arm[1] * way[0])
    own, length = d.cylinders['boom'], np.linalg.norm(np.subtract(eye, base))
    turning = np.array([-(eye[1] - foot[1]), eye[0] - foot[0]])       # the eye's way for a unit angle
    across = turning - way * (turning @ way)
    half = own.closed_length.value / 2
    rises = [2 * own.barrel_mass.value * across[1] * half / length,
             2 * own.rod_mass.value * (turning[1] - across[1] * half / length)]
    return (moment + 9.81 * sum(rises)) / lever, lever


def test_the_excavators_boom_in_the_reference_pose():
    """10.7 MPa between the sides of the boom cylinders, empty and at rest; the force by hand from the scene's pins."""
    description = machine('zx200').description
    force = holding('zx200', machine('zx200').model.start.q[machine('zx200').model.z], 0.0)[1]
    area = description.cylinders['boom'].piston_area
    assert area == pytest.approx(2 * math.pi / 4 * 0.12 ** 2)
    assert force / area / 1e6 == pytest.approx(10.7, abs=0.05)
    assert force == pytest.approx(boom_by_hand()[0], rel=2e-4)      # the scene's pins are rounded to 0.01 mm


def test_the_excavator_measured_by_angles_is_the_same_machine():
    """Same pose; what holds a joint is the pistons' force by their levers."""
    stroke, angle = machine('zx200'), machine('zx200_can')
    np.testing.assert_allclose(stroke.model.start.q, angle.model.start.q, atol=2e-5)       # 0.1 mm in one file
    q = angle.model.start.q
    by_piston = holding('zx200', q[stroke.model.z], 700.0)
    S = ca.Function('S', [angle.system.q, angle.parameters.symbol], [angle.piston_rates])(q, angle.parameters.mean)
    by_joint = holding('zx200_can', q[angle.model.z], 700.0)
    np.testing.assert_allclose(by_joint, S.full().T @ by_piston[1:], rtol=1e-9, atol=1e-6)


def test_explain_shows_derived_numbers_units_and_uncertainties(lift):
    rows = {(section.title, row.name): row for section in explain(lift) for row in section.rows}
    assert rows['cylinder lift', 'piston area'].value == '78.53982 cm^2'
    assert rows['cylinder lift', 'length'].value == '820 mm to 1355 mm'
    assert rows['hydraulics', 'volume lift_rod'].value == '0.190019 l to 3.07419 l'
    assert rows['hydraulics', 'valve lift_valve'].note == 'pump pump, tank tank, a lift_piston, b lift_rod'
    assert rows['body boom', 'mass'].value == '143.66 +- 1.437 kg'
    assert rows['uncertain numbers (1 sigma)', 'cylinders.lift.friction.scale'].note == 'SI; 10 %'
    assert rows['joints', 'boom_joint'].note.endswith('from -60 deg to 85 deg')
    rows = {row.name: row for section in explain(load_mechanism('zx200')) if section.title == 'cylinder boom'
            for row in section.rows}
    assert rows['pins'].note.startswith('2 side by side') and rows['rod mass'].value == '9 kg'


def test_numbers_by_key_path(lift, measured):
    stated = {key for key, number in uncertain(lift).items() if not is_assumed(number)}
    assert stated == {'bodies.boom.mass', 'bodies.boom.points.rod_eye[0]', 'bodies.boom.points.rod_eye[2]',
                      'cylinders.lift.friction.scale', 'hydraulics.oil_bulk_modulus', 'base.roll', 'base.pitch'}
    assert set(uncertain(lift)) - stated == {'sensors.lift_stroke.bias', 'sensors.lift_piston.offset',
                                             'sensors.lift_piston.gain', 'sensors.lift_rod.offset',
                                             'sensors.lift_rod.gain'}
    assert 'joints.tilt_joint.rpy[1]' in uncertain(measured)
    known = scalars(lift)
    assert known['hydraulics.volumes.lift_rod.hoses[0].volume'].value == 1.90019e-4
    assert known['points.cylinder_base.fixed[2]'].value == -1.039986751
    assert known['bodies.boom.inertia.yy'].value == 67.053707


def test_loading_needs_no_pint_for_usual_units():
    code = ('import sys; from mbse_ros.description.load import load_mechanism; '
            'load_mechanism("patu655_lift"); sys.exit("pint" in sys.modules)')
    assert subprocess.run([sys.executable, '-c', code], cwd=ROOT).returncode == 0
