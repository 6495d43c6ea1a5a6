# SPDX-License-Identifier: Apache-2.0
"""A running filter: steps from any state, on from its own, and the parts of the state that it keeps."""

from __future__ import annotations

import numpy as np
import pytest
from linear_mechanism import linear_model

from mbse_ros.compiled.of_scipy import NEVER
from mbse_ros.errors import SettingError
from mbse_ros.filters.filters import noises_of
from mbse_ros.filters.observer import LinkageObserver, tuning_of

SENSORS = 'place', 'speed'
ROWS = np.column_stack([np.linspace(0.3, 0.4, 8), np.full(8, 0.1), np.zeros(8), 0.01 * np.arange(8)])


def started(history: bool = False, states: bool = False) -> LinkageObserver:
    observer = LinkageObserver(linear_model(), 'DEKF', SENSORS, {'acceleration': 1.0}, history=history, states=states)
    observer.start(stddev=0.2)
    return observer


def test_steps_leave_the_state_and_advance_goes_on_from_it() -> None:
    observer = started()
    start = observer.state.copy()
    after, outputs, kept = observer.steps(start, ROWS, observer.tuning)
    np.testing.assert_array_equal(observer.state, start)
    assert kept.shape == (8, 0)
    halves = [observer.advance(rows)[0] for rows in (ROWS[:3], ROWS[3:])]
    np.testing.assert_array_equal(np.vstack(halves), outputs)
    np.testing.assert_array_equal(observer.state, after)


def test_what_is_kept_are_the_states_from_which_the_steps_go_on() -> None:
    observer = started(states=True)
    after, outputs, states = observer.steps(observer.state, ROWS, observer.tuning)
    np.testing.assert_array_equal(states[-1], after)
    np.testing.assert_array_equal(observer.steps(states[2], ROWS[3:], observer.tuning)[1], outputs[3:])
    history = started(history=True)
    covariances = history.kept.arrays(history.advance(ROWS)[1])['P']
    np.testing.assert_array_equal(covariances, [observer.covariance(state) for state in states])


def test_a_row_of_outputs_is_seen_by_its_parts() -> None:
    observer = started()
    y = observer.advance(ROWS)[0][4]
    parts = observer.outputs(y)
    for name, part in observer.filter.outputs.arrays(y).items():
        np.testing.assert_array_equal(parts[name], part)
        assert np.shares_memory(parts[name], y) or not part.size


def test_noises_without_a_default_are_zero_and_options_are_checked_by_name() -> None:
    biased = LinkageObserver(linear_model(), 'errorEKF_FE', SENSORS, biases=('speed',))
    assert noises_of(biased.filter)['bias_walk'] == 0.0 and np.all(noises_of(biased.filter)['acceleration'])
    np.testing.assert_array_equal(biased.filter.tuning.arrays(biased.tuning)['bias_walk'], 0.0)
    with pytest.raises(SettingError, match=r"options: got 'transition=best,worst.*options of DEKF"):
        LinkageObserver(linear_model(), 'DEKF', SENSORS, transition=('best', 'worst'))


@pytest.mark.parametrize('wrong, expected', [([1.0, 2.0], r'noises: acceleration: got \[1.0, 2.0\], expected 1 or 1 v'),
                                             ([[1.0]], '1 or 1 values'), (-1.0, r'acceleration: got \[-1.0\]'),
                                             ([], '1 or 1 values'), (np.nan, 'numbers from 0 up')])
def test_noises_of_another_size_or_sign_are_refused(wrong: object, expected: str) -> None:
    with pytest.raises(SettingError, match=expected):
        LinkageObserver(linear_model(), 'DEKF', SENSORS, {'acceleration': wrong})


def test_of_a_gate_that_is_open_no_innovation_is_too_large() -> None:
    observer = started()
    assert tuning_of(observer.filter, {'acceleration': 1.0}, 1.0, observer.stddev, 0.01).threshold == NEVER
    # of a standard normal 95 % are within 1.96
    assert tuning_of(observer.filter, {'acceleration': 1.0}, 0.95, observer.stddev, 0.01).threshold == pytest.approx(
        1.959964 ** 2, rel=1e-6)
