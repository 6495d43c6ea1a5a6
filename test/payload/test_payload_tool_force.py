# SPDX-License-Identifier: Apache-2.0
"""The force at the tool: by hand, by virtual work, of a machine that digs, and of machines that show little of it."""

from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np
import pytest
from machine_variants import changed
from tool_force_by_hand import AREA, SETTINGS, STEP, followed, held_still, known, lifted

from mbse_ros.bags.channel_samples import Sample
from mbse_ros.filters.force_balance import force_balance
from mbse_ros.filters.hydraulic_state import state_names
from mbse_ros.machine import Machine, load_machine
from mbse_ros.machine.frames import MachineFrames
from mbse_ros.offline.bag import estimate_samples
from mbse_ros.offline.estimate import MachineEstimate
from mbse_ros.offline.track import DIRECTION_STDDEV
from mbse_ros.payload.tool_force import CHANGES, UNWEIGHED, ToolForces, contact_words, has_contact
from mbse_ros.simulation.crane import SimulatedCrane, cycle_by_name, plant_of
from mbse_ros.simulation.cycle import Move, WorkCycle
from mbse_ros.streams.pipeline import Pipeline

BACKWARD = 0.25     # s, from the end of a window to its middle


@pytest.fixture(scope='module')
def lift() -> Machine:
    """A crane with one cylinder, touched at the tip of its boom."""
    return changed('patu655_lift', {'payload/contact': 'boom.tip'})


@pytest.mark.parametrize('angle', [-0.3, 0.4])
def test_of_one_cylinder_it_is_the_balance_of_moments_by_hand(lift: Machine, angle: float) -> None:
    """About the pivot: the cylinder, the weights of boom and load, and a force across the line to the tip."""
    samples, lever, tip = lifted(angle, 60e3)
    found, gravity = held_still(lift, samples, known(200.0)), lift.description.gravity[2].value
    center = np.cos(angle) * 1.229248 - np.sin(angle) * 0.055596
    moment = 60e3 * lever + gravity * (143.66 * center + 200.0 * tip[0])
    reach = np.hypot(*tip)
    # what balances it at the tip turns the other way, in the boom's frame across (2.89, 0.0246)
    across = np.array([-0.0246, 0.0, 2.89]) / reach
    assert found.direction == pytest.approx(across, abs=1e-9)
    assert found.component == pytest.approx(-moment / reach, rel=1e-9)
    assert found.point == pytest.approx([2.89, 0.0, 0.0246])


def test_one_cylinder_shows_one_component_and_says_what_it_does_not(lift: Machine) -> None:
    found = held_still(lift, lifted(0.1, 50e3)[0], known(100.0))
    assert found.known and np.isnan(found.force).all() and np.isnan(found.covariance).all()
    assert found.reason == 'no cylinder that weighs shows x and y and z'


def test_the_interval_is_as_wide_as_friction_at_rest_and_the_mass(lift: Machine) -> None:
    """300 N of static friction and 5.5e-4 m2 of the difference of the pressures, and the mass's own deviation."""
    samples, lever, tip = lifted(0.0, 40e3)
    exact, vague = (held_still(lift, samples, known(100.0, stddev)).component_stddev for stddev in (0.0, 50.0))
    friction = 300.0 + 5.5e-4 * (samples['pressure/lift_piston'] - 1e6)
    assert exact > friction * lever / np.hypot(*tip)
    assert vague ** 2 - exact ** 2 == pytest.approx((50.0 * 9.8066 * tip[0] / np.hypot(*tip)) ** 2, rel=1e-3)


def test_without_a_mass_or_samples_it_says_why(lift: Machine) -> None:
    samples = lifted(0.1, 50e3)[0]
    assert 'no mass' in held_still(lift, samples, None).reason
    assert 'no mass' in held_still(lift, samples, known(np.nan, np.nan)).reason
    assert 'samples of position/lift' in held_still(lift, {**samples, 'position/lift': np.nan}, known(10.0)).reason
    silent = held_still(lift, {**samples, 'pressure/lift_rod': np.nan}, known(10.0))
    assert not silent.known and 'pressures are missing' in silent.reason
    stop = held_still(lift, {**samples, 'position/lift': 0.0}, known(10.0))
    assert not stop.known and np.isnan(stop.component_stddev)


def test_a_mass_is_held_from_before_it_was_in_doubt(lift: Machine) -> None:
    """It counts after half a second, and what changes it just before a doubt does not."""
    forces, samples = ToolForces(lift, SETTINGS, 'vm'), lifted(0.1, 50e3)[0]
    values, found = np.array([samples[name] for name in lift.channels]), []
    masses = [known(100.0, 150.0)] * 100 + [known(300.0)] * 20 + [None] * 30
    for k, mass in enumerate(masses, 1):
        found.append(forces.process(k * STEP, (np.zeros(60), values, 0 * values), k == 1, False, mass))
    assert not found[48].known and found[60].known
    assert found[-1].mass == 100.0 and found[-1].held == pytest.approx(0.3)


def test_while_the_load_changes_and_a_second_after_there_is_none(lift: Machine) -> None:
    """Nor with what the mass was before: a doubt after the change has no force at all."""
    before, after, change = {'mass': known(400.0, 9.0)}, {'mass': known(0.0, 9.0)}, {'mass': None, 'changes': True}
    found = followed(lift, [before] * 100 + [change] * 60 + [after] * 120)
    assert found[99].known and found[-1].known and found[-1].mass == 0.0
    assert not any(item.known for item in found[100:259]) and found[259].known
    assert {item.reason for item in found[100:259]} == {CHANGES}
    doubted = followed(lift, [before] * 100 + [change] * 60 + [{'mass': None}] * 120)
    assert not any(item.known for item in doubted[100:])
    touched = followed(lift, [before] * 100 + [change] * 4 + [{'mass': None, 'touches': True}] * 120)
    assert not any(item.known for item in touched[100:203]) and touched[203].known and touched[203].mass == 400.0


@pytest.mark.parametrize('moved, lean', [(60.0, 0.0), (0.0, -60.0)])
def test_nor_while_the_mass_moves_by_more_than_its_interval(lift: Machine, moved: float, lean: float) -> None:
    """By itself, or as the masses of the last second lean; of 400 +- 40 kg."""
    def rows(share: float) -> list[dict]:
        other = replace(known(400.0 + share * moved, 20.0), lean=share * lean)
        return [{'mass': known(400.0, 20.0)}] * 100 + [{'mass': other}] * 40
    assert not followed(lift, rows(1.0))[-1].known and followed(lift, rows(1.0))[-1].reason == CHANGES
    assert followed(lift, rows(0.5))[-1].known


def test_of_a_contact_before_any_mass_it_says_so(lift: Machine) -> None:
    """Also where the observer then says nothing for a while; not once it is over."""
    found = followed(lift, [{'mass': None}] * 9 + [{'mass': None, 'touches': True}] * 9 +
                     [{'mass': None, 'touches': None}] * 9 + [{'mass': None}] * 9)
    said = [item.reason == UNWEIGHED for item in found]
    assert said == [False] * 9 + [True] * 18 + [False] * 9


def test_a_file_without_a_contact_has_none() -> None:
    machine = load_machine('patu655_lift')
    assert not has_contact(machine) and 'payload.contact' in contact_words(machine)
    assert held_still(machine, dict.fromkeys(machine.channels, 1.0), known(1.0)).reason == contact_words(machine)


def test_a_force_is_stamped_with_the_end_of_its_window(lift: Machine) -> None:
    """It is found ten times in a window, and repeated between."""
    found = followed(lift, [{'mass': known(400.0, 9.0)}] * 120)[-20:]
    assert [item.stamp_ns // STEP for item in found] == [100] * 4 + [105] * 5 + [110] * 5 + [115] * 5 + [120]


def test_of_a_motion_that_turns_back_the_mean_of_the_balance_counts(lift: Machine) -> None:
    """A boom that swings by 0.3 rad, with no force at its tip: the balance in the middle alone would find 370 N."""
    forces, found = ToolForces(lift, SETTINGS, 'vm'), []
    for k in range(1, 91):
        t = k * STEP * 1e-9
        angle, rate, turn = 0.1 + 0.3 * np.sin(6 * t), 1.8 * np.cos(6 * t), -10.8 * np.sin(6 * t)
        samples = _free(lift, angle, rate, turn)
        values = np.array([samples[name] for name in lift.channels])
        found.append(forces.process(k * STEP, (np.zeros(60), values, 0 * values), k == 1, False, known(200.0)))
    errors = np.array([item.component for item in found if item.known])
    assert len(errors) >= 30 and np.abs(errors).max() < 90.0


@cache
def _balance(machine: Machine) -> tuple[dict[str, int], ca.Function]:
    """Places of the state's entries, and the force that is missing along the cylinder, N."""
    names = state_names(machine)[0]
    balance = force_balance(machine, names, True)
    return {name: k for k, name in enumerate(names)}, ca.Function('g', [
        balance.near, balance.X, balance.deviation, machine.payload, machine.parameters.symbol], [balance.g])


def _free(machine: Machine, angle: float, rate: float, turn: float) -> dict[str, float]:
    """Samples of the lift with 200 kg in a motion without a force at its tip, by its own equations of motion."""
    h = 1e-4
    before, length, after = (lifted(angle + step, 0.0)[0]['position/lift'] for step in (-h, 0.0, h))
    slope, bend = (after - before) / (2 * h), (after - 2 * length + before) / h ** 2
    places, g = _balance(machine)
    X = np.zeros(len(places))
    for kind, value in (('position', length), ('velocity', slope * rate),
                        ('acceleration', slope * turn + bend * rate ** 2)):
        X[places[f'{kind}/lift']] = value
    X[places['pressure/lift_rod']] = 2e6
    near = machine.position(np.array([length]))[machine.system.dependent]
    for _ in range(30):     # the friction depends on the pressure
        X[places['pressure/lift_piston']] += float(g(near, X, [1e-4], 200.0, machine.parameters.mean)) / AREA
    return {'position/lift': length, 'pressure/lift_rod': 2e6,
            'pressure/lift_piston': X[places['pressure/lift_piston']]}


@pytest.fixture(scope='module')
def dug() -> tuple[MachineEstimate, list]:
    """An excavator lifts 800 kg, then pulls arm and bucket through a soil of 20 kN from 4.7 s on."""
    machine = load_machine('zx200')
    cycle = WorkCycle({'boom': 0.3, 'arm': 0.2, 'bucket': 0.2}, (Move(0.0, 0.3), Move(5.0, 2.5)), {
        'arm_valve': (Move(0.0, 0.3), Move(3.0, 6.0)), 'bucket_valve': (Move(0.0, 3.0), Move(4.0, 6.0))},
        timed=True, soil=((0.0, 0.0), (4.5, 0.0), (4.7, 1.0)))
    frames = list(SimulatedCrane(machine, 800.0, 1, cycle, plant=plant_of(machine), soil=20e3).advance(6_000_000_000))
    samples = [Sample(name, f.stamp_ns, value) for f in frames for name, value in [*f.commands.items(),
                                                                                    *f.samples.items()]]
    return estimate_samples(samples, machine, {}), frames


def _axes(machine: Machine, z: np.ndarray) -> np.ndarray:
    frames = MachineFrames(machine)
    return frames.poses(machine.position(z))[1][frames.bodies.index('bucket')]


def test_the_force_of_the_soil_is_found(dug) -> None:
    """Against the motion of the teeth; wide margins: 10 % + 600 N, 10 degrees, three quarters in the ellipse."""
    estimate, frames = dug
    machine, sizes, angles, inside = estimate.machine, [], [], []
    names, columns = machine.description.bodies['bucket'].outline, estimate.states.columns
    at = {frame.stamp_ns: frame for frame in frames}
    for k, stamp in enumerate(estimate.track.stamp_ns.tolist()):
        frame = at.get(stamp - round(BACKWARD * 1e9))
        if frame is None or frame.stamp_ns < 5.0e9 or k % 10:
            continue
        h = 1e-4 * frame.velocity
        teeth = [machine.outline(frame.position + sign * h)['bucket'][names.index('teeth')] for sign in (1, -1)]
        velocity = _axes(machine, frame.position).T @ (teeth[0] - teeth[1]) / 2e-4
        true = -velocity * 20e3 / np.sqrt(velocity @ velocity + 0.05 ** 2)
        force, stddev = (np.array([columns[f'tool_force{kind}/{axis}'][k] for axis in 'xz'])
                         for kind in ('', '_stddev'))
        sizes.append(np.linalg.norm(force) - np.linalg.norm(true))
        angles.append(np.degrees(np.arccos(force @ true[[0, 2]] / np.linalg.norm(force) / np.linalg.norm(true))))
        inside.append((np.abs(force - true[[0, 2]]) < 2.5 * stddev).all())
    assert len(sizes) >= 5 and np.abs(sizes).max() < 0.1 * 20e3 + 600.0
    assert max(angles) < 10.0 and np.mean(inside) >= 0.75


def test_force_and_mass_are_found_together_while_a_load_grows_and_is_dumped() -> None:
    """The cycle `dig` of 800 kg: soil of 20 kN from 1.5 to 5 s, before a mass counts, while the load grows; dumped at
    about 12 s, which is no force."""
    machine = load_machine('zx200')
    crane = SimulatedCrane(machine, 800.0, 1, cycle_by_name('dig', machine, 1), plant=plant_of(machine), soil=20e3)
    frames = list(crane.advance(14_000_000_000))
    pipeline = Pipeline(machine)
    found = [output.payload.tool_force for f in frames for name, value in [*f.commands.items(), *f.samples.items()]
             for output in pipeline.add(name, f.stamp_ns, value)]
    loads = {f.stamp_ns: f.payload for f in frames}
    t = np.array([force.stamp_ns - frames[0].stamp_ns for force in found]) * 1e-9
    sure = np.array([bool((np.abs(force.force) > 5 * force.stddev).any()) for force in found])
    assert not sure[(t < 1.6) | (t > 5.3)].any()
    digs = [force for k, force in zip(t, found) if 2.8 < k < 4.5]
    assert all(force.reason.startswith(UNWEIGHED) and np.isnan(force.held) for force in digs)
    sizes = np.array([np.hypot(force.force[0], force.force[2]) for force in digs])
    assert np.abs(sizes - 20e3).max() < 0.1 * 20e3 + 600.0
    true = [loads[force.stamp_ns - round(BACKWARD * 1e9)] for force in digs]
    off = [(force.mass - load) / force.mass_stddev for force, load in zip(digs, true)]
    assert np.ptp(true) > 300.0 and np.abs(off).max() < 3.0
    dumps = [force for k, force in zip(t, found) if 11.8 < k < 12.5]
    assert all(force.known and force.reason.startswith(CHANGES) for force in dumps)
    assert np.mean([(np.abs(force.force[[0, 2]]) < 2.5 * force.stddev[[0, 2]]).all() for force in dumps]) > 0.9
    mass = pipeline.payload._mass       # what it subtracts, the force subtracts as well
    mean, covariance = mass.errors
    assert mass.mass == pytest.approx(mass.weighed - mass.slopes @ mean) and abs(mass.slopes @ mean) > 0.1
    assert mass.stddev ** 2 == pytest.approx(mass.noise ** 2 + mass.slopes @ covariance @ mass.slopes)


def test_the_largest_force_is_said_whether_states_are_kept_or_not(dug) -> None:
    """In JSON and text; of x and z alone, since they are all of it."""
    estimate = replace(dug[0], track=replace(dug[0].track, states=None))
    largest = estimate.to_json()['tool_force']['largest']
    x, _, z, along = largest['force']
    columns, row = dug[0].states.columns, dug[0].track.largest_force[0]
    assert largest['t'] == dug[0].t[row] > 4.5 and [x, z, along] == [
        columns[f'tool_force/{part}'][row] for part in ('x', 'z', 'component')]
    assert abs(along) <= np.hypot(x, z) and np.hypot(x, z) > 15e3
    said, = (line for line in estimate.summary() if line.startswith('largest force'))
    assert f'x {x / 1e3:.1f} kN' in said and f'z {z / 1e3:.1f} kN' in said and 'along (' not in said
    assert 'of the surroundings on bucket.teeth' in said
    spread = np.degrees(largest['pointing_stddev'])
    assert f'{np.hypot(x, z) / 1e3:.1f} kN' in said and f'its direction known (1 sigma {spread:.1f} deg)' in said
    assert largest['pointing'][1] is None and largest['pointing'][::2] == pytest.approx([x, z] / np.hypot(x, z))
    later = replace(estimate, times=estimate.t - 1.7e9)     # of arrays with times of their own
    assert said in later.summary() and later.to_json()['tool_force']['largest'] == largest


def test_the_text_says_a_component_by_its_direction_or_why_there_is_no_force(dug) -> None:
    track, at = dug[0].track, dug[0].track.largest_force
    one = replace(at[1], force=np.full(3, np.nan), direction=np.array([0.6, 0.0, 0.8]), component=7e3)

    def said(**changes: object) -> list[str]:
        lines = replace(dug[0], track=replace(track, **changes)).summary()
        return [line for line in lines if 'force' in line and 'bucket.teeth' in line]
    assert 'along (0.60, 0.00, 0.80) 7.0 kN' in said(largest_force=(at[0], one))[0]
    none = {'largest_force': None}
    assert said(**none, force_seconds={('no lever', False): 3.0, ('early', True): 1.0}) == [
        'no force at bucket.teeth: no lever']
    assert said(**none, force_seconds={('', False): 3.0, ('early', True): 1.2}) == [
        'no force at bucket.teeth larger than 5 of its standard deviations',
        'force at bucket.teeth not known for 1.2 s of contact: early']
    seconds = {('', False): 3.0, ('early', True): 1.2, ('late', True): 2.0, ('late', False): 9.0}
    assert said(**none, force_seconds=seconds)[1] == (
        'force at bucket.teeth not known for 3.2 s of contact: late (2.0 s); early (1.2 s)')
    unclear = replace(at[1], force=np.array([2e3, np.nan, 0.0]), covariance=np.diag([3e5, np.nan, 5e5]))
    text, = said(largest_force=(at[0], unclear))[:1]
    assert '2.0 kN (1 sigma 0.5), its direction not known (1 sigma 20.3 deg)' in text


def test_in_free_motion_there_is_none(dug) -> None:
    """Before the soil: the interval holds 0 in all but a few segments."""
    estimate, _ = dug
    columns, before = estimate.states.columns, estimate.t < 4.4
    force, stddev = (columns[f'tool_force{kind}/component'][before] for kind in ('', '_stddev'))
    known = np.isfinite(force)
    assert known.sum() > 20 and np.mean(np.abs(force[known]) < 1.96 * stddev[known]) > 0.8


def test_the_report_shows_each_part_with_its_band(dug) -> None:
    """They were two panels of `other numbers` each."""
    signals = {signal.name: signal for signal in dug[0].run.signals if 'tool' in signal.name}
    spread = signals.pop('force at the tool, standard deviation of its direction')
    assert spread.unit == 'deg' and spread.group == 'Force at the tool'
    np.testing.assert_array_equal(spread.estimated.value, dug[0].states.columns[DIRECTION_STDDEV])
    assert set(signals) == {f'force at the tool, {part}' for part in (*'xyz', 'component', 'size')}
    for name, signal in signals.items():
        part = name.rpartition(' ')[2]
        assert (signal.unit, signal.scale, signal.group) == ('kN', 1e-3, 'Force at the tool')
        for shown, column in ((signal.estimated.value, 'tool_force'), (signal.estimated.stddev, 'tool_force_stddev')):
            np.testing.assert_array_equal(shown, dug[0].states.columns[f'{column}/{part}'])


def test_the_answer_has_it(dug) -> None:
    estimate, _ = dug
    values = estimate.to_json()['tool_force']
    assert values['body'] == 'bucket' and values['reason'] == 'no cylinder that weighs shows y'
    assert np.hypot(values['largest']['force'][0], values['largest']['force'][2]) == pytest.approx(20e3, rel=0.3)
    x = next(item for item in estimate.series() if item.name == 'tool_force/x')
    assert x.unit == 'N' and np.isfinite(x.stddev[-1])
