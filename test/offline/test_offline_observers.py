# SPDX-License-Identifier: Apache-2.0
"""Processes that observe: in order, bounded, errors with their type, and no waiting for one that is dead. Records
come out of a parcel as they went in, with arrays of their own."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields, replace

import numpy as np
import pytest

from mbse_ros.errors import MbseError, SampleError
from mbse_ros.estimators.observer_settings import ObserverSettings
from mbse_ros.machine import Machine, load_machine
from mbse_ros.offline.observers import Observers, observed, packed, unpacked
from mbse_ros.simulation.crane import SimulatedCrane
from mbse_ros.streams.interpolation import Interpolator
from mbse_ros.streams.records import ObserverStatus, Segment, StateEstimate


@pytest.fixture(scope='module')
def machine() -> Machine:
    return load_machine('patu655_lift')


@pytest.fixture(scope='module')
def segments(machine: Machine) -> list[Segment]:
    """Ninety-odd segments of ten steps; every twentieth starts again."""
    interpolator, found = Interpolator(machine.channels, machine.commands), []
    for frame in SimulatedCrane(machine).advance(1_000_000_000):
        for name, value in {**frame.samples, **frame.commands}.items():
            found += interpolator.add(name, frame.stamp_ns, value)
    return [replace(segment, restart=k % 20 == 0) for k, segment in enumerate(found)]


def observers_of(machine: Machine, count: int = 2) -> Observers:
    return Observers(machine, ObserverSettings(), 'auto', count)


def test_in_order_and_no_more_than_may_wait(machine: Machine, segments: list[Segment]) -> None:
    made: list[int] = []

    def blocks() -> Iterator[list[Segment]]:
        for first in range(0, len(segments), 7):
            made.append(min(first + 7, len(segments)))
            yield segments[first:first + 7]
    taken = 0
    with closing(observers_of(machine)) as observers:
        for found in observed(blocks(), observers, 300):
            for segment, state in found:
                assert segment is segments[taken] and state.sequence == segment.sequence
                taken += 1
            assert made[-1] - taken <= 30 + 7
    assert taken == len(segments) > 80


def test_an_error_comes_with_its_type_after_what_was_before(machine: Machine, segments: list[Segment]) -> None:
    wrong = replace(segments[50], channels=('position/other',))
    with closing(observers_of(machine)) as observers:
        for given in (segments[:50], [wrong], segments[51:]):
            observers.give(given)
        count = 0
        with pytest.raises(SampleError, match='position/other') as caught:
            while True:
                count += len(observers.take())
        assert count == 50 and caught.value.channel == 'segment'
    assert not multiprocessing.active_children()


def test_a_killed_process_is_an_error(machine: Machine, segments: list[Segment]) -> None:
    with closing(observers_of(machine)) as observers:
        observers.give(segments[:20])
        assert len(observers.take()) == 20
        for child in multiprocessing.active_children():
            child.kill()
            child.join()
        with pytest.raises(MbseError, match='ended with code -9'):
            observers.give(segments[20:])
            observers.take()


def test_a_machine_of_another_kind_is_refused() -> None:
    class Own(Machine):
        pass
    with pytest.raises(OSError, match='made again'):
        observers_of(load_machine('patu655_lift', make=Own))
    assert not multiprocessing.active_children()


def parts() -> list[Segment]:
    """Two with arrays of several kinds and shapes."""
    values = np.arange(60.0).reshape(12, 5)
    values[3, 2] = np.nan
    first = Segment(7, 10 ** 18 + 1, 10 ** 6, True, ('a', 'b'), values[:4, :2], np.array([10.0, 2.5]), ('u',),
                    values[:4, 4:])
    return [first, replace(first, restart=False, values=values[4:5, 1:3], command_values=np.zeros((1, 0)), commands=())]


def state(status: ObserverStatus, reason: str) -> StateEstimate:
    return StateEstimate(1, 2, 3, False, ('x', 'y'), np.ones((4, 2)), np.eye(2).T, ('a',), np.array([np.nan]),
                         np.array([-0.0]), np.array([5e-324]), 0.1 + 0.2, 1, status, reason)


def assert_same(found: list, given: list) -> None:
    assert len(found) == len(given)
    for one, other in zip(found, given):
        assert type(one) is type(other)
        for field in fields(other):
            a, b = getattr(one, field.name), getattr(other, field.name)
            if isinstance(b, np.ndarray):
                assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes(), field.name
            else:
                assert a == b and type(a) is type(b), field.name


def test_what_goes_in_comes_out() -> None:
    given = parts()
    assert_same(unpacked(packed(given)), given)
    states = [state(ObserverStatus.OK, ''), state(ObserverStatus.LOST, 'nothing is measured: ä')]
    assert_same(unpacked(packed(states)), states)
    assert unpacked(packed([])) == []


def test_other_numbers_than_float64_are_pickled() -> None:
    given = [replace(parts()[0], repeats=np.array([1, 2]), values=np.ones((2, 2), np.float32))]
    assert_same(unpacked(packed(given)), given)


def test_arrays_are_the_receivers_own() -> None:
    """Else one number that is kept would keep the memory of all that came with it."""
    found = unpacked(packed(parts()))
    found[0].values[:] = 0.0
    assert found[1].values.tolist() == parts()[1].values.tolist()
    for array in (found[0].values, found[0].repeats):
        owner = array if array.base is None else array.base
        assert owner.nbytes == array.nbytes
