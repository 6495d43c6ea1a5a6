# SPDX-License-Identifier: Apache-2.0
"""A set of sensors is judged before it weighs: only an equation whose pressures are all measured says the mass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from machine_logs import LOAD, excavated, machine_of
from machine_variants import REMOVED, changed, tree_of

from mbse_ros.calibration.balance import CalibrationBalance
from mbse_ros.calibration.plan import plan
from mbse_ros.errors import DescriptionError
from mbse_ros.filters.observability.machine import check_counts, mass_accuracy
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.filters.unweighed import UnweighedMotion
from mbse_ros.machine import Machine
from mbse_ros.machine.equations import check_weighs, why_unweighed
from mbse_ros.monitor.mass import LoadChange
from mbse_ros.payload.mass import Mass
from mbse_ros.simulation.crane import CraneSettings, SensorFrame, SimulatedCrane
from mbse_ros.simulation.cycle import Move, WorkCycle
from mbse_ros.streams.pipeline import Output, Pipeline
from mbse_ros.streams.records import PayloadStatus

MACHINES = 'patu655', 'zx200', 'zx200_can'


def with_pressures(name: str, kept: tuple[str, ...], **more: object) -> Machine:
    """A machine of the package with these pressure sensors alone."""
    dropped = {f'sensors/{sensor}': REMOVED for sensor, item in tree_of(name)['sensors'].items()
               if item['kind'] == 'pressure' and sensor not in kept}
    return changed(name, {**dropped, **{key.replace('__', '/'): value for key, value in more.items()}})


@cache
def filled() -> tuple[SensorFrame, ...]:
    """Boom and arm of zx200 move; then they rest, and the bucket moves while a load is taken, 50 Hz."""
    moves = (Move(0.0, 0.3), Move(5.0, 1.4, 0.2), Move(0.0, 1.8))
    cycle = WorkCycle({'boom': 0.35, 'arm': 0.4, 'bucket': 0.3}, moves, {
        'arm_valve': moves, 'bucket_valve': (Move(0.0, 1.9), Move(7.0, 1.2, 0.2))}, ((2.0, 0.0), (3.0, 1.0)))
    return tuple(SimulatedCrane(machine_of('zx200'), LOAD, 2, cycle, CraneSettings(rate=50.0)).run())


def both(*cylinders: str) -> tuple[str, ...]:
    return tuple(f'{name}_{side}' for name in cylinders for side in ('piston', 'rod'))


def through(machine: Machine, frames: Sequence[SensorFrame], weighing: str = 'joint') -> list[Output]:
    """What a machine makes of the samples that it has."""
    pipeline, outputs = Pipeline(machine, observer=ObserverSettings(weighing=weighing), segment=0.1), []
    inputs = {*machine.channels, *machine.commands}
    for frame in frames:
        for name, value in {**frame.samples, **frame.commands}.items():
            outputs += pipeline.add(name, frame.stamp_ns, value) if name in inputs else ()
    return [*outputs, *pipeline.flush()]


def with_valves(kept: tuple[str, ...], valve: str) -> Machine:
    """zx200 with these pressures and this model of the valves."""
    return with_pressures('zx200', kept, **{
        f'hydraulics__valves__{name}_valve__kind': valve for name in ('boom', 'arm', 'bucket')})


@pytest.mark.parametrize('name', MACHINES)
def test_equations_weigh_whose_pressures_are_all_measured(name: str) -> None:
    """For any set of pressure sensors, drawn at random; the rest is named as missing."""
    rng, whole = np.random.default_rng(1), changed(name, {})
    for kept in (rng.permutation(whole.measured_volumes)[:k] for k in (1, 4)):
        machine = with_pressures(name, tuple(kept))
        expected = [i for i, needs in enumerate(machine.pressure_needs) if needs <= set(kept)]
        assert list(machine.weighing) == expected
        if not expected:
            assert all((volume in why_unweighed(machine)) != (volume in kept) for volume in machine.volumes)
            with pytest.raises(DescriptionError, match='all pressures of a cylinder, to weigh a load; missing: '):
                check_weighs(machine)


@pytest.mark.usefixtures('vm')
@pytest.mark.parametrize(('kept', 'weighing', 'valve'), [
    (both('boom'), 'joint', 'orifice'), (both('boom'), 'joint', 'unknown'), (both('boom'), 'apart', 'orifice'),
    ((*both('arm'), 'boom_piston', 'bucket_rod'), 'joint', 'orifice')])
def test_the_equations_that_weigh_say_the_mass_and_how_well(kept: tuple[str, ...], weighing: str, valve: str) -> None:
    """With pressures of one cylinder and all positions, whatever is known of the valves."""
    mass = through(with_valves(kept, valve), excavated('zx200'), weighing)[-1].payload
    assert mass.lower <= LOAD <= mass.upper and mass.upper - mass.lower < 0.2 * 2500


@pytest.mark.usefixtures('vm')
@pytest.mark.parametrize(('kept', 'valve'), [((), 'orifice'), (('boom_piston',), 'unknown'),
                                             (('boom_rod', 'arm_piston', 'bucket_piston'), 'orifice')])
def test_what_nothing_measures_is_not_reported_as_measured(kept: tuple[str, ...], valve: str) -> None:
    """No mass, for a reason that names the sensors to add; the motion all the same; pressures between vacuum and
    the pump's, with a deviation that holds the true ones."""
    frames = excavated('zx200')[:80]
    outputs = through(with_valves(kept, valve), frames)
    assert {output.payload.status for output in outputs} == {PayloadStatus.NOT_OBSERVABLE}
    assert all(np.isnan([o.payload.mass, o.payload.lower, o.payload.upper]).all() for o in outputs)
    assert 'add sensors of' in outputs[-1].payload.reason
    names, truth = outputs[-1].state.names, frames[-1]
    places = [i for i, name in enumerate(names) if name.startswith('pressure/') and name[9:] not in kept]
    pressures, deviation = outputs[-1].state.mean[-1, places], np.sqrt(np.diag(outputs[-1].state.covariance)[places])
    true = truth.pressure[[i for i, volume in enumerate(both('boom', 'arm', 'bucket')) if volume not in kept]]
    assert (pressures >= 0).all() and (pressures <= 30e6).all() and (np.abs(pressures - true) < 2 * deviation).all()
    np.testing.assert_allclose(outputs[-1].state.mean[-1, :4], truth.position, atol=3e-3)


@pytest.mark.usefixtures('vm')
@pytest.mark.parametrize(('removed', 'reason'), [
    (('payload',), 'no section `payload`'), (('hydraulics',), 'no section `hydraulics`'),
    (('payload', 'hydraulics'), 'no section `payload`')])
def test_a_machine_of_motion_alone(removed: tuple[str, ...], reason: str) -> None:
    """Without a payload, or without hydraulics and friction: strokes give the motion."""
    kept = both('boom', 'arm', 'bucket') if 'hydraulics' not in removed else ()
    changes: dict[str, object] = dict.fromkeys(removed, REMOVED)
    if 'hydraulics' in removed:
        changes |= {f'cylinders__{name}__friction': REMOVED for name in ('boom', 'arm', 'bucket')}
    machine = with_pressures('zx200', kept, **changes)
    outputs = through(machine, excavated('zx200')[:60])
    assert reason in outputs[-1].payload.reason and outputs[-1].payload.status is PayloadStatus.NOT_OBSERVABLE
    assert outputs[-1].state.status.name == 'OK'


def test_more_equations_say_the_mass_better() -> None:
    """All pressures against those of the boom; a cylinder alone by its lever."""
    boom, whole = (mass_accuracy(with_pressures('zx200', both(*names))) for names in (('boom',), ('boom', 'arm')))
    assert boom.all == pytest.approx(boom.each['boom']) and whole.all < boom.all < whole.each['arm'] < 500
    assert whole.each['boom'] == pytest.approx(boom.all) and 20 < boom.all < 0.05 * 2500


@pytest.mark.usefixtures('vm')
def test_loads_count_where_a_set_weighs_to_5_percent_of_full_scale() -> None:
    for kept in (both('boom'), both('boom', 'arm', 'bucket')):
        check_counts(with_pressures('zx200', kept))
    for kept, got in ((both('arm'), '162 kg'), (both('bucket'), '144 kg'), (('boom_piston',), '')):
        with pytest.raises(DescriptionError, match=f'{got}.*missing: .*boom'):
            check_counts(with_pressures('zx200', kept))


@pytest.mark.parametrize('kept', [(), ('boom_piston',)])
def test_a_procedure_of_calibration_needs_all_pressures(kept: tuple[str, ...]) -> None:
    with pytest.raises(DescriptionError, match='missing: .*boom_rod'):
        plan(CalibrationBalance(with_pressures('zx200', kept)))


@pytest.mark.usefixtures('vm')
def test_an_equation_whose_pressure_falls_silent_weighs_no_more() -> None:
    """Before the arm moves; the pressure stays within its bounds, and the sensor is believed when it is back."""
    frames = excavated('zx200')
    start = frames[0].stamp_ns
    heard = [replace(frame, samples={name: value for name, value in frame.samples.items()
                                     if name != 'pressure/arm_piston' or not 0.2e9 < frame.stamp_ns - start < 2.0e9})
             for frame in frames]
    outputs = through(with_pressures('zx200', both('arm')), heard)
    t = np.array([output.state.stamp_ns - start for output in outputs]) * 1e-9
    learnt = np.array([output.state.weighing[:, 0].sum() for output in outputs])
    away, column = (t > 0.6) & (t < 2.0), outputs[0].state.names.index('pressure/arm_piston')
    assert learnt[away].sum() < 1e-2 * learnt[t > 2.1].sum()
    pressure = np.array([output.state.mean[-1, column] for output in outputs])
    assert (pressure[away] >= 0).all() and (pressure[away] <= 30e6).all()
    assert pressure[-1] == pytest.approx(frames[-1].samples['pressure/arm_piston'], abs=3e5)


def test_what_moves_unweighed_may_change_the_load() -> None:
    """The variance of the mass grows with the way of a bucket that nothing weighs, up to that of any load; it is added
    once, when the boom moves again. With all pressures measured it is so only while a sensor is silent."""
    alone, whole = with_pressures('zx200', both('boom')), changed('zx200', {})
    known, rest, middle = 1e-4, np.zeros(1, dtype=bool), whole.range.mean(axis=1)
    place = whole.coordinates.index('bucket')
    motion, lost = UnweighedMotion(alone), []
    assert motion.take(middle, ~rest, known) == (0.0, 0.0)
    for share in (0.02, 0.1, 0.2, 0.1, 0.4, 0.5):
        there = middle.copy()
        there[place] += share * (whole.range[place, 1] - whole.range[place, 0])
        lost.append(motion.take(there, rest, known)[0])
    assert lost[0] == 0.0 and lost[1] < -3.0 and lost[2] < 0.0 and lost[3] == 0.0 and lost[4] < 0.0 and lost[5] == 0.0
    assert sum(lost) == pytest.approx(np.log(known / (known + 0.25)))
    assert motion.take(there, ~rest, known) == (0.0, 0.25) and motion.take(there, ~rest, known) == (0.0, 0.0)
    motion, rest = UnweighedMotion(whole), np.zeros(3, dtype=bool)
    assert motion.take(middle, rest, known) == motion.take(there, rest, known) == (0.0, 0.0)
    silent = np.array([True, True, False])
    assert motion.take(middle, rest, known, silent) == (0.0, 0.0) and motion.take(there, rest, known, silent)[0] < -7.0


@pytest.mark.usefixtures('vm')
@pytest.mark.parametrize(('kept', 'weighing'), [('arm', 'joint'), ('boom', 'apart')])
def test_a_mass_is_not_held_through_motion_that_nothing_weighs(kept: str, weighing: str) -> None:
    """Boom and arm weigh an empty bucket; then this fills while it moves alone."""
    frames = filled()
    outputs = through(with_pressures('zx200', both(kept)), frames, weighing)
    times = np.array([output.state.stamp_ns - frames[0].stamp_ns for output in outputs]) * 1e-9
    before, after = (outputs[int(np.searchsorted(times, t))].payload for t in (1.7, 3.2))
    assert before.lower <= 0.0 <= before.upper and before.upper - before.lower < 2000.0
    assert after.lower <= LOAD <= after.upper and after.mass == pytest.approx(before.mass, abs=50.0)
    assert after.status is PayloadStatus.CHANGING and 'bucket moved while nothing weighed' in after.reason


def test_the_first_mass_counts_after_motion_where_not_all_cylinders_weigh() -> None:
    """A jerk of some milliseconds gives a mass that nothing contradicts while the boom rests."""
    jerk = Mass(700.0, 50.0, 100.0, 700.0, 700.0, 20, 'open', 50.0, taken=20)
    rest = replace(jerk, taken=0)
    for least, found in ((0.0, True), (0.5, False)):
        loads = LoadChange(2500.0, least=least)
        for k in range(30):
            loads.take(0.1 * k, jerk if k < 3 else rest, 0.0)
        assert loads.found is found
