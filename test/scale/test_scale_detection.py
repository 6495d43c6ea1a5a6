# SPDX-License-Identifier: Apache-2.0
"""Loads out of a stream of masses: each once, with what was delivered, where, and how certain."""

from __future__ import annotations

from dataclasses import replace
from math import hypot, sqrt

import numpy as np
import pytest

from mbse_ros.monitor.faults import Fault
from mbse_ros.scale.detection import Detector
from mbse_ros.scale.load import CARRIED, COUNTED, EMPTY, PUT_BACK, WEIGHED, Load, UncertainMass, combined
from mbse_ros.scale.reading import Place, Reading
from mbse_ros.scale.scale_file import ScaleSettings
from mbse_ros.streams.records import PayloadStatus
from studies.shifts import NAMES, TRUCK, Bucket, Shift, working_day

SPAN = 2500.0
EXACT = {'stddev': (0.0, 0.0)}


def loads_of(shift: Shift, truck: bool = True, **settings: float) -> tuple[list[Load], Detector]:
    """Loads of a shift; ``truck``: the place of each is where the next one goes, too."""
    detector, found = Detector(NAMES, SPAN, ScaleSettings(**settings)), []
    for reading in shift.readings():
        for load in detector.process(reading):
            found.append(load)
            if truck and load.counts:
                detector.truck = load.dropped
    return found, detector


def test_three_loads_with_places_and_intervals() -> None:
    shift = Shift([Bucket(600.0), Bucket(1100.0), Bucket(1700.0)])
    loads, detector = loads_of(shift)
    assert [load.status for load in loads] == [WEIGHED] * 3 and not detector.carrying
    for load, bucket in zip(loads, shift.buckets):
        lower, upper = load.mass.interval
        assert lower < bucket.mass < upper and load.start_ns < load.end_ns
        assert load.taken.swing == pytest.approx(0.0, abs=0.1) and load.dropped.swing == pytest.approx(TRUCK, abs=0.1)
        assert load.mass.stddev == pytest.approx(hypot(0.01 * bucket.mass, 8.0), rel=0.35)
        assert load.mass.common['friction'] / load.mass.common['offset'] == pytest.approx(bucket.mass * 0.01 / 8.0)


@pytest.mark.parametrize('bucket, delivered, most', [
    (Bucket(1100.0, spilt=200.0), 900.0, 1100.0),
    (Bucket(1100.0, shaken=True), 1100.0, 1100.0),
    (Bucket(1100.0, spilt=300.0, shaken=True), 800.0, 1100.0)])
def test_what_is_spilt_is_not_delivered_and_what_is_shaken_off_is(bucket: Bucket, delivered: float, most: float
                                                                  ) -> None:
    loads, _ = loads_of(Shift([Bucket(800.0), bucket, Bucket(900.0)], **EXACT))
    assert [load.mass.value for load in loads] == pytest.approx([800.0, delivered, 900.0], abs=15.0)
    assert loads[1].most == pytest.approx(most, abs=15.0)


def test_what_is_lost_shortly_after_a_drop_belongs_to_it() -> None:
    """Estimates lag behind: the last 200 kg seem to be there for 1.5 s, 3 m away from the truck; for 4 s they are."""
    for seconds, delivered in ((1.6, 1000.0), (4.0, 800.0)):
        shown = [*constant(3.0, 0.0), *constant(3.0, 1000.0, begin=3.0), *constant(seconds, 200.0, begin=7.0)]
        shown = [replace(r, place=Place(5.0, 3.0 * (r.stamp_ns >= 7e9), 1.0)) for r in shown]
        shown += [replace(r, place=Place(5.0, 6.0, 1.0)) for r in constant(2.0, 0.0, begin=12.0)]
        detector = Detector(NAMES, SPAN)
        detector.truck = Place(5.0, 0.0, 1.0)
        load, = [load for reading in shown for load in detector.process(reading)]
        assert load.mass.value == pytest.approx(delivered, abs=1.0) and load.dropped == Place(5.0, 0.0, 1.0)


def test_where_a_load_is_after_its_drop_does_not_count() -> None:
    """An aborted dig whose end is only seen when the machine has swung away already."""
    shift = list(Shift([Bucket(700.0, aborted=True)], **EXACT).readings())
    changing = next(k for k, r in enumerate(shift) if r.known and r.mass > 500.0 and not shift[k + 1].known)
    gone = [replace(r, mass=float('nan'), status=PayloadStatus.NO_DATA, place=Place(0.0, 7.0, 1.0, TRUCK))
            for r in shift[changing + 1:]]
    back = [replace(r, stamp_ns=gone[-1].stamp_ns + (k + 1) * 10 ** 8) for k, r in enumerate(shift[:30])]
    detector = Detector(NAMES, SPAN)
    assert [load.status for part in (shift[:changing + 1], gone, back) for reading in part
            for load in detector.process(reading)] == [PUT_BACK]


def test_an_aborted_dig_is_no_load() -> None:
    loads, _ = loads_of(Shift([Bucket(800.0), Bucket(700.0, aborted=True), Bucket(900.0)], **EXACT))
    assert [(load.status, load.counts) for load in loads] == [(WEIGHED, True), (PUT_BACK, False), (WEIGHED, True)]
    loads, _ = loads_of(Shift([Bucket(700.0, aborted=True)], **EXACT), least_travel=0.0)
    assert [load.status for load in loads] == [WEIGHED]


def test_a_bucket_that_is_only_tipped_gives_the_truck_a_part() -> None:
    """The rest goes back to the heap; only where the truck is known can that be told from a spill."""
    shift = Shift([Bucket(800.0), Bucket(1200.0, tipped=500.0), Bucket(900.0)], **EXACT)
    loads, _ = loads_of(shift)
    assert [load.mass.value for load in loads] == pytest.approx([800.0, 500.0, 900.0], abs=15.0)
    assert loads[1].dropped.swing == pytest.approx(TRUCK, abs=0.1)
    loads, _ = loads_of(shift, truck=False)
    assert loads[1].mass.value == pytest.approx(700.0, abs=15.0)


def test_a_mass_that_has_begun_to_change_is_left_out() -> None:
    """Without the guard the last part of the load, which falls already, would pull the mass down."""
    buckets = [Bucket(1500.0)] * 10
    guarded = combined((1.0, load.mass) for load in loads_of(Shift(buckets, **EXACT))[0]).value
    plain = combined((1.0, load.mass) for load in loads_of(Shift(buckets, **EXACT), guard=0.0)[0]).value
    assert abs(guarded - 15000.0) < abs(plain - 15000.0) and guarded == pytest.approx(15000.0, rel=3e-3)


def test_what_sticks_to_the_bucket() -> None:
    """50 kg stay each time: with carry_back what the truck gets, without it too much by as much."""
    shift = Shift([Bucket(1000.0, stuck=50.0)] * 6, **EXACT)
    taken, _ = loads_of(shift, carry_back=True)
    assert sum(load.mass.value for load in taken[1:]) == pytest.approx(5000.0, rel=0.01)
    plain, _ = loads_of(shift)
    assert sum(load.mass.value for load in plain[1:]) == pytest.approx(5250.0, rel=0.01)


def test_the_empty_bucket_takes_off_what_is_wrong_in_both() -> None:
    """An offset that is the same in the empty bucket and in the load is gone, with its share of the interval."""
    shift = Shift([Bucket(1000.0)] * 3, stddev=(0.0, 40.0), drawn=np.array([0.0, 2.0]))
    plain, taken = loads_of(shift)[0], loads_of(shift, carry_back=True)[0]
    assert [load.mass.value for load in plain] == pytest.approx([1080.0] * 3, abs=15.0)
    assert [load.mass.value for load in taken[1:]] == pytest.approx([1000.0] * 2, abs=15.0)
    assert taken[1].mass.stddev < 0.4 * plain[1].mass.stddev


def test_many_estimates_of_a_load_are_no_more_certain_than_one() -> None:
    """Ten times as many instants with the same errors: what is common stays."""
    short, long = (loads_of(Shift([Bucket(1000.0)], rate=rate))[0][0].mass for rate in (5.0, 50.0))
    assert sqrt(sum(v * v for v in long.common.values())) == pytest.approx(hypot(10.0, 8.0), rel=0.1)
    assert long.stddev > 0.9 * hypot(10.0, 8.0) and long.own < short.own


def test_without_information_all_is_common() -> None:
    """An observer of the motion alone: nothing says what of the deviation is noise."""
    readings = [replace(r, information=0.0, slopes=np.zeros(0)) for r in Shift([Bucket(1000.0)] * 4).readings()]
    detector = Detector(NAMES, SPAN)
    masses = [load.mass for reading in readings for load in detector.process(reading)]
    assert len(masses) == 4 and all(set(mass.common) == {''} for mass in masses)
    assert combined((1.0, mass) for mass in masses).stddev > 0.95 * sum(abs(mass.common['']) for mass in masses)


def test_a_load_that_falls_at_the_end_of_a_log_is_not_carried_any_more() -> None:
    """The log ends before a new mass is known: most of the load is surely gone, or it may still hang there. One that
    was never carried far is put back."""
    readings = list(Shift([Bucket(1000.0)]).readings())
    full = [reading for reading in readings if reading.mass > 900.0][-1]
    everywhere = ScaleSettings(dump_radius=20.0, least_travel=20.0)
    for stddev, status, settings in ((150.0, WEIGHED, ScaleSettings()), (150.0, PUT_BACK, everywhere),
                                     (600.0, CARRIED, everywhere)):
        detector = Detector(NAMES, SPAN, settings)
        for reading in readings:
            if reading.stamp_ns <= full.stamp_ns:
                detector.process(reading)
        detector.process(replace(full, stamp_ns=full.stamp_ns + 100_000_000, mass=50.0, stddev=stddev,
                                 status=PayloadStatus.CHANGING))
        load = detector.end()
        assert load is not None and load.status == status and (load.dropped is None) == (status == CARRIED)


def test_a_load_that_surely_is_gone_without_a_new_mass() -> None:
    """The machine rests at once: the stage only knows that the load changes, and the next load is one of its own."""
    one, two = list(Shift([Bucket(1000.0)]).readings()), list(Shift([Bucket(1000.0)] * 2).readings())
    full = [r for r in one if r.mass > 900.0][-1]
    detector = Detector(NAMES, SPAN)
    loads = [load for reading in one if reading.stamp_ns <= full.stamp_ns for load in detector.process(reading)]
    assert not loads and detector.carrying
    stamp, found = full.stamp_ns, []
    for _ in range(30):
        stamp += 100_000_000
        loads += detector.process(replace(full, stamp_ns=stamp, mass=50.0, stddev=150.0,
                                          status=PayloadStatus.CHANGING))
        found.append(len(loads))
    assert found.index(1) in (14, 15)       # 1.5 s
    assert [load.status for load in loads] == [WEIGHED] and not detector.carrying
    for reading in two[40:]:
        loads += detector.process(replace(reading, stamp_ns=stamp + reading.stamp_ns - two[39].stamp_ns))
    assert [load.mass.value for load in loads] == pytest.approx([1000.0] * 3, rel=0.05)


def constant(seconds: float, mass: float, status: PayloadStatus = PayloadStatus.UPDATING, begin: float = 0.0,
             stddev: float = 10.0) -> list[Reading]:
    return [Reading(round((begin + 0.1 * k) * 1e9), mass, stddev, status, Place(5.0, 0.0, 1.0))
            for k in range(round(10 * seconds))]


def test_a_short_mass_is_no_level_and_a_small_one_no_load() -> None:
    for readings, carrying in ((constant(0.4, 900.0), False), (constant(0.8, 900.0), True),
                               (constant(5.0, 70.0), False), (constant(5.0, 80.0), True),
                               (constant(5.0, 80.0, stddev=90.0), False)):
        detector = Detector(NAMES, SPAN)
        for reading in readings:
            assert detector.process(reading) == []
        assert detector.carrying is carrying


def test_a_load_at_the_start_and_one_at_the_end_of_a_log() -> None:
    readings = list(Shift([Bucket(1000.0)] * 2).readings())
    known = [k for k, r in enumerate(readings) if r.known and r.mass > 900.0]
    gap = next(k for k in known if k + 1 not in known and readings[k].place.swing > 1.0)
    detector = Detector(NAMES, SPAN)
    loads = [load for reading in readings[known[0]:] for load in detector.process(reading)]
    assert [load.status for load in loads] == [WEIGHED, WEIGHED]
    detector = Detector(NAMES, SPAN)
    for reading in readings[:gap]:
        detector.process(reading)
    load = detector.end()
    assert load.status == CARRIED and load.counts and load.mass.value == pytest.approx(1000.0, rel=0.05)
    assert detector.end() is None       # once


def test_a_load_that_is_first_seen_at_the_truck_was_not_put_back() -> None:
    """After a restart it has hardly moved before its drop, and counts."""
    readings = list(Shift([Bucket(1000.0)] * 2).readings())
    first = next(k for k, r in enumerate(readings) if r.known and r.mass > 900.0 and r.place.swing > TRUCK - 0.2)
    detector = Detector(NAMES, SPAN)
    one, two = (load for reading in readings[first:] for load in detector.process(reading))
    assert (one.status, one.taken, two.status) == (WEIGHED, None, WEIGHED) and two.taken is not None
    assert one.dropped.swing == pytest.approx(TRUCK, abs=0.1)


def test_the_operator_counts_a_load_and_its_end_counts_no_more() -> None:
    detector, loads, done = Detector(NAMES, SPAN), [], None
    for reading in Shift([Bucket(1000.0)] * 2).readings():
        loads += detector.process(reading)
        if done is None and detector.carrying and reading.place.swing > 1.0:
            done = detector.count_now()
            assert detector.counted and detector.count_now() is None
    assert done.mass.value == pytest.approx(1000.0, rel=0.05)
    assert [load.status for load in loads] == [COUNTED, WEIGHED]


@pytest.mark.parametrize('before, status', [(1000.0, COUNTED), (600.0, WEIGHED), (None, WEIGHED)])
def test_a_load_that_was_counted_before_a_restart(before: float | None, status: str) -> None:
    """It hangs there still; another mass is another load."""
    readings = list(Shift([Bucket(1000.0)]).readings())
    first = next(k for k, r in enumerate(readings) if r.known and r.mass > 900.0)
    detector = Detector(NAMES, SPAN)
    detector.counted_before = before
    loads = [load for reading in readings[first:] for load in detector.process(reading)]
    assert [load.status for load in loads] == [status]


def test_a_clock_that_goes_back_counts_nothing_twice() -> None:
    """A bag played in a loop: what was carried when it ended is not there any more."""
    readings = list(Shift([Bucket(1000.0)] * 2).readings())
    known = next(k for k, r in enumerate(readings) if r.known and r.mass > 900.0)
    detector = Detector(NAMES, SPAN)
    loads = [load for part in (readings, readings[:known + 30], readings) for reading in part
             for load in detector.process(reading)]
    assert [load.status for load in loads] == [WEIGHED] * 4


def test_a_whole_day() -> None:
    """300 loads of three types with spills, aborted digs and shakes: each once, the total within 0.5 %."""
    shift = Shift(working_day(300), stddev=(0.002, 2.0), rate=5.0, seed=3)
    loads, _ = loads_of(shift)
    assert sum(load.counts for load in loads) == 300
    assert sum(load.status == PUT_BACK for load in loads) == sum(bucket.aborted for bucket in shift.buckets) == 8
    found = combined((1.0, load.mass) for load in loads if load.counts)
    lower, upper = found.interval
    assert lower < shift.delivered < upper and found.value == pytest.approx(shift.delivered, rel=5e-3)
    stamps = np.array(shift.at)
    for load in loads:      # each within its own cycle
        assert np.searchsorted(stamps, load.start_ns, 'right') <= np.searchsorted(stamps, load.end_ns)


def test_sums_of_uncertain_masses() -> None:
    a, b = UncertainMass(10.0, 3.0, {'x': 4.0, 'y': 1.0}), UncertainMass(20.0, 4.0, {'x': -4.0})
    both, apart = a + b, a - b
    assert both.value == 30.0 and both.own == 5.0 and both.stddev == pytest.approx(hypot(5.0, 1.0))
    assert apart.value == -10.0 and apart.stddev == pytest.approx(sqrt(25.0 + 64.0 + 1.0))
    vague = UncertainMass(1.0, 0.0, {'': 2.0, 'x': 3.0})
    assert vague.stddev == 5.0 and (vague + vague).stddev == 10.0
    assert np.diff(vague.interval) == pytest.approx(2 * 1.959964 * 5.0)


def test_digging_again_ends_a_load_that_was_put_back_unseen() -> None:
    """The rest of a tipped bucket goes back while nothing moves, and the next one is dug: two loads."""
    shift = Shift([Bucket(800.0), Bucket(1200.0, tipped=500.0), Bucket(900.0), Bucket(300.0)], **EXACT)
    readings = list(shift.readings())
    rest = [k for k, r in enumerate(readings) if r.known and 650.0 < r.mass < 750.0]
    contact = next(k for k in range(rest[-1], len(readings)) if readings[k].status is PayloadStatus.CONTACT)
    unseen = [replace(r, mass=float('nan'), status=PayloadStatus.CHANGING) if rest[-1] < k < contact else r
              for k, r in enumerate(readings)]
    detector, loads = Detector(NAMES, SPAN), []
    for reading in unseen:
        for load in detector.process(reading):
            loads.append(load)
            detector.truck = load.dropped
    assert [load.mass.value for load in loads] == pytest.approx([800.0, 500.0, 900.0, 300.0], abs=20.0)
    two = list(Shift([Bucket(1000.0)], **EXACT).readings())     # a bucket that is filled in two bites is one load
    first = next(k for k, r in enumerate(two) if r.known and r.mass > 900.0)
    bites = [*two[:first], *(replace(r, mass=r.mass - 400.0) for r in two[first:first + 10])]
    bites += [replace(r, mass=float('nan'), status=PayloadStatus.CONTACT) for r in two[first:first + 10]]
    later = 2 * 10 ** 9
    bites = [replace(r, stamp_ns=two[0].stamp_ns + 10 ** 8 * k) for k, r in enumerate(bites)]
    bites += [replace(r, stamp_ns=r.stamp_ns + later) for r in two[first:]]
    detector = Detector(NAMES, SPAN)
    assert [load.mass.value for r in bites for load in detector.process(r)] == pytest.approx([1000.0], abs=20.0)


def test_a_mass_that_is_not_trusted_yet_serves_and_is_marked() -> None:
    readings = [replace(r, status=PayloadStatus.IMPLAUSIBLE, trusted=False) if r.known else r
                for r in Shift([Bucket(1000.0)], **EXACT).readings()]
    for found, trusted in ((readings, False), ([replace(r, status=PayloadStatus.IMPLAUSIBLE) if r.known else r
                                                for r in Shift([Bucket(1000.0)], **EXACT).readings()], None)):
        detector = Detector(NAMES, SPAN)
        loads = [load for reading in found for load in detector.process(reading)]
        assert [load.trusted for load in loads] == ([trusted] if trusted is not None else [])


def test_a_mass_that_settles_while_the_load_changes() -> None:
    """Known to 2 % of the limits and the same for half a second, it is a level; known worse, or as the first mass of
    all, it is none. The load ended before it: the payload stage does not stand for it."""
    for stddev, fault, level in ((40.0, Fault.LOAD_CHANGES, 700.0), (60.0, Fault.LOAD_CHANGES, 1000.0),
                                 (40.0, Fault.FIRST_MASS, 1000.0)):
        detector = Detector(NAMES, SPAN)
        for reading in (*constant(3.0, 1000.0), *constant(1.0, 700.0, PayloadStatus.CHANGING, 3.0, stddev)):
            assert detector.process(replace(reading, faults=fault)) == []
        assert detector.level.value == pytest.approx(level, abs=1.0)
        load, = [load for reading in constant(3.0, 0.0, begin=4.0) for load in detector.process(reading)]
        assert load.most == pytest.approx(1000.0, abs=1.0) and load.mass.value == pytest.approx(1000.0, abs=1.0)
        assert load.end_ns < 3e9 and load.trusted


def test_a_mass_that_was_unknown_for_long_and_is_another_is_another_load() -> None:
    """1000 kg, then for some seconds nothing is known, then 600 kg: a spill, where no machine is so quick; where it is,
    two loads, neither of which reaches over the time between. What still agrees is one load. Known is why."""
    for seconds, after, stddev, masses in ((3.0, 600.0, 10.0, [1000.0]), (6.0, 600.0, 10.0, [1000.0, 600.0]),
                                           (6.0, 960.0, 10.0, [1000.0]), (6.0, 930.0, 40.0, [1000.0]),
                                           (6.0, 930.0, 10.0, [1000.0, 930.0])):
        unknown = [replace(r, faults=Fault.RARE) for r in constant(seconds, 990.0, PayloadStatus.NO_DATA, 3.0)]
        detector, loads = Detector(NAMES, SPAN), []
        for reading in (*constant(3.0, 1000.0), *unknown, *constant(3.0, after, begin=3.0 + seconds, stddev=stddev),
                        *constant(3.0, 0.0, begin=6.0 + seconds)):
            loads += detector.process(reading)
        assert [load.most for load in loads] == pytest.approx(masses, abs=20.0)
        assert loads[0].faults == Fault.RARE and loads[-1].end_ns == pytest.approx(1e9 * (5.9 + seconds))
        if len(loads) == 2:
            first, second = loads
            assert first.end_ns == pytest.approx(2.9e9) and second.start_ns == pytest.approx(1e9 * (3.0 + seconds))
            assert second.taken is None and not second.faults and [load.status for load in loads] == [WEIGHED] * 2


def test_a_load_that_is_first_seen_after_an_unknown_time_begins_there() -> None:
    """An empty machine, a pause of all sensors, and a load: it does not begin before the pause."""
    for pause, begins in ((2.0, 2.9), (6.0, 9.0)):
        detector = Detector(NAMES, SPAN)
        for reading in (*constant(3.0, 0.0), *constant(3.0, 1000.0, begin=3.0 + pause)):
            detector.process(reading)
        assert detector.since_ns == pytest.approx(1e9 * begins) and (detector.carried.taken is None) is (pause > 4.0)


@pytest.mark.parametrize('status, away, taken', [
    (PayloadStatus.NO_DATA, 1.5, True), (PayloadStatus.NO_DATA, 2.5, False), (PayloadStatus.CHANGING, 2.5, True)])
def test_a_load_that_was_taken_while_nothing_was_known(status: PayloadStatus, away: float, taken: bool) -> None:
    """It was taken where its first mass is, unless the machine has moved away by then, unseen."""
    moves = [replace(r, mass=float('nan'), place=Place(5.0, away * k / 20, 1.0))
             for k, r in enumerate(constant(2.0, 0.0, status, 3.0))]
    loaded = [replace(r, place=Place(5.0, away, 1.0)) for r in constant(3.0, 1000.0, begin=5.0)]
    detector = Detector(NAMES, SPAN)
    for reading in (*constant(3.0, 0.0), *moves, *loaded):
        detector.process(reading)
    assert detector.carried.taken == (Place(5.0, away, 1.0) if taken else None)


def test_what_turns_out_to_be_nothing_is_no_load() -> None:
    """A first estimate of 190 kg that goes on to 60 kg, 90 kg uncertain: it neither counts when it is gone nor hangs
    there at the end of a log."""
    sinking = [replace(r, mass=max(60.0, 190.0 - 3.0 * k)) for k, r in enumerate(constant(8.0, 0.0, stddev=90.0))]
    for gone in (True, False):
        detector = Detector(NAMES, SPAN)
        for reading in sinking:
            assert detector.process(reading) == []
        assert detector.carrying
        if gone:
            load, = [load for reading in constant(3.0, -200.0, begin=8.0) for load in detector.process(reading)]
            assert load.status == EMPTY and not load.counts
        else:
            assert detector.end() is None


def test_most_of_a_load_says_where_it_went() -> None:
    """At low rates 100 of 500 kg seem to be in the bucket for 3 s after it has swung back 6 m: the truck got the rest,
    not they."""
    shown = [*constant(3.0, 0.0), *constant(3.0, 500.0, begin=3.0)]
    shown += [replace(r, place=Place(5.0, 6.0, 1.0)) for r in (*constant(3.0, 100.0, begin=7.0),
                                                               *constant(3.0, 0.0, begin=11.0))]
    detector = Detector(NAMES, SPAN)
    load, = [load for reading in shown for load in detector.process(reading)]
    assert load.mass.value == pytest.approx(400.0, abs=1.0) and load.dropped == Place(5.0, 0.0, 1.0)
