# SPDX-License-Identifier: Apache-2.0
"""An empty machine that weighs something else after a stop: which tool hangs there?"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from scale_support import scale, weighed

from mbse_ros.description.machine_parts import Attachment
from mbse_ros.errors import ScaleError
from mbse_ros.scale.load import UncertainMass
from mbse_ros.scale.reading import Reading
from mbse_ros.scale.scale_file import ScaleFile
from mbse_ros.scale.stage import ScaleStage
from mbse_ros.scale.tool_question import Stops
from mbse_ros.streams.records import PayloadStatus
from studies.shifts import CHANGING, CONTACT, HEAP, SLOW, TRUCK, Shift

FILE = ScaleFile({'grading': Attachment('grading', 300.0, 4.0), 'hook': Attachment('hook', -380.0)})


def stopped(mass: float, rests: float = 12.0, until: float = 4.0, contact: float = 0.0) -> Iterator[Reading]:
    """Empty and moving, at rest for some seconds, then of another mass that is known after ``until`` s."""
    shift = Shift([], stddev=(0.0, 2.0))
    yield from shift._known(0.0, 4.0, HEAP, TRUCK)
    for _ in range(round(10 * rests)):
        yield shift._reading(0.0, 5.0, SLOW, TRUCK, 0.0)
    yield from shift._unknown(CONTACT, contact, 0.0, mass, TRUCK - 0.05)
    for k in range(round(10 * until)):
        yield shift._reading(0.5 * mass, 200.0, CHANGING, TRUCK - 0.01 * k, mass)
    yield from shift._known(mass, 6.0, TRUCK - 0.1 * until, HEAP)


def asked(stage: ScaleStage, *readings: Iterator[Reading]) -> str:
    for item in readings:
        weighed(stage, item)
    return '' if stage.live is None else stage.live.question


def test_a_jump_as_large_as_an_attachment_is_asked_for_by_its_name() -> None:
    stage = scale(file=FILE)
    text = asked(stage, stopped(310.0))
    assert text.startswith('the tool may be another: 3')
    assert "more than before a stop, as with attachment 'grading' (+300 kg)" in text
    assert stage._detector.carrying                 # a load until somebody says otherwise
    same = scale(file=FILE)
    assert asked(same, stopped(310.0))
    same.attach('')         # the tool that is on: it was a load
    assert same._detector.carrying and same.live.question == ''
    stage.attach('grading')
    assert not stage._detector.carrying and stage.live.question == ''
    assert stage.live.mass == pytest.approx(10.0, abs=15.0) and stage.live.gross == pytest.approx(310.0, abs=15.0)


@pytest.mark.parametrize('readings', [
    stopped(700.0), stopped(310.0, rests=8.0), stopped(310.0, until=8.0), stopped(310.0, until=2.0, contact=2.0),
    stopped(3.0)],
    ids=['no attachment', 'too short', 'too late', 'digs', 'nothing'])
def test_what_is_not_asked(readings) -> None:
    assert asked(scale(file=FILE), readings) == ''


def test_a_lighter_tool_is_asked_for_where_it_stays_lighter() -> None:
    """Its mass is never known: less than nothing hangs there. On its way there it is as much as another attachment."""
    light = ScaleFile({'hook': Attachment('hook', -380.0), 'plate': Attachment('plate', -100.0)})

    def lost(stage: ScaleStage, mass: float, seconds: float) -> str:
        shift = Shift([], start_ns=stage._stamp_ns)
        return asked(stage, (shift._reading(mass, 5.0, PayloadStatus.IMPLAUSIBLE, TRUCK - 0.01 * k, mass)
                             for k in range(round(10 * seconds))))

    def rested(rests: float) -> ScaleStage:
        stage, shift = scale(file=light), Shift([], stddev=(0.0, 2.0))
        weighed(stage, shift._known(0.0, 4.0, HEAP, TRUCK))
        weighed(stage, (shift._reading(0.0, 5.0, SLOW, TRUCK, 0.0) for _ in range(round(10 * rests))))
        return stage
    stage = rested(12.0)
    assert lost(stage, -100.0, 0.4) == '' and lost(stage, -250.0, 0.6) == ''
    text = lost(stage, -375.0, 1.0)
    assert text.startswith('the tool may be another: 37') and 'less than before a stop' in text
    assert text.endswith("as with attachment 'hook' (-380 kg): choose the attachment")
    once = stage.question
    assert lost(stage, -375.0, 1.0) == text and stage.question is once
    assert lost(rested(8.0), -375.0, 2.0) == '' and lost(rested(12.0), -700.0, 2.0) == ''


def test_a_tool_that_was_chosen_in_the_stop_is_not_asked_for() -> None:
    """Though another one is as much heavier than the chosen one."""
    two = ScaleFile({'grading': Attachment('grading', 300.0), 'breaker': Attachment('breaker', 600.0)})
    for chosen in (True, False):
        stage, readings = scale(file=two), list(stopped(310.0))
        weighed(stage, readings[:150])      # 4 s of motion, 11 s at rest
        if chosen:
            stage.attach('grading')
        assert bool(asked(stage, readings[150:])) is not chosen


def test_nothing_is_asked_where_the_file_names_no_attachments() -> None:
    assert asked(scale(), stopped(310.0)) == ''


def test_once_for_each_stop_and_a_load_that_is_dropped_was_one() -> None:
    stage = scale(file=FILE)
    assert asked(stage, stopped(310.0))
    shift = Shift([], stddev=(0.0, 2.0), start_ns=stage._stamp_ns)
    weighed(stage, shift._unknown(CHANGING, 1.0, 310.0, 0.0, HEAP))
    assert asked(stage, shift._known(0.0, 4.0, HEAP, TRUCK)) == ''
    weighed(stage, shift._unknown(CHANGING, 1.0, 0.0, 310.0, TRUCK))
    assert asked(stage, shift._known(310.0, 4.0, TRUCK, HEAP)) == ''     # taken while it moved


def test_a_stop_gives_one_jump_however_often_the_mass_is_another() -> None:
    shift, stops = Shift([]), Stops()

    def stand(seconds: float, swing: float) -> None:
        for _ in range(round(10 * seconds)):
            stops.take(shift._reading(0.0, 5.0, SLOW, swing, 0.0), 0.1)
    stand(12.0, TRUCK)
    stops.changed(UncertainMass(300.0, 5.0))
    assert stops.jump == UncertainMass(300.0, 5.0)
    stops.asked()
    stops.changed(UncertainMass(-300.0, 5.0))
    assert stops.jump is None
    for k in range(60):         # it drives away: that stop is over
        stand(0.1, TRUCK - 0.05 * k)
    stand(12.0, HEAP)
    stops.changed(UncertainMass(-300.0, 5.0))
    assert stops.jump == UncertainMass(-300.0, 5.0)


def test_zero_asks_for_the_tool() -> None:
    stage = scale(file=FILE)
    assert asked(stage, Shift([], stddev=(0.0, 2.0))._known(300.0, 4.0, HEAP, TRUCK)) == ''
    stage.zero()
    assert "in the file, though the machine is said to be empty, as with attachment 'grading'" in stage.live.question
    stage.attach('grading')
    assert stage.live.question == '' and stage.live.mass == pytest.approx(0.0, abs=10.0)     # not taken off twice
    assert stage.book.zero.mass.value == pytest.approx(0.0, abs=10.0)
    stage = scale(file=FILE)
    weighed(stage, Shift([], stddev=(0.0, 2.0))._known(100.0, 4.0, HEAP, TRUCK))
    stage.zero()
    assert stage.live.question == ''        # any zero takes something off
    stage = scale(file=FILE, zero_range=0.05)
    weighed(stage, Shift([], stddev=(0.0, 2.0))._known(300.0, 4.0, HEAP, TRUCK))
    with pytest.raises(ScaleError, match="as with attachment 'grading'"):
        stage.zero()
