# SPDX-License-Identifier: Apache-2.0
"""Size and direction of a force with a covariance."""

import numpy as np
import pytest

from mbse_ros.payload.pointing import UNDIRECTED, pointing

PLANE = np.array([[4e4, np.nan, 1e4], [np.nan] * 3, [1e4, np.nan, 9e4]])


def test_of_a_plane_it_is_polar_coordinates() -> None:
    """Their derivatives: of the size along the force, of the angle across it over the size."""
    force = np.array([3e3, np.nan, 4e3])
    found, P = pointing(force, PLANE), PLANE[np.ix_([0, 2], [0, 2])]
    along, across = np.array([0.6, 0.8]), np.array([-0.8, 0.6])
    assert (found.size, found.size_stddev) == pytest.approx((5e3, np.sqrt(along @ P @ along)))
    assert found.direction_stddev == pytest.approx(np.sqrt(across @ P @ across) / 5e3)
    assert found.direction == pytest.approx([0.6, np.nan, 0.8], nan_ok=True) and found.known


def test_drawn_forces_scatter_as_it_says() -> None:
    """Angles in space: across the force its largest deviation counts."""
    rng, root = np.random.default_rng(1), np.diag([100.0, 400.0, 50.0])
    found = pointing(np.array([8e3, 0.0, 6e3]), root @ root.T)
    drawn = np.array([8e3, 0.0, 6e3]) + rng.standard_normal((20000, 3)) @ root
    angles = np.arctan2(drawn[:, 1], drawn[:, [0, 2]] @ [0.8, 0.6])
    assert found.direction_stddev == pytest.approx(angles.std(), rel=0.02)
    assert found.size_stddev == pytest.approx(np.linalg.norm(drawn, axis=1).std(), rel=0.02)


@pytest.mark.parametrize('share', [0.99, 1.01])
def test_a_direction_that_is_too_uncertain_is_not_known(share: float) -> None:
    P = np.diag([1.0, 1.0, (share * UNDIRECTED) ** 2]) * 1e6
    found = pointing(np.array([1e3, 0.0, 0.0]), P * np.array([1.0, 0.0, 1.0]))
    assert found.known == (share < 1.0) and found.direction_stddev == pytest.approx(share * UNDIRECTED)
    assert found.size == 1e3


@pytest.mark.parametrize('force', [[5e3, np.nan, np.nan], [np.nan] * 3, [0.0, np.nan, 0.0]])
def test_of_one_axis_or_none_or_of_no_force_there_is_no_direction(force: list[float]) -> None:
    found = pointing(np.array(force), PLANE)
    assert not found.known and np.isnan([found.size, found.size_stddev, found.direction_stddev]).all()
