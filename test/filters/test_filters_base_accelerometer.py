# SPDX-License-Identifier: Apache-2.0
"""An accelerometer on the base of a machine: what its file says, what it does to gravity in all equations, its samples,
and a truck that drives, with it and without it; an accelerometer that is wrong."""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from machine_variants import changed

from mbse_ros.calibration.balance import windows_of
from mbse_ros.description.load import known_machines, parse_mechanism
from mbse_ros.description.model import fingerprint
from mbse_ros.errors import DescriptionError
from mbse_ros.filters.force_balance import force_balance, without_sensor_errors
from mbse_ros.filters.hydraulic_model import hydraulic_model
from mbse_ros.filters.hydraulic_state import state_names
from mbse_ros.machine import Machine
from mbse_ros.mechanism.sensors import sensor_model
from mbse_ros.monitor.bounds import machine_ends
from mbse_ros.monitor.faults import Fault
from mbse_ros.payload.mass import uncertain_numbers
from mbse_ros.simulation.crane import TrueSamples, plant_of
from mbse_ros.simulation.physics import PlantPhysics
from mbse_ros.streams.pipeline import Output, Pipeline
from mbse_ros.streams.records import PayloadStatus
from mbse_ros.studies.fault_cases import outputs_of, simulated
from mbse_ros.studies.reality_cases import coverage

PLAIN = known_machines()['patu655_lift'].read_text()
G = 9.8066         # m/s^2, of the file
IMU = 'base_imu: {kind: accelerometer, body: ground, stddev: 0.05 m/s^2}'
X, Y, Z = (f'accelerometer/base_imu.{axis}' for axis in 'xyz')


def text(imu: str = IMU) -> str:
    return PLAIN.replace('\nsensors:\n', f'\nsensors:\n  {imu}\n')


@cache
def machine(imu: str = IMU) -> Machine:
    return Machine(parse_mechanism(text(imu)))


@cache
def driven(seconds: float = 14.0) -> tuple:
    """Frames of a crane on a truck that sways by 1 m/s2."""
    return tuple(simulated(machine(), plant_of(machine(), physics=PlantPhysics(base_acceleration=1.0)), 1, seconds))


def estimated(imu: bool = True, change=None, begin: float = 0.0) -> tuple[list[Output], Machine]:
    """Outputs, with samples of the accelerometer that ``change`` gives from ``begin``, s, on."""
    own = machine() if imu else Machine(parse_mechanism(PLAIN))
    samples, last = [], {}
    for frame in driven():
        for name, value in (frame.samples | frame.commands).items():
            if name.startswith('accelerometer/'):
                if not imu:
                    continue
                if change is not None and frame.stamp_ns >= begin * 1e9:
                    value = change(name, value, last.get(name, value))
                else:
                    last[name] = value
            samples.append((frame.stamp_ns, name, value))
    return outputs_of(Pipeline(own), samples)[0], own


def test_without_it_nothing_changes() -> None:
    plain = parse_mechanism(PLAIN)
    assert plain.base_accelerometer is None and fingerprint(plain) != fingerprint(machine().description)
    own = machine()
    assert set(own.channels) - set(Machine(plain).channels) == {X, Y, Z}
    assert state_names(own)[0][-3:] == tuple(f'base_acceleration/{axis}' for axis in 'xyz')
    assert set(own.description.mechanical_sensors) == {'lift_stroke'}
    more = [f'sensors.base_imu.bias[{k}]' for k in range(3)]
    before = uncertain_numbers(Machine(plain))
    found = uncertain_numbers(own)
    assert [name for name in found if name not in before] == more and all(found[name].assumed for name in more)
    assert own.parameters.stddev[own.parameters.names.index(more[0])] == pytest.approx(0.1 / np.sqrt(3))


@settings(max_examples=20, deadline=None)
@given(st.floats(-3.0, 3.0), st.floats(-3.0, 3.0), st.floats(0.0, 0.5), st.floats(0.0, 500.0))
def test_the_force_balance_feels_the_acceleration_as_another_gravity(along: float, up: float, stroke: float,
                                                                     mass: float) -> None:
    """Of a machine that has this gravity in its file, to the last digits; 0: the file's own."""
    g = balance_of(machine(), 'driven')
    other = parse_mechanism(PLAIN.replace('gravity: 9.8066 m/s^2', f'gravity: [{-along:.17f}, 0, {-G - up:.17f}]'))
    assert [number.value for number in other.gravity] == pytest.approx([-along, 0.0, -G - up])
    found = value(machine(), g, stroke, mass, (along, 0.0, up))
    still = Machine(other)
    assert found == pytest.approx(value(still, balance_of(still, ''), stroke, mass, ()), rel=1e-9)
    assert value(machine(), g, stroke, mass, (0.0, 0.0, 0.0)) == pytest.approx(
        value(plain(), balance_of(plain(), ''), stroke, mass, ()), rel=1e-12)


@cache
def plain() -> Machine:
    return Machine(parse_mechanism(PLAIN))


def balance_of(own: Machine, key: str) -> ca.Function:
    if key and key in _KEPT:
        return _KEPT[key]
    names = state_names(own, True)[0]
    found = force_balance(own, names, open_loops=True)
    _KEPT[key] = ca.Function('g', [found.near, found.X, own.parameters.symbol, own.payload], [found.g])
    return _KEPT[key]


_KEPT: dict[str, ca.Function] = {}


def value(own: Machine, g: ca.Function, stroke: float, mass: float, base: tuple[float, ...]) -> float:
    names = state_names(own, True)[0]
    state = np.zeros(len(names))
    state[names.index('position/lift')], state[names.index('velocity/lift')] = stroke, 0.05
    state[names.index('pressure/lift_piston')], state[names.index('pressure/lift_rod')] = 6.0, 2.0
    for axis, number in zip('xyz', base):
        state[names.index(f'base_acceleration/{axis}')] = number
    q = own.position(np.array([stroke]))
    return float(g(q, state, own.parameters.mean, mass))


def test_a_sample_is_the_acceleration_less_gravity_along_the_axis() -> None:
    """With bias, on a base that is pitched in truth and level in the file, along axes of its own."""
    own = machine('base_imu: {kind: accelerometer, body: ground, stddev: 0.05 m/s^2, axes: [[0, 0, -1], [1, 0, 0]], '
                  'bias: {value: [0.1 m/s^2, 0 m/s^2], stddev: 0.02 m/s^2}}')
    p, q = own.parameters, own.model.start.q
    wrong = p.mean
    wrong[p.names.index('base.pitch')] = pitch = 0.01
    read = TrueSamples(own, own.all_channels).read
    state = q, q[own.model.z], np.zeros(1), np.zeros(1), np.array([5e6, 2e6]), np.zeros(5), {}
    found = read(*state, wrong, np.array([0.3, -0.7]))
    assert (own.channels[1], own.channels[2]) == (X, Y)
    assert found[X] == pytest.approx(0.3 - G * np.cos(pitch) + 0.1, rel=1e-12)
    assert found[Y] == pytest.approx(-0.7 - G * np.sin(pitch), rel=1e-12)
    assert read(*state)[Y] == pytest.approx(0.0, abs=1e-12)


def test_as_a_sensor_of_the_mechanism_it_measures_the_specific_force() -> None:
    """Of exported functions: what the base is accelerated by, with its share of gravity, and the bias."""
    own, base = machine(), (0.3, 0.0, -0.7)
    found, p = sensor_model(own.system), own.parameters
    known = p.whole({f'base.acceleration[{k}]': ca.SX(a) for k, a in enumerate(base)})
    rows = [found.channels.index(f'base_imu.{axis}') for axis in 'xyz']
    own_symbol = own.system.values.symbol
    output = ca.Function('output', [p.symbol], [ca.substitute(found.output[rows], own_symbol, known)])
    values = p.mean
    values[p.names.index('sensors.base_imu.bias[1]')] = 0.05
    assert output(ca.DM(values)).full().ravel() == pytest.approx([0.3, 0.05, G - 0.7])


def test_at_rest_on_a_base_that_the_file_says_is_inclined_it_counts_from_that_gravity() -> None:
    """Rolled by 20 and pitched by -10 degrees: an axis points where Ry(pitch) Rx(roll) turns it."""
    own = Machine(parse_mechanism(text().replace('roll: {value: 0 deg', 'roll: {value: 20 deg').replace(
        'pitch: {value: 0 deg', 'pitch: {value: -10 deg')))
    roll, pitch = np.radians([20.0, -10.0])
    wanted = [G * np.sin(pitch), -G * np.cos(pitch) * np.sin(roll), -G * np.cos(pitch) * np.cos(roll)]
    assert [channel.zero for channel in own.all_channels if channel.sensor.on_base] == pytest.approx(wanted)
    still = ca.Function('still', [own.parameters.symbol], [own.still_gravity])(ca.DM(own.parameters.mean))
    assert still.full().ravel() == pytest.approx(wanted)
    lowest = {own.channels[i]: low for i, low, _ in machine_ends(own)[Fault.FAR]}
    assert [lowest[name] for name in (X, Y, Z)] == pytest.approx(-np.array(wanted) - 0.6 * G)


def test_a_sample_on_a_base_that_is_more_inclined_than_in_the_file_says_less_of_its_acceleration() -> None:
    """What it measures is gravity along the axis, too: of a base that the file has as level, pitched by 0.01 rad."""
    own = machine()
    names, p = state_names(own)[0], own.parameters
    X, at = ca.SX.sym('X', len(names)), names.index('base_acceleration/x')
    found = ca.Function('found', [X, p.symbol], [without_sensor_errors(own, names, X)[[at, at + 1]]])
    values, state = p.mean, np.zeros(len(names))
    values[p.names.index('base.pitch')], state[at] = 0.01, 0.3
    values[p.names.index('sensors.base_imu.bias[0]')] = 0.05
    assert found(ca.DM(state), ca.DM(values)).full().ravel() == pytest.approx([0.25 + G * np.sin(0.01), 0.0])


def test_the_plant_says_how_its_base_is_accelerated() -> None:
    """The file's gravity, and 1 m/s2 at 1.5 Hz along x."""
    t = np.array([frame.stamp_ns for frame in driven()]) * 1e-9
    x, z = (np.array([frame.samples[name] for frame in driven()]) for name in (X, Z))
    assert np.abs(x - np.sin(3.0 * np.pi * t)).max() < 0.25 and abs(x.std() - np.sqrt(0.5)) < 0.03
    assert z.mean() == pytest.approx(G, abs=0.01) and z.std() == pytest.approx(0.05, rel=0.1)


def test_a_load_that_hangs_is_left_behind() -> None:
    """On a rope of 1.5 m: its angle is accelerated by -(a + g u) / 1.5 m, with the gravity of the frame."""
    own = changed('patu655_lift', {'sensors/base_imu': yaml.safe_load(IMU)['base_imu'],
                                   'payload/hanging': {'value': '1.5 m', 'stddev': '5 cm'}})
    model = hydraulic_model(own, weighs=True)
    f = ca.Function('f', [model.X, model.dependent, own.payload, model.U, own.parameters.symbol], [model.f])
    state, place = np.zeros(len(model.names)), model.names.index
    state[place('base_acceleration/x')], state[place('base_acceleration/z')] = 0.3, -0.7
    state[place('position/lift')], state[place('swing/x')] = 0.25, 1e-3
    q = own.position(np.array([0.25]))[own.system.dependent]
    found = f(ca.DM(state), ca.DM(q), 100.0, ca.DM(np.zeros(model.U.numel())), ca.DM(own.parameters.mean)).full()
    assert found[place('swing_rate/x'), 0] == pytest.approx(-(0.3 + (G - 0.7) * 1e-3) / 1.5, rel=1e-4)


def test_a_base_that_is_inclined_at_the_start_is_known_at_once() -> None:
    """By 17 degrees: the state begins with a wide deviation."""
    outputs, _ = estimated(True, lambda name, value, last: value + 3.0 if name == X else value)
    early = outputs[20].state
    true = 3.0 + np.sin(3.0 * np.pi * 1e-9 * (early.stamp_ns - driven()[0].stamp_ns))
    assert early.mean[-1, early.names.index('base_acceleration/x')] == pytest.approx(true, abs=0.2)


def test_a_truck_that_drives_is_weighed_with_it() -> None:
    """200 kg: inside the interval, as the motion is inside its bands; the acceleration is known. Without it the mass is
    off by more."""
    true, off = driven()[0].payload, {}
    for imu in (True, False):
        outputs, own = estimated(imu)
        known = [output for output in outputs if output.payload.status is PayloadStatus.UPDATING]
        off[imu] = max(abs(item.payload.mass - true) for item in known[len(known) // 2:])
        if imu:
            assert len(known) > 0.6 * len(outputs) and not outputs[-1].payload.faults
            assert all(item.payload.lower <= true <= item.payload.upper for item in known)
            assert min(coverage(own, driven(), known)) > 0.9
            state = outputs[-1].state
            place, at = state.names.index('base_acceleration/x'), (state.stamp_ns - driven()[0].stamp_ns) * 1e-9
            assert state.mean[-1, place] == pytest.approx(np.sin(3.0 * np.pi * at), abs=0.2)
    assert off[True] < 0.5 * off[False]


WRONG = {'upside down': lambda name, value, last: -value, 'in g': lambda name, value, last: value / 9.81,
         'silent': lambda name, value, last: float('nan'), 'stuck': lambda name, value, last: last}


@pytest.mark.parametrize('fault, begin, words', [
    ('upside down', 0.0, 'far outside its range: accelerometer/base_imu.z'), ('in g', 0.0, 'far outside its range'),
    ('silent', 6.0, 'missing: accelerometer/base_imu.x'), ('stuck', 6.0, 'constant: accelerometer/base_imu.x')])
def test_one_that_is_wrong_is_said_and_the_mass_is_held(fault: str, begin: float, words: str) -> None:
    outputs, _ = estimated(True, WRONG[fault], begin)
    late = [output for output in outputs if output.state.stamp_ns - driven()[0].stamp_ns > (begin + 1.5) * 1e9]
    assert len(late) > 300 and all(words in output.state.reason for output in late)
    assert not any(output.payload.status is PayloadStatus.UPDATING for output in late)


def test_the_sign_of_a_horizontal_axis_is_found_while_the_base_drives() -> None:
    """Within 2 s of known masses, from whichever side gravity cannot tell; the right sign is not doubted."""
    outputs, _ = estimated(True, lambda name, value, last: -value if name == X else value)
    said = ['accelerometer/base_imu.x (sign, or another axis)' in output.payload.reason for output in outputs]
    known = [output.payload.status is PayloadStatus.UPDATING for output in outputs]
    assert any(said) and sum(known) < 250 and not any(known[said.index(True) + 300:])
    assert not any('sign' in output.payload.reason for output in estimated()[0])


@pytest.mark.parametrize('imu, key, words', [
    ('base_imu: {kind: accelerometer, body: ground}', 'sensors.base_imu.stddev', 'above 0'),
    (IMU.replace('body: ground', 'body: ground, point: foot'), 'sensors.base_imu.point', 'one of the keys'),
    (IMU.replace('}', ', axes: [[1, 0, 0], [1, 1, 0]]}'), 'sensors.base_imu.axes', 'perpendicular'),
    (IMU.replace('}', ', bias: [0, 0]}'), 'sensors.base_imu.bias', '3 numbers'),
    (f'{IMU}\n  other: {IMU.partition(": ")[2]}', 'sensors.other', 'one sensor a place'),
    (f'{IMU}\n  pitch: {{kind: inclination, axis: pitch, stddev: 0.1 deg}}', 'sensors.pitch', 'inclination too')])
def test_what_is_refused(imu: str, key: str, words: str) -> None:
    with pytest.raises(DescriptionError, match=words) as caught:
        parse_mechanism(text(imu))
    assert caught.value.key == key


def test_mechanisms_have_none() -> None:
    four_bar = (known_machines()['patu655_lift'].parent.parent / 'mechanisms' / 'four_bar.yaml').read_text()
    with pytest.raises(DescriptionError, match='that of a machine'):
        parse_mechanism(four_bar.replace('\n  encoder:', f'\n  {IMU}\n  encoder:'))


def test_a_calibration_knows_a_base_that_is_not_level() -> None:
    """Its windows have what the accelerometer measures, on average over each."""
    own, frames = machine(), driven()
    t = np.array([frame.stamp_ns for frame in frames]) * 1e-9
    tilt = {X: 0.5, Y: 0.0, Z: 0.0}
    series = {name: (t, np.array([frame.samples[name] + tilt.get(name, 0.0) for frame in frames]))
              for name in own.channels}
    windows = windows_of(own, series)
    names = state_names(own)[0]
    found = windows.X[:, [names.index(f'base_acceleration/{axis}') for axis in 'xyz']]
    assert found.mean(axis=0) == pytest.approx([0.5, 0.0, 0.0], abs=0.05)
