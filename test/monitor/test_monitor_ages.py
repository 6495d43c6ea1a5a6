# SPDX-License-Identifier: Apache-2.0
"""How old samples are when they come: from when on a channel differs, and how much must have come to say so."""

import numpy as np
import pytest

from mbse_ros.monitor.clocks import Ages

MS, PERIOD = 1_000_000, 10_000_000
NAMES = 'a', 'b', 'c'


def streamed(count, offset=0.2, later=0.2, change=10 ** 9):
    """Live samples of three channels, of which the last one's come by so many s later; other from a sample on."""
    ages = Ages(stream=True)
    for k in range(count):
        name, stamp = NAMES[k % 3], k // 3 * PERIOD
        late = (offset if k < change else later) if name == 'c' else 0.0
        ages.take(name, stamp, stamp + 5 * MS + int(1e9 * late))
    return ages


def logged(*common, offset=0.0):
    """Blocks of 90 samples of a bag, whose age is so many s, and the last channel's more."""
    ages, places, stamps = Ages(), np.arange(90) % 3, np.arange(90) // 3 * PERIOD
    for age in common:
        ages.take_block(NAMES, places, stamps, stamps + (1e9 * (age + offset * (places == 2))).astype(np.int64))
    return ages


@pytest.mark.parametrize('offset, apart', [(0.095, False), (0.105, True), (-0.095, False), (-0.105, True)])
def test_ages_that_differ_by_a_tenth_of_a_second(offset, apart):
    """A bus and its gateway differ by less."""
    for ages in (streamed(2000, offset), logged(*[1.0] * 5, offset=offset)):
        assert list(ages.apart) == ['c'] * apart


def test_how_many_samples_it_takes():
    """Six comparisons of 24 samples of each of four channels, or of as many of fewer, with two thirds left out between
    them; of a bag three."""
    assert not streamed(6 * 96 + 5 * 192 - 1).apart and streamed(6 * 96 + 5 * 192).apart
    assert not logged(1.0, 1.0, offset=0.2).apart and logged(1.0, 1.0, 1.0, offset=0.2).apart


def test_live_the_last_sixteen_comparisons_count():
    """Half of them are those of the time since, after eight."""
    change = 20 * 288
    assert streamed(change + 7 * 288 + 96, 0.3, 0.0, change).apart
    assert not streamed(change + 8 * 288 + 96, 0.3, 0.0, change).apart


@pytest.mark.parametrize('ages, ahead', [
    ([9.0, 9.0, 9.0, 8.05, 8.05, 8.05], 0.0), ([9.0, 9.0, 9.0, 7.95, 7.95, 7.95], 1.05),
    ([9.0, 9.0, 9.0, 10.05, 10.05, 10.05], 0.0),                            # set back
    ([9.0, 9.2, 9.0, 9.2, 9.0, 7.1, 7.3], 0.0),                             # it changes all the time
    ([9.0, 9.2, 9.0, 9.2, 9.0, 6.9, 7.1], 2.1)])
def test_a_clock_that_is_set_ahead(ages, ahead):
    """By more than a second, and ten times as much as ages change otherwise."""
    assert logged(*ages).set_ahead == pytest.approx(ahead, abs=1e-9)
