# SPDX-License-Identifier: Apache-2.0
"""Whether the two pressures of a cylinder are exchanged: weighed both ways, by true motions and noisy pressures."""

from __future__ import annotations

from functools import cache
from math import inf, nan

import numpy as np
import pytest
from core_support import crane, plant, work_cycle
from machine_variants import REMOVED, changed

from mbse_ros.filters.hydraulic_state import state_names
from mbse_ros.machine import Machine, load_machine
from mbse_ros.monitor.exchanged import Exchanged, masses_both_ways
from mbse_ros.simulation.crane import SensorFrame, SimulatedCrane, cycle_by_name, plant_of
from mbse_ros.simulation.cycle import Move, WorkCycle

DT = 0.01
LIFT = ['lift']


def verdicts(machine: Machine, frames: list[SensorFrame], cylinder: str = '', begin: float = 0.0, off: float = 0.0
             ) -> list[tuple[list[str], list[str]]]:
    """What is found, and what is open, after each frame; the pressures of a cylinder exchanged from ``begin``, s.
    ``off``: deviations by which samples are off; the state has the true pressures."""
    names, exchanged, g = state_names(machine)[0], Exchanged(machine), len(machine.coordinates)
    P, X, found = np.diag(np.full(len(names), 1e-8)), np.zeros(len(names)), []
    first, last = exchanged.pairs[cylinder] if cylinder else ('', '')
    for k, frame in enumerate(frames):
        X[:3 * g] = np.concatenate([frame.position, frame.velocity, frame.acceleration])
        X[3 * g:3 * g + len(machine.volumes)] = frame.pressure
        samples = dict(frame.samples)
        if cylinder and k * DT >= begin:
            samples[first], samples[last] = samples[last], samples[first]
        measured, zero = np.array([samples[name] for name in machine.channels]), np.zeros(len(machine.channels))
        exchanged.take(DT, X.copy(), P, (measured, zero + off, zero + 1.0), nan)
        found.append((exchanged.found, exchanged.open))
    return found


def since(found: list[tuple[list[str], list[str]]], verdict: list[str]) -> float:
    """From when on, s, the exchanged cylinders were found without a break; infinite where they were not."""
    others = [k for k, (names, _) in enumerate(found) if names != verdict]
    return (others[-1] + 1) * DT if others and others[-1] + 1 < len(found) else inf if others else 0.0


def test_exchanged_pressures_of_a_crane_are_found_at_rest():
    """The weight would be less than that of the boom alone."""
    frames = work_cycle()[:1300]
    found = verdicts(crane(), frames, 'lift')
    assert since(found, LIFT) < 0.7 and all(item[1] == LIFT for item in found[21:])     # held from the first window on
    assert all(item == ([], []) for item in verdicts(crane(), frames))


def test_both_sides_of_a_window_and_of_a_sample_that_is_used():
    """0.2 s from state to state; what is off by less than 6 deviations is used instead of the state."""
    frames = work_cycle()[:100]
    found = verdicts(crane(), frames, 'lift')
    assert found[19][1] == [] and found[20][1] == LIFT and found[59][0] == [] and found[60][0] == LIFT
    assert verdicts(crane(), frames, 'lift', off=5.9)[-1][0] == LIFT
    assert verdicts(crane(), frames, 'lift', off=6.1)[-1][0] == []


def test_a_mass_may_be_off_by_three_deviations():
    """Of the state, and of the uncertain numbers, in a motion whose friction is known."""
    machine, frame = crane(), work_cycle()[0]
    weigh, near = masses_both_ways(machine, []), machine.position(frame.position)[machine.system.dependent]
    X, P = np.zeros(len(state_names(machine)[0])), np.zeros((len(state_names(machine)[0]),) * 2)
    X[0], X[1], X[3:5] = frame.position[0], 0.05, frame.pressure
    sure = float(weigh(near, X, P, 50.0, machine.parameters.mean)[2][0])
    P[3, 3] = 1e5 ** 2
    room = float(weigh(near, X, P, 50.0, machine.parameters.mean)[2][0])
    off = [float(weigh(near, X + np.eye(len(X))[3] * step, P, 50.0, machine.parameters.mean)[1][0])
           for step in (1e5, -1e5)]
    assert np.sqrt(room ** 2 - sure ** 2) == pytest.approx(3.0 * abs(off[0] - off[1]) / 2, rel=1e-3)


def test_pressures_that_are_exchanged_later_are_found():
    found = verdicts(crane(), work_cycle()[:1300], 'lift', 8.0)
    assert all(item == ([], []) for item in found[:800]) and 8.0 < since(found, LIFT) < 11.5
    assert all(item[1] == LIFT for item in found[880:])     # held meanwhile


def test_masses_that_contradict_each_other_up_and_down_are_no_load():
    """A load is filled or dumped in one direction; soil holds once and pushes once."""
    def judged(*masses):
        exchanged = Exchanged(crane())
        for mass in masses:
            exchanged._judge(np.array([mass - 5.0, 0.0]), np.array([mass + 5.0, 400.0]))
        exchanged._conclude()
        return exchanged.found
    assert judged(50.0, 80.0, 110.0, 140.0, 170.0) == judged(50.0, 150.0, 150.0, 50.0, 50.0) == []
    assert judged(50.0, 150.0, 50.0, 150.0) == LIFT
    assert judged(-50.0, -50.0) == [] and judged(-50.0, -50.0, -50.0) == LIFT      # no load explains it


def touched(*windows, before=1.2, several=True):
    """Whether each window of 0.2 s touches, after so many s in which a load explains them: '' one does, 'other'
    exchanged pressures do, 'none' nothing does, 'less' less than nothing."""
    found, masses = [], {'': (0.0, 50.0), 'none': (90.0, 10.0), 'less': (-90.0, -10.0)}
    exchanged = Exchanged(crane())
    for name in ('',) * round(before / 0.2) + windows:
        exchanged._lasted, exchanged.touches = 0.2, False
        low, high = masses['none' if name == 'other' else name]
        other = (10.0, 50.0) if name == 'other' else (90.0, 10.0)
        exchanged._touch(np.array([low, other[0]]), np.array([high, other[1]]), several)
        found.append(exchanged.touches)
    return found[-len(windows):]


def test_equations_that_contradict_each_other_for_a_while_are_a_contact():
    assert touched('none', 'less', '', 'none') == [False, True, False, True]    # one window alone may be a jerk
    assert not any(touched('none', '', 'none', '', 'none'))
    assert touched('none', 'none', before=1.2)[-1] and not touched('none', 'none', before=0.8)[-1]  # nothing was known
    assert touched(*['none'] * 51)[-2:] == [True, False]            # 10 s
    assert touched(*['none'] * 51, *[''] * 5, 'none', 'none')[-1]           # another one
    assert not touched(*['none'] * 51, *[''] * 4, 'none', 'none')[-1]


def test_one_equation_that_weighs_less_than_nothing_is_no_contact():
    """What it weighs may be off by a zero; two do so together."""
    assert touched('less', 'less')[-1] and not touched('less', 'less', several=False)[-1]


@pytest.mark.parametrize('share, touches', [(0.99, True), (1.01, False)])
def test_masses_that_are_hardly_known_contradict_nothing(share, touches):
    """No better than the whole range of the payload's limits."""
    exchanged = Exchanged(crane())
    span = float(np.ptp(exchanged._limits))
    for far in (0.0,) * 6 + (3.0 * span,) * 2:
        exchanged._near, exchanged._lasted = np.zeros(1), 0.2
        exchanged._masses = lambda *_, far=far: (np.zeros(1), np.array([[0.0, far]] * 2),
                                                 np.array([[1.0, share * span]] * 2))
        exchanged._weigh(np.zeros(1), np.zeros((1, 1)), 0.0)
    assert exchanged.touches is touches


def test_hoses_that_are_swapped_at_work_are_no_contact():
    """The first window is half of before; one that does not fit after the second rules the hoses out."""
    assert not any(touched('none', 'other', 'other'))
    assert touched('other', 'other', 'none', 'other') == [False, False, True, True]


@pytest.mark.parametrize('cylinder', ('', 'lift'))
def test_a_log_that_begins_in_a_motion_tells_only_when_the_machine_moves_in_another_way(cylinder):
    """The first motion, with one pair of pressures, weighs 50 or 10 kg; lowering, 50 or 230."""
    frames = work_cycle()[150:800]
    found = verdicts(crane(), frames, cylinder)
    assert all(item == ([], LIFT) for item in found[30:150])
    assert all(item[1] == LIFT if cylinder else item == ([], []) for item in found[400:])


def test_another_load_is_not_taken_for_exchanged_pressures():
    moves = Move(0.0, 1.0), Move(5.0, 3.0), Move(0.0, 1.0), Move(-5.0, 3.0)
    for times in ((2.0, 2.3), (4.2, 4.4), (5.5, 7.5)):          # while it lifts, stands, lowers
        for load in ((1.0, 4.0), (4.0, 1.0)):
            cycle = WorkCycle(0.3, moves, load=tuple(zip(times, load)))
            frames = SimulatedCrane(crane(), 50.0, 1, cycle, plant=plant()).run()
            assert all(item == ([], []) for item in verdicts(crane(), frames)), (times, load)


@cache
def excavator() -> tuple[Machine, list[SensorFrame]]:
    machine = load_machine('zx200', 'orifice')
    cycle = cycle_by_name('random', machine, 1)
    return machine, list(SimulatedCrane(machine, 400.0, 1, cycle, plant=plant_of(machine)).advance(2 * 10 ** 9))


@pytest.mark.parametrize('cylinder', ('boom', 'arm', 'bucket'))
def test_every_cylinder_of_an_excavator_is_found(cylinder):
    assert since(verdicts(*excavator(), cylinder), [cylinder]) < 1.0


def test_an_excavator_as_it_is_is_trusted():
    assert all(item == ([], []) for item in verdicts(*excavator())[60:])


def test_a_cylinder_whose_pressures_are_not_all_measured_is_not_asked():
    """Its equation does not weigh: what it would weigh could never be rejected."""
    machine = changed('zx200', {'sensors/arm_rod': REMOVED})
    assert list(Exchanged(machine).pairs) == ['boom', 'bucket']
    assert all(item == ([], []) for item in verdicts(machine, excavator()[1])[60:])


def test_both_ways_are_the_same_balance_and_friction_at_rest_has_two_bounds():
    """Exchanged pressures weigh the other way what the pressures weigh as they are."""
    machine, frame, find = crane(), work_cycle()[0], Exchanged(crane())
    names = state_names(machine)[0]
    weigh, near = masses_both_ways(machine, [(3, 4)]), find._machine.position(frame.position)[machine.system.dependent]
    X, P = np.zeros(len(names)), np.diag(np.full(len(names), 1e-12))
    X[0], X[3:5] = frame.position[0], frame.pressure
    _, masses, rooms = weigh(near, X, P, 0.0, machine.parameters.mean)
    X[1] = 0.05
    moving = weigh(near, X, P, 0.0, machine.parameters.mean)[2]
    X[1], X[3:5] = 0.0, X[4:2:-1].copy()
    exchanged = weigh(near, X, P, 0.0, machine.parameters.mean)[1]
    assert np.allclose(masses.full(), exchanged.full()[::-1], atol=1e-9) and abs(float(masses[0]) - 50.0) < 0.5
    assert 2.0 < float(rooms[0] - moving[0]) < 10.0         # 300 N and more, of 90 N/kg


def test_what_is_found_outlasts_another_load():
    """A load that is taken begins the masses again: nothing has spoken for the pressures as they are."""
    cycle = WorkCycle(0.3, (Move(0.0, 1.0), Move(5.0, 3.0), Move(0.0, 2.0)), load=((2.2, 1.0), (2.4, 2.0)))
    frames = SimulatedCrane(crane(), 50.0, 1, cycle, plant=plant()).run()
    assert all(item[1] == LIFT for item in verdicts(crane(), frames, 'lift')[30:])
    assert all(item[1] == LIFT for item in verdicts(crane(), frames, 'lift', 1.5)[230:])


def test_samples_that_are_missing_decide_nothing():
    machine = crane()
    exchanged, n = Exchanged(machine), len(state_names(machine)[0])
    X = np.zeros(n)
    X[0] = 0.2
    missing = np.full(len(machine.channels), nan)
    for _ in range(200):
        exchanged.take(DT, X, np.diag(np.full(n, 1e12)), (missing, missing, missing), nan)
    assert exchanged.found == exchanged.open == []


def test_a_window_has_the_mean_of_the_time_between_its_ends():
    """Of what changes evenly: that of its middle, with ten samples as with two."""
    for count in (2, 10):
        exchanged = Exchanged(crane())
        names, channels = state_names(crane())[0], len(crane().channels)
        ramp = [np.full(len(names), 1.0 + k / count) for k in range(count + 1)]
        samples = [(np.full(channels, 2e6 + 1e6 * k / count), np.zeros(channels), np.ones(channels))
                   for k in range(count + 1)]
        exchanged._rows, exchanged._lasted = list(zip(ramp, samples))[1:], 0.2
        P = np.eye(len(names))
        X, _ = exchanged._mean((ramp[0], P, samples[0]), ramp[-1], P)
        assert X[0] == pytest.approx(1.5) and X[3:5] == pytest.approx([2.5e6, 2.5e6])
