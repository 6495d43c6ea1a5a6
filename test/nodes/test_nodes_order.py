# SPDX-License-Identifier: Apache-2.0
"""Order of records, counted warnings, status changes: what the nodes decide before and after their stage."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from nodes_support import segment

from mbse_ros.bags.messages import packed_record
from mbse_ros.nodes.base.diagnostics import SLIPS, StatusChange, Strangers, Warnings
from mbse_ros.nodes.base.record_node import Inbox
from mbse_ros.streams.records import PayloadStatus, Segment

PERIOD = 10_000_000


@pytest.fixture
def inbox():
    lines = []
    box = Inbox(Segment, Warnings(lines.append))
    box.lines = lines
    box.give = lambda k, start=None, **more: box.take(packed_record(
        segment(k, (k - 1) * PERIOD if start is None else start, **more), 'x'))
    return box


def test_a_stream_in_order_passes_unchanged(inbox):
    records = [inbox.give(k, restart=k == 1) for k in range(1, 6)]
    assert [r.sequence for r in records] == [1, 2, 3, 4, 5]
    assert [r.restart for r in records] == [True, False, False, False, False]
    assert not inbox.lines


def test_whoever_joins_late_starts_again(inbox):
    assert inbox.give(40).restart and not inbox.give(41).restart
    assert not inbox.lines


def test_a_hole_restarts_and_is_reported(inbox):
    inbox.give(1)
    assert inbox.give(5).restart and not inbox.give(6).restart
    assert len(inbox.lines) == 1 and '3 lost' in inbox.lines[0] and '0.030 s are missing' in inbox.lines[0]


@pytest.mark.parametrize('again', [2, 1])
def test_repeated_and_backward_ones_are_dropped(inbox, again):
    inbox.give(1), inbox.give(2)
    assert inbox.give(again) is None
    assert inbox.give(3) is not None and len(inbox.lines) == 1 and 'dropped' in inbox.lines[0]


def test_a_source_that_starts_again_is_followed(inbox):
    inbox.give(500)
    assert inbox.give(1, start=600 * PERIOD, restart=True).restart      # restarted, as it says
    assert inbox.give(1, start=700 * PERIOD).restart                    # and its first one lost
    assert inbox.give(2, start=0, restart=True).restart                 # a bag plays again
    assert inbox.give(9, start=PERIOD, restart=True).restart            # at once, without a hole
    assert '1.000 s are missing' in inbox.lines[0]


def test_a_backward_step_of_the_source_is_reported(inbox):
    inbox.give(500)
    assert inbox.give(501, start=0, restart=True).restart and 'time went back 5.000 s' in inbox.lines[0]


def test_an_unreadable_message_is_dropped(inbox):
    inbox.give(1)
    cut = replace(segment(2, PERIOD), repeats=np.ones(2))
    assert inbox.take(packed_record(cut, 'x')) is None and 'segment.repeats' in inbox.lines[0]
    assert not inbox.give(2).restart


def test_warnings_are_counted():
    lines, now = [], [0.0]
    warnings = Warnings(lines.append, period=5.0, clock=lambda: now[0])
    for now[0] in (0.0, 1.0, 2.0, 5.5):
        warnings('a', 'bad a')
    warnings('b', 'bad b')
    assert lines == ['bad a', 'bad a (2 more like this since the last line)', 'bad b'] and warnings.total == 5


def test_warnings_forget_when_there_are_too_many_kinds():
    warnings = Warnings(lambda line: None)
    for k in range(5000):
        warnings(str(k), 'x')
    assert len(warnings._held) <= 1000


def test_flickering_status_is_passed_over():
    changed, word = StatusChange(3), PayloadStatus
    stream = [word.TOO_SLOW] * 4 + [word.UPDATING, word.TOO_SLOW] * 4 + [word.UPDATING] * 4 + [word.TOO_SLOW] * 2
    assert [k for k, status in enumerate(stream) if changed(status)] == [2, 14]


def test_names_of_others_are_told_once():
    warned, told = [], []
    strangers = Strangers(('lift', 'lift_valve'), warned.append, told.append)
    for _ in range(3):
        for name in ('wheel_left', 'wheel_right', 'lift_1', 'Lift', 'gripper', 'x' * 100_000):
            strangers('sensors/position', name)
    assert len(told) == 1 and 'sensors/position: wheel_left is passed over' in told[0]
    assert len(warned) == 2 and all(line.endswith('did you mean lift?') for line in warned)
    strangers('sensors/valve_command', 'wheel_left')
    strangers('sensors/valve_command', 'lft_valve')
    assert len(told) == 2 and warned[-1].endswith('did you mean lift_valve?')


def test_names_of_others_do_not_fill_log_or_memory():
    warned, told = [], []
    strangers = Strangers(('lift',), warned.append, told.append)
    for k in range(5000):
        strangers('sensors/position', f'lift{k}'[:6])
        strangers('sensors/position', f'{k} wheels')
    assert len(told) == 1 and len(warned) == SLIPS and len(strangers._seen) <= 1000
