# SPDX-License-Identifier: Apache-2.0
"""Time as it comes: clocks that are apart, that step and loop; NaN now and then; what counts as an update."""

from collections import Counter
from functools import cache

import numpy as np
import pytest
from core_support import work_cycle

from mbse_ros.errors import SampleError
from mbse_ros.machine import load_machine
from mbse_ros.monitor.clocks import EVERY, Clocks
from mbse_ros.streams.pipeline import Pipeline

SECOND, PERIOD = 10 ** 9, 10_000_000
CHANNELS = ('command/lift_valve', 'position/lift', 'pressure/lift_piston', 'pressure/lift_rod')
HOURS = 3600 * SECOND


@cache
def samples():
    """Ten seconds of a work cycle at 100 Hz: (stamp, channel, value)."""
    return [(frame.stamp_ns, name, value) for frame in work_cycle()[:1000]
            for name, value in {**frame.commands, **frame.samples}.items()]


@cache
def run(change):
    """Outputs, the pipeline, and how many samples were refused, of samples that a function has changed."""
    pipeline, outputs, refused = Pipeline(load_machine('patu655_lift')), [], 0
    for stamp, channel, value in map(change, *zip(*samples())):
        try:
            outputs += pipeline.add(channel, stamp, value)
        except SampleError:
            refused += 1
    return outputs, pipeline, refused


def plain(stamp, channel, value):
    return stamp, channel, value


@pytest.mark.parametrize('offset', [HOURS, -HOURS, 1_200_000_000, -1_200_000_000])
@pytest.mark.parametrize('wrong', CHANNELS)
def test_a_clock_that_is_not_that_of_the_others_is_named(wrong, offset):
    """Not those that seem to be silent by it."""
    clocks = Clocks()
    for k in range(400):
        for channel in CHANNELS:
            clocks.take(channel, k * PERIOD + (offset if channel == wrong else 0))
    assert clocks.apart == {wrong: pytest.approx(offset * 1e-9, abs=0.02)}
    assert clocks.words == (f'the clock of {wrong} is {abs(offset) * 1e-9:.1f} s '
                            f'{"ahead of" if offset > 0 else "behind"} those of the others')
    for k in range(400, 800):       # mended
        for channel in CHANNELS:
            clocks.take(channel, k * PERIOD)
    assert not clocks.apart and not clocks.words


def test_of_two_clocks_nobody_knows_which_is_wrong():
    clocks = Clocks()
    for k in range(400):
        for channel, offset in (('a', 0), ('b', 2 * SECOND)):
            clocks.take(channel, k * PERIOD + offset)
    assert clocks.apart == {'a': pytest.approx(-2.0, abs=0.02), 'b': pytest.approx(2.0, abs=0.02)}


@pytest.mark.parametrize('stamp_of', [
    lambda k, i: k * PERIOD, lambda k, i: (k % 100) * PERIOD,                               # straight, in a loop of 1 s
    lambda k, i: k * PERIOD + (HOURS if k > 200 else 0), lambda k, i: k * PERIOD - 2 * i * PERIOD,      # set, delays
    lambda k, i: (k - k % (1 + 20 * i)) * PERIOD])                                                      # rates
def test_clocks_that_agree_are_not_blamed(stamp_of):
    clocks, told = Clocks(), set()
    for k in range(4 * EVERY):
        for i, channel in enumerate(CHANNELS):
            clocks.take(channel, stamp_of(k, i))
            told |= set(clocks.apart)
    assert not told


def test_a_jump_at_any_sample_is_no_clock_of_its_own():
    """While it goes through the inputs one after the other."""
    for at in range(2 * EVERY, 3 * EVERY):
        clocks, told = Clocks(), set()
        for number in range(5 * EVERY):
            clocks.take(CHANNELS[number % 4], (number // 4) * PERIOD + HOURS * (number >= at))
            told |= set(clocks.apart)
        assert not told


def test_what_has_stopped_is_no_clock():
    clocks = Clocks()
    for k in range(1000):
        for channel in CHANNELS[:1] if k > 100 else CHANNELS:
            clocks.take(channel, k * PERIOD)
    assert not clocks.apart


def ahead(stamp, channel, value):
    return stamp + HOURS * (channel == 'position/lift'), channel, value


@pytest.mark.parametrize('offset, last, found', [
    (515, 120, True), (485, 120, False), (-515, 120, True), (-485, 120, False),     # half a second
    (2000, 114, True), (2000, 112, False)])     # of two inputs the last ten samples count, five of each
def test_both_sides_of_a_clock_that_is_apart(offset, last, found):
    """Looks are at samples 61 and 122, which are of the first input; the second one ends at its ``last`` sample."""
    clocks = Clocks()
    for count in range(1, 123):
        other = count % 2 == 0 and count <= last
        clocks.take('b' if other else 'a', count // 2 * PERIOD + (offset * 1_000_000 if other else 0))
    assert list(clocks.apart) == ['a'] * found


def test_the_pipeline_names_it():
    outputs, pipeline, _ = run(ahead)
    assert set(pipeline.interpolator.clocks.apart) == {'position/lift'}
    assert not np.isfinite(outputs[-1].payload.mass)        # nothing is estimated of samples of two instants
    assert not run(plain)[1].interpolator.clocks.apart


def nan_tenth(stamp, channel, value):
    return stamp, channel, np.nan if channel == 'position/lift' and stamp // PERIOD % 10 == 0 else value


def test_nan_in_every_tenth_position_costs_information_and_no_mass():
    outputs, whole = run(nan_tenth)[0], run(plain)[0]
    last, best = outputs[-1].payload, whole[-1].payload
    assert abs(last.mass - best.mass) < best.upper - best.mass
    known = [sum(np.isfinite(output.payload.mass) for output in found) for found in (outputs, whole)]
    assert known[0] > 0.95 * known[1]


@pytest.mark.parametrize('change', [plain, nan_tenth])
def test_updating_says_that_samples_went_into_a_mass(change):
    updates = [output.payload for output in run(change)[0] if output.payload.status.name == 'UPDATING']
    assert len(updates) > 200
    assert all(payload.samples > 0 and np.isfinite(payload.mass) for payload in updates)


def stepped(step):
    def change(stamp, channel, value):
        return stamp + step * (stamp >= 5 * SECOND), channel, value
    return change


@pytest.mark.parametrize('step, restarts, refused', [
    (30_000_000, 1, 0), (-30_000_000, 1, 16), (300_000_000, 2, 0), (-300_000_000, 2, 4), (HOURS, 2, 0),
    (-HOURS, 2, 4)])
def test_a_clock_that_is_stepped(step, restarts, refused):
    """As NTP does it: below max_gap (0.1 s) the stream goes on, back without what would be measured twice; beyond it
    all starts again, each state knows it, and the mass is kept."""
    outputs, pipeline, count = run(stepped(step))
    assert sum(output.segment.restart for output in outputs) == restarts
    assert count in (refused, refused - 4, refused + 4) and not pipeline.interpolator.lost
    assert [output.state.restart for output in outputs] == [output.segment.restart for output in outputs]
    ends = np.array([output.state.stamp_ns for output in outputs])
    breaks = np.flatnonzero([output.segment.restart for output in outputs])
    assert all((np.diff(part) > 0).all() for part in np.split(ends, breaks))
    best = run(plain)[0][-1].payload
    assert abs(outputs[-1].payload.mass - best.mass) < 2 * (best.upper - best.mass)
    assert Counter(output.state.status.name for output in outputs).keys() <= {'OK', 'STARTING'}


def test_two_rounds_of_a_loop_are_the_same():
    """No state of the round before is left in the motion of the next: bit for bit, the covariance, too."""
    pipeline, rounds = Pipeline(load_machine('patu655_lift')), []
    for _ in range(2):
        found = []
        for stamp, channel, value in samples()[:1200]:
            try:
                found += pipeline.add(channel, stamp, value)
            except SampleError:
                pass
        rounds.append(found)
    first, second = ([output.state for output in found] for found in rounds)
    assert second[0].restart and {state.stamp_ns for state in second} <= {state.stamp_ns for state in first}
    known = {state.stamp_ns: state for state in first}
    # The second round begins a sample later: its first states differ by that sample's noise, all later ones by less.
    for state in second[100:]:
        same = known[state.stamp_ns]
        deviation = np.sqrt(np.diag(same.covariance))
        assert (np.abs(state.mean[-1] - same.mean[-1]) <= 4 * deviation + 1e-12).all()
