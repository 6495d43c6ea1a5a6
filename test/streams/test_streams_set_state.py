# SPDX-License-Identifier: Apache-2.0
"""A state that is set from outside: the observer continues from it, as sure of it as it was said to be."""

from __future__ import annotations

import numpy as np
import pytest
from core_support import crane, feed, work_cycle

from mbse_ros.errors import SettingError
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.streams.records import StateEstimate

COUNT = 150


def after(values: dict[str, float] | None = None, stddev: dict[str, float] | None = None
          ) -> tuple[StateEstimate, StateEstimate, Pipeline]:
    """The state before one is set, and the next one."""
    pipeline, frames = Pipeline(crane()), work_cycle()
    before = feed(pipeline, frames[:COUNT])[-1].state
    if values is not None:
        pipeline.observer.set_state(values, stddev or {})
    return before, feed(pipeline, frames[COUNT:COUNT + 1])[-1].state, pipeline


def test_the_next_state_is_between_what_was_set_and_the_sample_by_their_deviations() -> None:
    """One sample, 10 ms later, against a value that is wrong by 1 mm: the weighted mean of both (Gauss)."""
    before, plain, pipeline = after()
    place, wrong = float(plain.mean[-1, 0]), 0.001
    sensor = pipeline.observer._observer._variance[0] ** 0.5
    at, speed, found = float(before.mean[-1, 0]), float(before.mean[-1, 1]), []
    for size in (sensor / 10, sensor, sensor * 30):
        _, state, _ = after({'position/lift': at + wrong, 'velocity/lift': speed},
                            {'position/lift': size, 'velocity/lift': 1e-4})
        share = size ** 2 / (size ** 2 + sensor ** 2)
        found.append(state.mean[-1, 0] - place)
        rest = (1 - share) * wrong + share * (float(state.measured[0]) - place)
        assert abs(found[-1] - rest) < 0.1 * wrong, (size, found, rest)
    assert found[0] > 0.9 * wrong > 0.5 * wrong > abs(found[-1])


def test_its_own_state_changes_nothing_but_what_it_knew_of_other_entries() -> None:
    before, plain, _ = after()
    names = [name for name in before.names if name.split('/')[0] in ('position', 'velocity', 'pressure')]
    places = [before.names.index(name) for name in names]
    own = {name: float(before.mean[-1, k]) for name, k in zip(names, places)}
    sure = {name: float(np.sqrt(before.covariance[k, k])) for name, k in zip(names, places)}
    _, state, pipeline = after(own, sure)
    allowed = 4 * np.sqrt(np.diag(plain.covariance))[places]
    assert (np.abs(state.mean[-1] - plain.mean[-1])[places] < allowed).all()
    assert state.sequence == plain.sequence and not state.restart


@pytest.mark.parametrize('values, stddev, text', [
    ({'position/boom': 0.1}, {}, 'position/lift'), ({'velocity/lift': 0.1}, {}, 'position/lift is missing'),
    ({'position/lift': 9.0}, {}, 'from 0 to'), ({'position/lift': np.nan}, {}, 'finite'),
    ({'position/lift': 0.2, 'pressure/lift_rod': -1.0}, {}, 'from 0 Pa'),
    ({'position/lift': 0.2}, {'position/lift': 0.0}, 'above 0'),
    ({'position/lift': 0.2}, {'velocity/lift': 0.1}, 'deviations of values'),
    ({'position/lift': 0.2, 'acceleration/lift': 0.0}, {}, 'of position/lift')])
def test_what_cannot_be_is_refused_and_changes_nothing(values: dict[str, float], stddev: dict[str, float], text: str
                                                       ) -> None:
    pipeline, frames = Pipeline(crane()), work_cycle()
    feed(pipeline, frames[:COUNT])
    with pytest.raises(SettingError, match=text):
        pipeline.observer.set_state(values, stddev)
    found = feed(pipeline, frames[COUNT:COUNT + 1])[-1].state
    np.testing.assert_array_equal(found.mean, after()[1].mean)
