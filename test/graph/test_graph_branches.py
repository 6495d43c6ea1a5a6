# SPDX-License-Identifier: Apache-2.0
"""The branch of a mechanism as an unknown: which are found, their evidence, and what samples say of them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from four_bar_by_hand import GROUND, joints
from scipy.stats import multivariate_normal

from mbse_ros.api.samples import Samples
from mbse_ros.api.simulate import simulate_motion
from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.errors import SettingError
from mbse_ros.graph.branches import assemblies, branches, on_branch
from mbse_ros.graph.estimate import EstimatedMotion
from mbse_ros.graph.smoother import LinkageSmoother

SENSORS = 'encoder', 'coupler_gyro'


@cache
def four_bar() -> Model:
    return load_model('four_bar', backend='vm')


@cache
def log(up: bool) -> Samples:
    """Of the four-bar with its elbow up or down."""
    model = four_bar() if up else on_branch(four_bar(), assemblies(four_bar())[1])
    return simulate_motion(model, 0.3, 1e-3, sensors=SENSORS).samples


@pytest.mark.parametrize('name', ['four_bar', 'five_bar', 'slider_crank'])
def test_two_circles_meet_at_two_points(name: str) -> None:
    model = load_model(name, backend='vm')
    up, down = assemblies(model)
    np.testing.assert_array_equal(up, model.start.q)
    assert max(np.abs(model.residual(q)[0]).max() for q in (up, down)) < 1e-10
    np.testing.assert_array_equal(up[model.z], down[model.z])


def test_the_other_branch_of_the_four_bar_is_the_mirrored_one() -> None:
    first, second = joints(np.pi / 3)
    axis = (first - [GROUND, 0.0]) / np.linalg.norm(first - [GROUND, 0.0])
    mirrored = first + 2 * axis * (axis @ (second - first)) - (second - first)
    np.testing.assert_allclose(assemblies(four_bar())[1][2:4], mirrored, atol=1e-9)


@pytest.mark.parametrize('up', [True, False])
def test_samples_show_the_branch(up: bool) -> None:
    best, other = branches(four_bar(), SENSORS, log(up).t, log(up).values)
    assert best.probability > 0.999 > 1e-3 > other.probability and best.motion is not None
    assert (best.q[3] > 0) == up and (best.motion.q[:, 3] > 0).all() == up
    assert best.probability + other.probability == pytest.approx(1.0)


def test_what_the_samples_do_not_distinguish_has_the_probability_of_the_prior() -> None:
    t, encoder = log(True).t[:4], log(True).values[:4, :1]
    found = branches(four_bar(), ['encoder'], t, encoder)
    assert all(0.4 < branch.probability < 0.6 for branch in found)
    given = branches(four_bar(), ['encoder'], t, encoder, prior=[1.0, 9.0])
    assert given[0].q[3] < 0 and given[0].probability > 0.85
    for prior in ([1.0], [1.0, 0.0], [1.0, np.nan]):
        with pytest.raises(SettingError, match='2 positive numbers'):
            branches(four_bar(), ['encoder'], t, encoder, prior=prior)


def test_the_evidence_is_the_density_of_all_samples_together() -> None:
    """As one Gaussian of all samples, one of them missing, by the chain's transitions."""
    model, samples = four_bar(), log(True).values[:12].copy()
    samples[5, 1] = np.nan
    t, smoother = log(True).t[:12], LinkageSmoother(model, SENSORS, 0.005)
    none = np.zeros((12, len(model.names)))
    guess = EstimatedMotion(t, none + model.start.q, none + model.start.qd, none, np.zeros((12, 1)))
    found = smoother.batch(samples, guess)
    again = EstimatedMotion(t, found.q, found.qd, found.qdd, found.force)
    points = smoother._points(samples, again, None)
    start = smoother.prior(guess.q[0], guess.qd[0])
    swept = smoother.chain.sweep(points, start)
    at, kept = swept._point.arrays(swept._at), swept._kept.arrays(swept._forward)
    mean, cov = [start.mean - points.x[0]], [[start.covariance]]
    for k in range(11):
        F, ahead, m = kept['F'][k], kept['m_ahead'][k].ravel(), kept['m'][k].ravel()
        mean.append(F @ mean[-1] + ahead - F @ m)
        cov.append([F @ block for block in cov[-1]] + [F @ cov[-1][-1] @ F.T + kept['S'][k]])
        for j in range(k + 1):
            cov[k + 1][j] = F @ cov[k][j]
    H, size = at['H'], 2
    S = np.zeros((12 * size, 12 * size))
    for i in range(12):
        for j in range(i + 1):
            S[2 * i:2 * i + 2, 2 * j:2 * j + 2] = H[i] @ cov[i][j] @ H[j].T
            S[2 * j:2 * j + 2, 2 * i:2 * i + 2] = S[2 * i:2 * i + 2, 2 * j:2 * j + 2].T
    S += np.diag(np.tile(smoother.chain.variance, 12))
    expected = np.concatenate([at['h'][i].ravel() + H[i] @ mean[i] for i in range(12)])
    here = np.isfinite(samples.ravel())
    together = multivariate_normal(expected[here], S[np.ix_(here, here)]).logpdf(samples.ravel()[here])
    assert found.log_evidence == pytest.approx(together, abs=1e-4)


def test_a_sensor_that_is_none_is_no_branch():
    """Its name is refused; no branch is blamed."""
    with pytest.raises(SettingError, match='sensors'):
        branches(four_bar(), ['gps'], np.arange(5) * 0.005, np.zeros((5, 1)))


@pytest.mark.parametrize('t, rows, inputs, named', [
    ([0.0], 1, None, 't: '), ([0.0, 0.1, 0.3], 3, None, 't: .*even'), ([0.2, 0.1, 0.0], 3, None, 't: .*even'),
    ([0.0, 0.1, 0.2], 2, None, 'samples: .*3 instants of encoder'),
    ([0.0, 0.1], 2, np.zeros((3, 1)), 'inputs: .*torque')])
def test_a_log_that_does_not_fit_is_refused(t, rows, inputs, named) -> None:
    with pytest.raises(SettingError, match=named):
        branches(four_bar(), ['encoder'], np.array(t), np.zeros((rows, 1)), inputs)
