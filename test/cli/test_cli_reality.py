# SPDX-License-Identifier: Apache-2.0
"""`mbse benchmark reality`: its JSON, table and page on one machine, what each effect changes, and what its figures
mean."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from cli_support import mbse, refused
from core_support import feed

from mbse_ros.description.load import load_mechanism
from mbse_ros.simulation.effects import EFFECTS, effects_of
from mbse_ros.simulation.sensor_faults import samples_with
from mbse_ros.studies.fault_cases import SegmentOutcome, frames_of, fresh_pipeline, machine_of
from mbse_ros.studies.reality import reality_cases, summaries
from mbse_ros.studies.reality_cases import (
    RealityCase,
    RealityOutcome,
    coverage,
    frames_with,
    held,
    plant_with,
    run_reality,
    unknown,
)

LIFT, PISTON, ROD, POSITION = 'patu655_lift', 'pressure/lift_piston', 'pressure/lift_rod', 'position/lift'
KEYS = ['machine', 'effect', 'size', 'valve', 'seed', 'error_kg', 'share_of_full_scale', 'holds', 'seconds_wrong',
        'seconds_unknown', 'coverage_position', 'coverage_velocity']
FINE = SegmentOutcome(0.0, 0.1, 0.0, 1.0, 5.0, True, False, False, frozenset(), '')


@pytest.fixture(scope='module')
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp('reality')
    page = folder / 'page.md'
    page.write_text('before <!-- mbse benchmark reality: begin --> old <!-- mbse benchmark reality: end --> after')
    done = mbse('benchmark', 'reality', '--machine', LIFT, '--valve', 'orifice', '--effect', 'none,load_beyond_tip',
                '--duration', 12, '--json', folder / 'x.json', '-o', folder / 'plots', '--page', page)
    assert done.status == 0, done
    return json.loads((folder / 'x.json').read_text())['rows'], done.out, folder


def test_the_json(small) -> None:
    rows, out, folder = small
    assert [(row['machine'], row['effect'], row['valve'], row['seed']) for row in rows] == [
        (LIFT, 'none', 'orifice', 1), (LIFT, 'load_beyond_tip', 'orifice', 1)]
    for row in rows:
        assert list(row) == KEYS and isinstance(row['holds'], bool) and isinstance(row['size'], str)
        assert row['share_of_full_scale'] == pytest.approx(row['error_kg'] / 1000.0)
        assert 0.0 <= row['seconds_wrong'] <= 12.0 and 0.0 <= row['seconds_unknown'] <= 12.0
        assert 0.0 <= row['coverage_position'] <= 1.0 and 0.0 <= row['coverage_velocity'] <= 1.0
    assert (folder / 'plots' / 'reality.png').read_bytes().startswith(b'\x89PNG') and 'load_beyond_tip' in out
    page = (folder / 'page.md').read_text()
    assert '| load_beyond_tip | 0.3 m |' in page and page.startswith('before') and page.endswith(' after')
    assert ' old ' not in page and f'Machines `{LIFT}`; valves `orifice`; settings as they are by default.' in page
    assert max(map(len, [*page.splitlines(), *out.splitlines()])) <= 100


def test_a_plant_of_the_file_is_weighed_right_and_one_with_a_longer_lever_is_not(small) -> None:
    """0.3 m more at 2.9 m is a tenth of 200 kg, and inertia."""
    sound, longer = small[0]
    assert sound['holds'] and abs(sound['error_kg']) < 5.0 and sound['coverage_velocity'] > 0.9
    assert longer['error_kg'] == pytest.approx(22.0, abs=8.0)


def test_effects_change_the_description_of_the_plant_as_they_say() -> None:
    crane, excavator = load_mechanism('patu655'), load_mechanism('zx200')
    rough = EFFECTS['friction_doubled'].change(crane)
    assert [rough.cylinders[name].friction.scale.value for name in rough.cylinders] == [2.0, 2.0]
    far = EFFECTS['load_beyond_tip'].change(excavator).payload.center
    assert [number.value for number in far] == pytest.approx([1.05, 0.0, -0.1])
    assert EFFECTS['another_bucket'].change(excavator).bodies['bucket'].mass.value == 810.0
    for name in ('friction_doubled', 'load_beyond_tip'):
        changed = EFFECTS[name].change(crane)
        assert replace(changed, cylinders=crane.cylinders, payload=crane.payload) == crane and changed != crane


@pytest.mark.parametrize('effect, moved, times, force', [
    ('parallel_damper', 0.1, 1.0, 1e4), ('parallel_damper', -0.1, 1.0, -1e4), ('friction_out_and_in', 0.1, 1.5, 0.0),
    ('friction_out_and_in', -0.1, 0.5, 0.0), ('parallel_spring', 0.0, 1.0, 2e4 * (0.4 - 0.535 / 2))])
def test_forces_of_the_cylinder_are_those_of_the_effect(effect, moved, times, force) -> None:
    """At 0.4 m of 0.535 m: so many times the file's friction, N, and a force beside the piston."""
    plant, file = plant_with(LIFT, EFFECTS[effect]).machine, machine_of(LIFT, 'orifice')
    forces = [float(ca.Function('force', [machine.parameters.symbol], [
        machine.circuit.resisting_forces(ca.SX([0.4]), ca.SX([moved]), ca.SX([4e6, 1e6]))])(file.parameters.mean))
        for machine in (plant, file)]
    assert forces[0] == pytest.approx(times * forces[1] + force)


def samples_of(effect: str, valve: str = 'orifice') -> dict[str, np.ndarray]:
    """Times, s, and samples (2, k) by channel of a run of 12 s with an effect of the sensors."""
    machine, frames = machine_of(LIFT, valve), frames_of(LIFT, 1, 12.0)
    found = samples_with(EFFECTS[effect].faulty(machine), machine, frames, 8.0, 1)
    return {channel: np.array([(stamp * 1e-9, value) for stamp, name, value in found if name == channel]).T
            for channel in machine.channels}


def test_effects_of_sensors_change_the_log_as_they_say() -> None:
    sound = samples_of('none')
    t = sound[PISTON][0]
    begun = t >= 8.0 - 1e-9
    off = {effect: {name: item[1] - sound[name][1] for name, item in samples_of(effect).items()}
           for effect in ('pressure_and_position', 'gain_of_pressures', 'warm_up_drift', 'zero_50_mm')}
    assert np.allclose(off['pressure_and_position'][PISTON], 200e3 * begun)
    assert np.allclose(off['pressure_and_position'][POSITION], 0.02 * begun)
    assert np.allclose(off['pressure_and_position'][ROD], 0.0)
    assert np.allclose(off['gain_of_pressures'][PISTON], 0.05 * sound[PISTON][1])
    assert np.allclose(off['gain_of_pressures'][ROD], 0.05 * sound[ROD][1])
    assert np.allclose(off['warm_up_drift'][PISTON], 400e3 * (1.0 - np.exp(-t / 10.0)))
    assert np.allclose(off['zero_50_mm'][POSITION], 0.05)
    assert np.array_equal(samples_of('rod_on_piston_line')[ROD], sound[PISTON])
    late = samples_of('pressures_late')
    assert np.allclose(late[PISTON][0], t + 0.01) and np.array_equal(late[ROD][1], sound[ROD][1])
    assert np.array_equal(late[POSITION], sound[POSITION])


def test_a_dump_takes_half_of_the_full_scale_away() -> None:
    mass = {round(frame.stamp_ns * 1e-9, 2): frame.payload for frame in frames_with(LIFT, 'dump', 1, 12.0)}
    assert mass[7.99] == pytest.approx(600.0) and mass[8.11] == pytest.approx(100.0)


def test_effects_of_physics_are_those_of_another_plant() -> None:
    """Pressures of a sensor with hysteresis are 50 kPa beside those of a sound one, and the motion is the same."""
    for one, two in zip(frames_of(LIFT, 1, 2.0), frames_with(LIFT, 'pressure_hysteresis', 1, 2.0)):
        off = two.samples[PISTON] - one.samples[PISTON]
        assert np.array_equal(one.position, two.position) and abs(off) <= 50e3 + 1e-3
    assert abs(off) > 20e3


def test_joints_have_their_zero_in_radians() -> None:
    faulty = EFFECTS['zero_30_mm'].faulty(machine_of('zx200_can'))
    assert list(faulty) == ['position/boom_joint']
    assert list(EFFECTS['pressures_late'].faulty(machine_of('patu655'))) == [
        f'pressure/{name}_{side}' for name in ('lift', 'tilt') for side in ('piston', 'rod')]


def test_all_effects_of_four_machines() -> None:
    cases = reality_cases([], [], [], 2, 24.0)
    assert {case.effect for case in cases} == set(EFFECTS) and len(set(cases)) == len(cases)
    assert {case.machine for case in cases if case.effect == 'another_bucket'} == {'zx200', 'zx200_can'}
    assert sum(case.effect == 'none' for case in cases) == 4 * 2 * 2
    assert [effect.name for effect in effects_of(['another_bucket'], machine_of(LIFT))] == []


def test_known_and_unknown_by_hand() -> None:
    lost = replace(FINE, good=False)
    seen = [replace(FINE, t=0.1, moved=0.1), replace(lost, t=0.2, moved=0.2), replace(lost, t=0.3, moved=0.2),
            replace(lost, held=True, t=0.4, moved=0.3),
            replace(lost, held=True, half_width=math.nan, t=0.5, moved=0.35)]
    assert unknown(seen) == pytest.approx(0.15)
    assert held(FINE) and not held(replace(FINE, error=5.1)) and not held(replace(FINE, half_width=math.inf))


def test_bands_are_counted_by_the_worst_coordinate() -> None:
    machine, frames = machine_of(LIFT, 'orifice'), frames_of(LIFT, 1, 2.0)
    outputs = feed(fresh_pipeline(LIFT, 'orifice'), frames)[-20:]
    at = {frame.stamp_ns: frame for frame in frames}
    moved = []
    for k, output in enumerate(outputs):
        state, frame = output.state, at[output.state.stamp_ns]
        mean, entries = state.mean.copy(), [state.names.index(f'{kind}/lift') for kind in ('position', 'velocity')]
        mean[-1, entries] = frame.position[0], frame.velocity[0]
        mean[-1, entries] += np.sqrt(np.diag(state.covariance)[entries]) * ([1.9, 2.1] if k < 5 else [-1.9, 1.9])
        moved.append(replace(output, state=replace(state, mean=mean)))
    assert coverage(machine, frames, moved) == (1.0, 0.75)
    assert coverage(machine, frames, []) == (None, None)


def test_a_summary_counts_runs_and_takes_the_worst() -> None:
    row = {'effect': 'dump', 'size': '50 %', 'holds': True, 'share_of_full_scale': 0.002, 'seconds_wrong': 0.25,
           'seconds_unknown': 1.0, 'coverage_position': 0.9, 'coverage_velocity': 0.5}
    other = {**row, 'holds': False, 'share_of_full_scale': math.nan, 'coverage_velocity': None, 'seconds_wrong': 3.0}
    found = [RealityOutcome(row, 4.0, ''), RealityOutcome(other, 6.0, 'x')]
    figures = ['1/2', '0.20', '3.0', '20', '0.90 0.90', '0.50 0.50']
    assert summaries(found) == [['dump', '50 %', *figures]]
    more = summaries([*found, RealityOutcome({**row, 'effect': 'none', 'size': ''}, 4.0, '')])
    assert [cells[:3] for cells in more] == [['none', '–', '1/1'], ['dump', '50 %', '1/2'], ['all', '', '2/3']]


def test_settings_of_the_estimator_are_those_that_are_asked_for() -> None:
    """A mass that only counts above 1 m/s is not known, and the next run is again as the file says."""
    case = RealityCase(LIFT, 'none', 'orifice', 1, 2.0)
    plain, slow, again = (run_reality(replace(case, tuning=words)) for words in ((), ('payload.min_speed=1.0',), ()))
    assert plain == again and plain.row['coverage_velocity'] is not None
    assert slow.row['coverage_velocity'] is None and slow.row['seconds_unknown'] > plain.row['seconds_unknown'] + 0.5
    late = fresh_pipeline(LIFT, 'orifice', ('interpolation.max_gap=0.3', 'observer.force_error=0.1'))
    assert late.interpolator.settings.max_gap == 0.3


@pytest.mark.parametrize('words, told', [
    (('--effect', 'dumb'), 'did you mean dump'), (('--valve', 'open'), '--valve'), (('--machine', 'patu'), 'machine'),
    (('--duration', 5), '--duration'), (('--duration', 'nan'), '--duration'), (('--set', 'observer.force=1'), '--set'),
    (('--page', 'README.md'), '--page'),
    (('--effect', 'another_bucket', '--machine', LIFT),
     'machines with a body bucket, as zx200 and zx200_can: patu655_lift has none')])
def test_bad_words_are_refused(words, told) -> None:
    assert told in refused('benchmark', 'reality', *words)
