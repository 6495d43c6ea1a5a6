# SPDX-License-Identifier: Apache-2.0
"""A mass that is not known: how long it was held by each reason, and what helps."""

from __future__ import annotations

import pytest
from core_support import estimate, simulate

from mbse_ros.offline.track import HELP, Track, held_lines, held_seconds
from mbse_ros.simulation.cycle import Move, WorkCycle
from mbse_ros.streams.records import PayloadStatus


def test_a_machine_that_stands_still() -> None:
    """8 s at rest: too slow for most of it, and told to move; the seconds add up to the log."""
    outputs = estimate('unknown', simulate(50.0, 1, WorkCycle(0.3, (Move(0.0, 8.0),)))).outputs
    seconds, lines = held_seconds(Track.of(outputs)), held_lines(Track.of(outputs))
    assert next(iter(seconds)) is PayloadStatus.TOO_SLOW
    assert sum(seconds.values()) == pytest.approx(len(outputs) * 0.01)
    assert lines[0].startswith(f'held for {seconds[PayloadStatus.TOO_SLOW]:.1f} s: piston too slow')
    assert lines[0].endswith(HELP[PayloadStatus.TOO_SLOW]) and 'payload.min_speed' in lines[0]


def test_every_way_of_being_held_has_an_answer() -> None:
    assert set(HELP) == set(PayloadStatus) - {PayloadStatus.UPDATING}


def test_what_is_weighed_is_not_held() -> None:
    """While it updates there is nothing to say of that."""
    outputs = estimate('orifice', simulate(200.0, 1, WorkCycle(0.3, (Move(4.0, 3.0),)))).outputs
    track = Track.of(o for o in outputs if o.payload.status is PayloadStatus.UPDATING)
    assert held_lines(track) == [] and list(held_seconds(track)) == [PayloadStatus.UPDATING]


def test_hoses_that_may_be_swapped_hold_a_light_load_and_are_no_alarm() -> None:
    """The first motion of a sound crane with 50 kg agrees with both ways: held with the reason, not implausible."""
    outputs = estimate('orifice', simulate(50.0, 1, WorkCycle(0.3, (Move(4.0, 3.0),)))).outputs
    held = [o.payload for o in outputs if 'hoses of lift' in o.payload.reason]
    assert len(held) > 50 and {p.status for p in held} == {PayloadStatus.NO_DATA}
    assert PayloadStatus.IMPLAUSIBLE not in {o.payload.status for o in outputs}
