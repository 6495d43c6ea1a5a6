# SPDX-License-Identifier: Apache-2.0
"""Trajectories through points: what they pass, how far they go between, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mbse_ros.errors import SettingError
from mbse_ros.streams.trajectory import Setpoint, Trajectory

TIMES = 0.5, 1.0, 2.5, 3.0


def drawn(count: int) -> list[np.ndarray]:
    """Positions, velocities, accelerations of 4 points of 2 coordinates, as many of them as ``count``."""
    rows = [np.random.default_rng(k).normal(size=(4, 2)) for k in range(count)]
    for row in rows[1:]:
        row[-1] = 0.0
    return rows


@pytest.mark.parametrize('count', (1, 2, 3))
def test_it_passes_all_that_its_points_say_and_stays_in_its_ranges(count: int) -> None:
    rows = drawn(count)
    found = Trajectory(['a', 'b'], TIMES, *rows)
    for k, time in enumerate(TIMES[:-1]):
        for given, got in zip(rows, found.at(time)):
            np.testing.assert_allclose(got, given[k], atol=1e-9)
    way = np.array([found.at(time).position for time in np.linspace(0.0, 4.0, 40_001)])
    np.testing.assert_allclose(found.ranges(), np.stack([way.min(axis=0), way.max(axis=0)], axis=1), atol=1e-6)
    np.testing.assert_array_equal(found.at(9.0).position, rows[0][-1])
    for middle in (1.7, 2.9):       # derivatives by differences
        near = [found.at(middle + step) for step in (-1e-5, 1e-5)]
        for order in (0, 1):
            np.testing.assert_allclose((near[1][order] - near[0][order]) / 2e-5, found.at(middle)[order + 1], atol=1e-5)


@pytest.mark.parametrize('count', (1, 2, 3))
def test_it_continues_from_where_the_machine_is(count: int) -> None:
    rows, here = drawn(count), Setpoint(np.array([3.0, -3.0]), np.array([0.2, 0.1]), np.zeros(2))
    found = Trajectory(['a', 'b'], TIMES, *rows).continued(1.2, here)
    assert found.times.tolist() == [1.2, 2.5, 3.0]
    for given, got in zip(here, list(found.at(1.2))[:count]):
        np.testing.assert_allclose(got, given, atol=1e-9)
    np.testing.assert_allclose(found.at(2.5).position, rows[0][2], atol=1e-9)
    with pytest.raises(SettingError, match='not over'):
        found.continued(3.0, here)


@pytest.mark.parametrize('given, text', [
    ({'names': ['a', 'a']}, 'each once'), ({'names': []}, 'one name'), ({'times': (1.0, 1.0, 2.0, 3.0)}, 'rise'),
    ({'times': (-1.0, 1.0, 2.0, 3.0)}, 'rise'), ({'times': ()}, 'one point'),
    ({'positions': [[0.0]] * 4}, '2 at each of 4'), ({'positions': [[0.0, np.nan]] * 4}, 'finite'),
    ({'velocities': [[0.1, 0.0]] * 4}, '0 at the last point'), ({'velocities': [[0.0, 0.0]] * 3}, '2 at each of 4'),
    ({'accelerations': [[0.0, 0.0]] * 4}, 'velocities, too')])
def test_what_is_no_motion_is_refused(given: dict[str, Any], text: str) -> None:
    with pytest.raises(SettingError, match=text):
        Trajectory(**{'names': ['a', 'b'], 'times': TIMES, 'positions': drawn(1)[0], **given})
