# SPDX-License-Identifier: Apache-2.0
"""Samples in rows, interpolated many rows at a time: the same segments, bit for bit, as one by one, whatever comes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams_samples import BASE, INPUTS, MS, Sample, rows, same

from mbse_ros.errors import SampleError
from mbse_ros.monitor.clocks import Clocks
from mbse_ros.streams.interpolation import InterpolationSettings, Interpolator
from mbse_ros.streams.pipeline import Merger
from mbse_ros.streams.records import Segment
from mbse_ros.streams.regular import FEWEST, SegmentBlock, regular_rows

CHANNELS, COMMANDS = ['a', 'b', 'c'], ['d', 'e']
NAMES = CHANNELS + COMMANDS
TUNING = [{}, {'step': 0.0007}, {'command_wait': 0.0}, {'command_wait': 0.012}, {'lost_after': 0.03},
          {'max_gap': 0.012, 'step': 0.002}, {'delay': 0.02}, {'step': 0.0013}]
EVENTS = ['nothing', 'nothing', 'period', 'gap', 'hole', 'repeat', 'back', 'late', 'lost sample', 'lost row', 'nan',
          'infinite', 'command nan', 'order', 'silent', 'half rate', 'rare command', 'apart', 'huge', 'hole of one']


def log_of(events: list[tuple[str, int, int]], seed: int) -> list[Sample]:
    """Samples of rows, after each event some more of them: (event, a number for it, rows)."""
    random, samples, order = np.random.default_rng(seed), [], list(NAMES)
    clock, period, late = BASE, 10 * MS, None
    skip: dict[str, int] = {}       # one sample of so many is there
    apart: dict[str, int] = {}
    for event, number, count in events:
        who, once = NAMES[number % len(NAMES)], set()
        special: dict[str, float] = {}
        if event == 'period':
            period = [10 * MS, 5 * MS, 2 * MS, 7 * MS + 123_457, 30 * MS, MS // 2][number % 6]
        elif event in ('gap', 'hole', 'back'):
            clock += {'gap': 60 * MS, 'hole': 700 * MS, 'back': -[3 * MS, 400 * MS, 3000 * MS][number % 3]}[event]
        elif event == 'repeat':
            samples += samples[-(1 + number % 7):]
        elif event == 'late':
            late = who
        elif event in ('lost sample', 'lost row'):
            once = {who} if event == 'lost sample' else set(NAMES)
        elif event in ('nan', 'infinite', 'command nan', 'huge'):
            special = {'nan': {'b': np.nan}, 'infinite': {who: np.inf}, 'command nan': {'d': np.nan},
                       'huge': {'a': 1e300}}[event]
        elif event == 'order':
            random.shuffle(order)
        elif event in ('silent', 'half rate', 'rare command'):
            skip = {who: 1 << 30} if event == 'silent' else {'c': 2} if event == 'half rate' else {'e': 2 + number % 5}
        elif event == 'apart':
            apart = {who: [900 * MS, -900 * MS, 1][number % 3]}
        elif event == 'hole of one':
            skip = {who: 9}
        for k in range(count):
            for name in order:
                if k and k % skip.get(name, 1) or not k and name in once or not k and name == late:
                    continue
                value = special.get(name, float(random.normal())) if not k else float(random.normal())
                samples.append((name, clock + apart.get(name, 0), value))
                if k == 1 and late is not None:
                    samples.append((late, clock - period, 0.5))
                    late = None
            clock += period + (int(random.integers(-3, 4)) if number % 4 == 3 else 0)
        if number % 3 == 0:
            skip, apart = {}, {}
    return samples


def one_by_one(interpolator: Interpolator, samples: list[Sample]) -> tuple[list[Segment], list[str]]:
    found, refused = [], []
    for sample in samples:
        try:
            found += interpolator.add(*sample)
        except SampleError as error:
            refused.append(str(error))
    return found, refused


def in_blocks(interpolator: Interpolator, samples: list[Sample], names: list[str], sizes: list[int]
              ) -> tuple[list[Segment | SegmentBlock], list[str]]:
    found, refused, first = [], [], 0

    def take_refused(text: str, sample: Sample) -> None:
        if not interpolator.settings.delay:     # else it may be one that waited
            assert text.startswith(f'{sample[0]} at {sample[1]} ns')
        refused.append(text)
    while first < len(samples):
        size = sizes[first % len(sizes)]
        part = samples[first:first + size]
        found += interpolator.add_block(names, np.array([names.index(name) for name, _, _ in part], dtype=np.int32),
                                        np.array([stamp for _, stamp, _ in part], dtype=np.int64),
                                        np.array([value for _, _, value in part]),
                                        lambda error, row: take_refused(str(error), part[row]))
        first += size
    return found, refused


def spread(found: list[Segment | SegmentBlock]) -> list[Segment]:
    return [segment for item in found for segment in (item.segments() if isinstance(item, SegmentBlock) else [item])]


def memory(interpolator: Interpolator) -> list[Any]:
    """All that what comes next depends on."""
    grid = interpolator._grid
    return [grid.cursor, grid.sequence, grid.restart, grid.blocker.name, grid.deadline if grid.blocker.held else None,
            [sensor.name for sensor in grid.live],
            [(b.name, b.stamps, repr(b.values), b.newest, b.seen, b.lost, b.suspect, b.interval, b.since, b.share)
             for b in grid.sensors + grid.held]]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 60), st.integers(1, 60)), min_size=2, max_size=9),
       st.integers(0, 2 ** 20), st.sampled_from(TUNING), st.lists(st.integers(1, 900), min_size=1, max_size=3))
def test_whatever_comes_the_same_as_one_by_one(events: list[tuple[str, int, int]], seed: int, tuning: dict[str, float],
                                               sizes: list[int]) -> None:
    samples = log_of([('nothing', 0, 12), *events], seed)
    one, many = (Interpolator(CHANNELS, COMMANDS, InterpolationSettings(**tuning)) for _ in range(2))
    expected, refused = one_by_one(one, samples)
    found, again = in_blocks(many, samples, NAMES, sizes)
    assert again == refused and same(spread(found), expected)
    assert (many.dropped, many.waiting_for, many.clocks.words) == (one.dropped, one.waiting_for, one.clocks.words)
    assert (many.clocks._newest, many.clocks._suspects) == (one.clocks._newest, one.clocks._suspects)
    assert memory(many) == memory(one)
    merged, singly = Merger(35 * MS), Merger(35 * MS)
    joined = [s for item in found for s in (merged.add_block(item) if isinstance(item, SegmentBlock)
                                            else merged.add(item))]
    assert same([*joined, *merged.flush()], [s for item in expected for s in singly.add(item)] + [*singly.flush()])


@pytest.mark.parametrize('period', [10, 7])
def test_a_regular_log_is_done_in_arrays(period: int) -> None:
    """All but what comes before it is regular, in each block; also where the stamps are not on the grid."""
    samples = rows(0, 4000, period=period)
    if period == 7:
        samples = [(name, stamp + 211 * (stamp - BASE) // MS, value) for name, stamp, value in samples]
    one, many = (Interpolator(INPUTS[:3], INPUTS[3:]) for _ in range(2))
    found, _ = in_blocks(many, samples, list(INPUTS), [601])
    assert same(spread(found), one_by_one(one, samples)[0])
    assert sum(isinstance(item, Segment) for item in found) < 0.05 * len(spread(found))


def test_rows_end_where_something_else_comes() -> None:
    """Twenty rows of two inputs: what breaks row 10 ends a stretch there."""
    def found(**changed: Any) -> list[tuple[int, int]]:
        places, stamps, values = np.tile([1, 0], 20), np.repeat(np.arange(20) * 10, 2), np.ones(40)
        for name, value in changed.items():
            {'places': places, 'stamps': stamps, 'values': values}[name][20] = value
        return regular_rows(places, stamps, values, 2, 5, 12)
    assert found() == [(0, 40)] == found(values=-5.0)
    for broken in ({'values': np.nan}, {'values': np.inf}, {'places': 0}, {'stamps': 101}):
        assert found(**broken) == [(0, 20), (22, 40)]
    stamps = np.repeat(np.arange(20) * 10, 2)
    stamps[20:] += 3
    assert regular_rows(np.tile([1, 0], 20), stamps, np.ones(40), 2, 5, 12) == [(0, 20), (20, 40)]
    places = np.tile([1, 0], 20)
    places[20:] = np.tile([0, 1], 10)
    assert regular_rows(places, np.repeat(np.arange(20) * 10, 2), np.ones(40), 2, 5, 12) == [(0, 20), (20, 40)]
    assert regular_rows(places[:2 * FEWEST - 1], stamps[:2 * FEWEST - 1], np.ones(2 * FEWEST - 1), 2, 5, 12) == []


def test_clocks_of_rows() -> None:
    """A clock that was apart is forgotten with the first look at it, as sample by sample."""
    one, many = Clocks(), Clocks()
    for clocks in (one, many):
        for k in range(200):
            for name in 'abc':
                clocks.take(name, k * 10 * MS + (2000 * MS if name == 'b' else 0))
    assert many.apart
    stamps = [2200 * MS + 10 * MS * k for k in range(90)]
    for stamp in stamps:
        for name in 'abc':
            one.take(name, stamp)
    many.take_rows('abc', stamps)
    assert vars(one) == vars(many) and not one.apart
