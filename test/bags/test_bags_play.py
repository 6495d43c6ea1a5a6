# SPDX-License-Identifier: Apache-2.0
"""The schedule of a replay: due times by rate and loop; bytes as they are."""

from itertools import islice

import pytest

from mbse_ros.bags.bag import Bag
from mbse_ros.bags.play import ROUND_PAUSE_S, Playback
from mbse_ros.bags.writer import BagWriter
from mbse_ros.errors import BagError

SECOND = 10 ** 9


@pytest.fixture(scope='module')
def bag(tmp_path_factory):
    """Pressures at 100, 101, 102 and 104 s, and a command with the third."""
    folder = tmp_path_factory.mktemp('bags') / 'bag'
    with BagWriter(folder) as writer:
        for second in (100, 101, 102, 104):
            writer.write_pressure(second * SECOND, 'lift_rod', 1e5 * second)
            if second == 102:
                writer.write_command(second * SECOND, {'lift_valve': 1.0})
    return folder


def test_messages_are_due_as_recorded(bag):
    playback = Playback(bag)
    assert playback.topics == {'/sensors/pressure/lift_rod': 'sensor_msgs/msg/FluidPressure',
                               '/sensors/valve_command': 'sensor_msgs/msg/JointState'}
    due = list(playback)
    assert [item.due_s for item in due] == pytest.approx([0.0, 1.0, 2.0, 2.0, 4.0])
    assert [item.stamp_ns for item in due] == [second * SECOND for second in (100, 101, 102, 102, 104)]
    assert [(item.topic, item.cdr) for item in due] == [(raw.topic, raw.data) for raw in Bag(bag).messages()]
    assert list(playback) == due and playback.warnings == []


def test_the_rate_scales_and_may_change_on_the_way(bag):
    assert [item.due_s for item in Playback(bag, rate=4.0)] == pytest.approx([0.0, 0.25, 0.5, 0.5, 1.0])
    playback, due = Playback(bag), []
    for item in playback:
        due.append(item.due_s)
        playback.rate = 0.5 if item.stamp_ns >= 101 * SECOND else 1.0
    assert due == pytest.approx([0.0, 1.0, 3.0, 3.0, 7.0])


def test_a_loop_goes_on_for_ever_from_the_start(bag):
    due = list(islice(Playback(bag, rate=2.0, loop=True), 11))
    pause = ROUND_PAUSE_S / 2
    assert [item.stamp_ns // SECOND for item in due] == [*(100, 101, 102, 102, 104) * 2, 100]
    assert [item.due_s for item in due] == pytest.approx(
        [0.0, 0.5, 1.0, 1.0, 2.0, *(2.0 + pause + due for due in (0.0, 0.5, 1.0, 1.0, 2.0)), 4.0 + 2 * pause])


def test_topics_can_be_chosen(bag):
    playback = Playback(bag, names=['/sensors/valve_command'])
    assert list(playback.topics) == ['/sensors/valve_command']
    assert [(item.due_s, item.stamp_ns) for item in playback] == [(0.0, 102 * SECOND)]


@pytest.mark.parametrize('arguments, reason', [
    ({'rate': 0.0}, 'rate 0.0 is not above 0'), ({'rate': float('nan')}, 'rate nan'),
    ({'names': ['/x']}, 'has no topic /x; there are')])
def test_wrong_arguments_are_refused(bag, arguments, reason):
    with pytest.raises(BagError, match=reason):
        Playback(bag, **arguments)
