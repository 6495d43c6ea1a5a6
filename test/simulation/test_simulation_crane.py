# SPDX-License-Identifier: Apache-2.0
"""The simulated crane: reproducible, its noise as described, its truth consistent, its cycle within the stroke."""

from __future__ import annotations

import numpy as np
import pytest
from core_support import crane, plant, work_cycle
from machine_variants import variant

from mbse_ros.errors import SettingError
from mbse_ros.simulation.crane import CraneSettings, SensorFrame, SimulatedCrane, plant_of
from mbse_ros.simulation.cycle import Move, Operator, WorkCycle, lift_hold_lower, random_cycle
from mbse_ros.simulation.plant import STEP_NS

SHORT = WorkCycle(0.3, (Move(0.0, 0.1), Move(4.0, 0.5), Move(0.0, 0.4)))


def frames(seed: int = 1, stop: float = 1.0, **changes: object) -> list[SensorFrame]:
    arguments = {'payload': 50.0, 'cycle': SHORT, 'plant': plant()} | changes
    simulated = SimulatedCrane(crane(), seed=seed, **arguments)
    return list(simulated.advance(int(stop * 1e9) + arguments.get('start_ns', 0)))


def samples(some: list[SensorFrame]) -> np.ndarray:
    return np.array([list(f.samples.values()) for f in some])


def test_the_same_seed_gives_the_same_samples_and_another_does_not() -> None:
    np.testing.assert_array_equal(samples(frames(3)), samples(frames(3)))
    assert not (samples(frames(3))[:, 0] == samples(frames(4))[:, 0]).any()
    np.testing.assert_array_equal([f.position for f in frames(3)], [f.position for f in frames(4)])


def test_noise_is_that_of_the_sensors() -> None:
    """0.4 mm, 12 kPa, 8 kPa, white: mean and deviation over 2401 samples within 4 sigma of their own scatter."""
    some = work_cycle()
    truth = np.array([[*f.position, *f.pressure] for f in some])
    noise = (samples(some) - truth) / [4e-4, 12e3, 8e3]
    n = len(noise)
    np.testing.assert_array_less(np.abs(noise.mean(axis=0)), 4 / np.sqrt(n))
    np.testing.assert_array_less(np.abs(noise.std(axis=0) - 1), 4 / np.sqrt(2 * n))
    lag_one = np.mean(noise[1:] * noise[:-1], axis=0)
    across = np.corrcoef(noise.T)[np.triu_indices(3, 1)]
    np.testing.assert_array_less(np.abs([*lag_one, *across]), 4 / np.sqrt(n))


def test_without_noise_the_samples_are_the_truth() -> None:
    for f in frames(settings=CraneSettings(noise=0.0)):
        assert f.samples['position/lift'] == f.position[0]
        assert [f.samples['pressure/lift_piston'], f.samples['pressure/lift_rod']] == f.pressure.tolist()


def test_truth_is_consistent() -> None:
    """Velocity and acceleration are the derivatives of position and velocity."""
    some = frames(settings=CraneSettings(rate=1000.0), stop=1.0)
    z, zd, zdd = (np.array([getattr(f, name)[0] for f in some]) for name in ('position', 'velocity', 'acceleration'))
    np.testing.assert_allclose((z[2:] - z[:-2]) / 2e-3, zd[1:-1], atol=2e-3 * np.abs(zd).max())
    np.testing.assert_allclose((zd[2:] - zd[:-2]) / 2e-3, zdd[1:-1], atol=2e-2 * np.abs(zdd).max())


@pytest.mark.parametrize('rate, period', [(100.0, 10_000_000), (1000.0, 1_000_000), (64.0, 15_600_000), (1.0, 10 ** 9)])
def test_stamps_stand_on_the_plants_grid(rate: float, period: int) -> None:
    base = 1_700_000_000_000_000_123
    some = frames(settings=CraneSettings(rate=rate), start_ns=base, stop=1.0)
    stamps = [f.stamp_ns for f in some]
    assert stamps[0] == base and period % STEP_NS == 0
    assert stamps == list(range(base, base + 10 ** 9 + 1, period)) and all(type(s) is int for s in stamps)


def test_command_goes_with_its_frame_and_acts_until_the_next() -> None:
    some = frames()
    commands = np.array([f.commands['command/lift_valve'] for f in some])
    assert commands[:10].tolist() == [0.0] * 10 and commands.max() == pytest.approx(4.0)
    first = int(np.argmax(commands > 0))
    assert some[first].velocity[0] == pytest.approx(some[first - 1].velocity[0], abs=1e-9)
    assert some[first + 1].velocity[0] > some[first].velocity[0]


def test_another_controller_takes_over() -> None:
    simulated = SimulatedCrane(crane(), 50.0, cycle=SHORT, plant=plant())
    for _ in range(30):
        frame = simulated.frame(command=-3.0)
    assert frame.commands['command/lift_valve'] == -3.0 and frame.velocity[0] < -0.01


def test_wrong_parameters_change_the_truth() -> None:
    p = plant().machine.parameters
    heavier = p.mean + p.stddev * (np.array(p.names) == 'bodies.boom.mass')
    nominal, changed = frames(stop=0.02), frames(stop=0.02, parameters=heavier)
    assert changed[0].pressure[0] > nominal[0].pressure[0] + 1e3


def test_parameters_of_another_plant_are_refused() -> None:
    """They are taken by their place: one more would shift all that follow."""
    known, more = plant().machine.parameters, variant('patu655_lift', cylinders__lift__rod_mass={
        'value': '9 kg', 'stddev': '1 kg'})
    with pytest.raises(SettingError, match='cylinders.lift.rod_mass.*only one of them has these'):
        SimulatedCrane(more, plant=plant(), parameters=more.parameters.mean)
    with pytest.raises(SettingError, match=rf'parameters: got \(3,\), expected {len(known.names)} numbers'):
        frames(parameters=known.mean[:3])


def test_wrong_offsets_change_the_samples_alone() -> None:
    """As those of the plant's numbers: the crane moves as before."""
    p = plant().machine.parameters
    shifted = p.mean + 50e3 * (np.array(p.names) == 'sensors.lift_rod.offset')
    nominal, changed = frames(stop=0.02), frames(stop=0.02, parameters=shifted)
    differences = {name: changed[-1].samples[name] - value for name, value in nominal[-1].samples.items()}
    assert differences == pytest.approx({'position/lift': 0, 'pressure/lift_piston': 0, 'pressure/lift_rod': 50e3})
    np.testing.assert_array_equal(changed[-1].pressure, nominal[-1].pressure)


def test_the_plant_of_a_machine_with_unknown_valves_has_orifices() -> None:
    assert plant_of(crane('unknown'), 'vm').machine.modelled_valves == ('lift_valve',)


def test_work_cycle_lifts_holds_and_lowers_at_three_speeds() -> None:
    some = work_cycle()
    assert len(some) == 2401 and lift_hold_lower().duration == pytest.approx(24.0)
    z, zd = (np.array([getattr(f, n)[0] for f in some]) for n in ('position', 'velocity'))
    assert 0.08 * 0.535 < z.min() and z.max() < 0.92 * 0.535
    lifts = [float(part.max()) for part in np.split(zd, np.flatnonzero(np.diff(zd > 0.01)) + 1) if part[0] > 0.01
             and len(part) > 30]
    assert len(lifts) == 3 and lifts[0] < 0.75 * lifts[1] < 0.6 * lifts[2]
    assert sum(abs(v) < 1e-3 for v in zd) > 400 and sum(v < -0.01 for v in zd) > 400


@pytest.mark.parametrize('seed', range(6))
def test_random_cycles_stay_within_the_stroke(seed: int) -> None:
    """Operator and plant: whatever the moves, the piston keeps clear of both ends."""
    rng = np.random.default_rng(seed)
    cycle = random_cycle(rng, 10.0)
    z = np.array([f.position[0] for f in frames(cycle=cycle, stop=cycle.duration, payload=float(rng.uniform(0, 200)))])
    assert 0.0 < z.min() and z.max() < 0.535 and cycle.duration >= 10.0
    assert cycle == random_cycle(np.random.default_rng(seed), 10.0)


def test_operator_ramps_and_stops_early() -> None:
    operator = Operator((Move(6.0, 1.0, 0.2, until=0.5), Move(0.0, 5.0)))
    assert [operator.command(t, 0.3) for t in (0.0, 0.1, 0.2, 0.5)] == pytest.approx([0.0, 3.0, 6.0, 6.0])
    assert operator.command(0.6, 0.5) == pytest.approx(6.0)         # reached: down within its ramp
    assert operator.command(0.7, 0.52) == pytest.approx(3.0)
    assert operator.command(0.8, 0.53) == 0.0 and operator.command(99.0, 0.5) == 0.0


def test_operator_keeps_clear_of_the_ends() -> None:
    for command, share in ((5.0, 0.93), (-5.0, 0.07)):
        operator = Operator((Move(command, 2.0, 0.2),))
        found = [operator.command(t, share) for t in (0.0, 0.1, 0.2, 0.3)]
        assert found == [0.0, pytest.approx(0.5 * command), 0.0, 0.0]


def test_settings_are_checked() -> None:
    for wrong in ({'rate': 0.0}, {'noise': -1.0}, {'rate': float('nan')}, {'rate': 'fast'}):
        with pytest.raises(SettingError):
            CraneSettings(**wrong)


def late_machine(**delays: str):
    return variant('patu655_lift', **{f'sensors__{name}__delay': delay for name, delay in delays.items()})


def held(machine, rate: float = 100.0, count: int = 30, parameters=None) -> list[SensorFrame]:
    """Frames under a constant command, without noise."""
    simulated = SimulatedCrane(machine, settings=CraneSettings(rate=rate, noise=0.0), parameters=parameters)
    return [simulated.frame(4.0) for _ in range(count)]


def test_a_late_sensor_measures_what_was_earlier() -> None:
    """By whole periods, by 3 ms and by 17 ms: as a plant that is sampled each 1 ms has it; at rest before the start.
    The other sensors and the truth are as without."""
    fine, some = held(variant('patu655_lift'), 1000.0, 300), held(late_machine(
        lift_stroke='20 ms', lift_piston='3 ms', lift_rod='17 ms'))
    truth = held(variant('patu655_lift'))
    for k, frame in enumerate(some):
        for name, delay in ('position/lift', 20), ('pressure/lift_piston', 3), ('pressure/lift_rod', 17):
            expected = fine[max(10 * k - delay, 0)].samples[name]
            assert frame.samples[name] == pytest.approx(expected, rel=1e-9)
        np.testing.assert_allclose(frame.position, truth[k].position, rtol=1e-9)
    assert some[-1].samples['position/lift'] != truth[-1].samples['position/lift']


def test_the_true_delay_is_the_plants() -> None:
    """An uncertain delay is a parameter of the plant: with 30 ms of it samples are 30 ms old, whatever the file says;
    below 0 no sensor measures what is to come."""
    machine = late_machine(lift_stroke={'value': '10 ms', 'stddev': '10 ms'})
    numbers, place = machine.parameters.mean, machine.parameters.names.index('sensors.lift_stroke.delay')
    prompt = held(variant('patu655_lift'))
    for true, frames_late in ((0.03, 3), (0.01, 1), (-0.02, 0)):
        numbers[place] = true
        found = held(machine, parameters=numbers)
        assert found[20].samples['position/lift'] == pytest.approx(prompt[20 - frames_late].samples['position/lift'],
                                                                   rel=1e-9)
