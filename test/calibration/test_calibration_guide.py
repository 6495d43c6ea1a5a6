# SPDX-License-Identifier: Apache-2.0
"""The steps of a calibration that goes on: what judges a motion, the guide through all steps, the folder."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from calibration_support import crane

from mbse_ros.calibration.guide import Guide
from mbse_ros.calibration.plan import AROUND, Plan, plan
from mbse_ros.calibration.steps import Advice, PlanStep, Seen, StepProgress, steps_of
from mbse_ros.errors import SettingError
from mbse_ros.offline.calibration.live_session import LiveSession, step_line
from mbse_ros.simulation.crane import SimulatedCrane
from mbse_ros.simulation.cycle import Move, WorkCycle

STROKE = np.array([[0.0, 1.0], [0.0, 0.5]])     # m, of boom and arm
LEAST = np.array([0.01, 0.005])                 # m/s


def begun(sweeps: bool = False) -> StepProgress:
    """Of the boom at 0.5 m, with the arm at 0.2 m."""
    step = PlanStep('pose_1', 'boom', 0, np.array([0.5, 0.2]), np.zeros(2), np.zeros(2), 0.0, sweeps, 15.0)
    return StepProgress(step, ('boom', 'arm'), STROKE, LEAST)


def seen(boom: float, speed: float, steady: bool = True, arm: float = 0.2) -> Seen:
    return Seen(0.0, np.array([boom, arm]), np.array([speed, 0.0]), np.array([steady, False]))


@pytest.mark.parametrize('window, advice', [
    (seen(0.5, 0.05), 'good'), (seen(0.5, 0.11), 'fast'), (seen(0.5, -0.11), 'fast'), (seen(0.5, 0.006, False), 'slow'),
    (seen(0.5, 0.05, False), 'hold'), (seen(0.5, 0.001, False), 'out'), (seen(0.3, 0.05), 'go_out'),
    (seen(0.7, 0.0, False), 'go_in')])
def test_what_is_wrong_with_a_motion(window: Seen, advice: str) -> None:
    item = begun()
    assert item.advice == Advice('wait')
    item.take(window)
    assert item.advice == (Advice('good') if advice == 'good' else Advice(advice, 'boom'))
    assert (item.progress > 0.0) == (advice == 'good')


def test_a_step_needs_both_ways_at_its_pose() -> None:
    item = begun()
    for _ in range(5):
        item.take(seen(0.5, 0.05))
    assert item.progress == 0.5 and not item.done
    item.take(seen(0.5, 0.0, False))
    assert item.advice == Advice('in', 'boom')
    item.take(seen(0.5, -0.05, arm=0.3))      # the arm is not where the pose has it
    assert item.progress == 0.5 and item.advice == Advice('go_in', 'arm')
    for _ in range(2):
        item.take(seen(0.5, -0.05))
    assert item.done and item.advice == Advice('done')


def test_a_sweep_needs_its_stroke() -> None:
    item = begun(sweeps=True)
    for place in (0.1, 0.2, 0.3):
        item.take(seen(place, 0.15))
    assert item.progress == pytest.approx(0.2)
    item.take(seen(0.3, 0.0, False))
    assert item.advice == Advice('further', 'boom')
    for place, speed in ((0.65, 0.15), (0.6, -0.15), (0.05, -0.15)):
        item.take(seen(place, speed))
    assert item.done


@cache
def procedure() -> Plan:
    return plan(crane().balance)


def motion(guide: Guide, skipped: tuple[str, ...] = ()) -> list[str]:
    """An operator at the first pose: to it, out and in twice; what the guide said, each word once in a row."""
    c, said = crane(), []
    machine, step = c.machine, guide.steps[0]
    place, stroke = step.pistons[0], machine.stroke[0, 1]
    simulated = SimulatedCrane(machine, 0.0, 1, WorkCycle(0.1, (Move(0.0, 1.0),)), parameters=c.true, plant=c.plant)
    valve, count = machine.valves[0], 0
    for to, command in ((place - AROUND * stroke, None), *[(place + way * AROUND * stroke, 4.0 * way)
                                                          for way in (1, -1, 1, -1)]):
        for _ in range(3000):
            here = simulated.coordinates[machine.pistons[0]]
            volt = 8.0 * np.sign(to - here) if command is None else command
            if (to - here) * volt <= 0.0 or abs(to - here) < 1e-3:
                break
            frame = simulated.frame({valve: volt})
            for channel in machine.channels:
                if channel not in skipped:
                    guide.take(channel, frame.stamp_ns, frame.samples[channel])
            count += 1
            if count % 20 == 0 and (words := guide.advance().words) != (said or [''])[-1]:
                said.append(words)
    return said


def test_the_guide_goes_from_step_to_step() -> None:
    guide = Guide(crane().balance, procedure())
    before = guide.state
    assert before.number == 1 and before.count == len(guide.steps) and before.all == 0.0
    said = motion(guide)
    assert guide.done == ['pose_1/lift'] and guide.step is guide.steps[1]
    assert 'good: go on' in said and any(words.startswith('bring lift') for words in said)
    after = guide.state
    assert after.all == pytest.approx(1 / after.count, abs=1e-9) and after.seconds < before.seconds
    assert f'position/lift {1e3 * guide.steps[0].pistons[0]:.0f} +- 32 mm, now' in step_line(
        guide.machine, guide.steps[0], guide.last)


def test_a_channel_that_is_missing_is_named() -> None:
    guide = Guide(crane().balance, procedure())
    said = motion(guide, skipped=('pressure/lift_rod',))
    assert set(said) == {'missing: pressure/lift_rod: is the sensor on, its topic there?'} and not guide.done
    assert all(len(own) < 400 for own in guide._series.values())     # what waits for it does not grow for ever


def test_stamps_that_go_back_begin_again() -> None:
    """A clock that was set back: the step goes on with what comes then, in place of waiting for the old time."""
    guide = Guide(crane().balance, procedure())
    for channel in crane().machine.channels:
        guide.take(channel, 3_600 * 10 ** 9, 0.2)
        guide.take(channel, 3_600 * 10 ** 9 - 10 ** 8, 0.3)       # late, not set back
    assert guide.set_back == 0 and set(guide.last.values()) == {0.2}
    motion(guide)
    assert guide.set_back == 1 and guide.done == ['pose_1/lift']


def test_the_load_is_confirmed_and_steps_are_skipped() -> None:
    steps = steps_of(procedure(), crane().machine.cylinders)
    guide = Guide(crane().balance, procedure(), [step.key for step in steps if not step.load])
    for channel in crane().machine.channels:
        guide.take(channel, 0, 0.2)
    assert guide.waits and guide.state.advice == Advice('load', '500')
    guide.confirm()
    assert not guide.waits and guide.state.advice != Advice('load', '500')
    guide.skip()
    assert guide.skipped == ['load_1/lift'] and not guide.waits
    guide.skip()
    state = guide.advance()
    assert guide.step is None and state.words == 'done' and state.all == 1.0


def test_the_folder_goes_on_where_it_was(tmp_path: Path) -> None:
    machine, place = crane().machine, tmp_path / 'session'
    session = LiveSession(place, machine)
    bag = session.bag('pose_1')
    bag.mkdir(parents=True)
    session.completed(bag, False, ['pose_1/lift'])
    loaded = session.bag('load_1')
    assert session.bag('pose_1').name == 'pose_1_2' and loaded.name == 'load_1'
    session.completed(loaded, True, ['load_1/lift'])
    again = LiveSession(place, machine)
    assert again.done == ['pose_1/lift', 'load_1/lift'] and again.payloads('502+-1') == ['pose_1=0', 'load_1=502+-1']
    (place / 'steps.json').write_text('{"done": []}')
    with pytest.raises(SettingError, match='steps.json'):
        LiveSession(place, machine)
    (place / 'steps.json').write_text('{"machine": "another", "done": [], "bags": {}}')
    with pytest.raises(SettingError, match='recorded for another one'):
        LiveSession(place, machine)
