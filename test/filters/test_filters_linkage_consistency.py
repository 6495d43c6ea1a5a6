# SPDX-License-Identifier: Apache-2.0
"""NEES and NIS of 100 seeds drawn from each filter's own model, inside their 95 % bounds.

Long, with more sensors and with all noises scaled: ``benchmarks/filter_consistency.py``.
"""

import numpy as np
import pytest
from linkage_own_model import NO_CLAIM, normalised, own_model, score

from mbse_ros.errors import SettingError
from mbse_ros.filters.filters import OF_MECHANISMS, make_filter

CLAIM = [name for name in OF_MECHANISMS if name not in NO_CLAIM]
BOUND = 1.96


@pytest.mark.parametrize('estimator', CLAIM)
def test_consistent_in_its_own_model(estimator):
    found = own_model(estimator, 'four_bar', ('encoder',)).run(40)
    assert abs(found.last_score) < BOUND, found.last_score
    assert abs(found.nis_score) < BOUND, found.nis_score


def test_a_covariance_that_is_too_small_is_found():
    """The same truths with a filter that believes in a tenth of the noise."""
    truths = own_model('DEKF', 'four_bar', ('encoder',))
    sure = own_model('DEKF', 'four_bar', ('encoder',))
    sure.start = truths.start.copy()
    P = sure.filter.state.places['P']
    sure.start[P] = truths.start[P] / 10
    step, drawn = sure.step, truths.run(20)
    assert abs(drawn.last_score) < BOUND
    truths.step = lambda flat, given, tuning: step(shrunk(flat, P), given, tuning)
    assert truths.run(20).last_score > BOUND


def shrunk(flat, places):
    flat = np.array(flat)
    flat[places] *= 0.8
    return flat


def test_the_force_of_errorekf_fe_stays_over_a_step():
    """Not its acceleration, as in Naya et al., review: that changes as the inverse of the reduced mass."""
    of = own_model('errorEKF_FE', 'four_bar', ('encoder',), runs=1)
    flat = of.filter.start(of.problem.model.start.q, np.full(of.problem.n, 0.5), np.array([0.0, 0.0, 1.0]))
    tuning = of.filter.tuning.flat(**{**of.filter.tuning.arrays(of.tuning), 'acceleration': [0.0]})
    after = of.filter.state.arrays(np.array(of.filter.predict(flat, of.given(1), tuning)).ravel())
    before = of.filter.state.arrays(flat)
    inverse = [float(of.problem.rates(part['q'], part['x'][1:2], 0.0, 0.0, of.problem.model.parameters)[2][1, -1])
               for part in (before, after)]
    assert np.sqrt(after['P'][2, 2]) == pytest.approx(inverse[1] / inverse[0], rel=1e-9)
    assert abs(inverse[1] / inverse[0] - 1) > 1e-4
    paper = make_filter('errorEKF_FE', of.problem, held='acceleration')
    after = paper.state.arrays(np.array(paper.predict(flat, of.given(1), tuning)).ravel())
    assert after['P'][2, 2] == pytest.approx(1.0, abs=1e-12)
    with pytest.raises(SettingError, match='held'):
        make_filter('errorEKF_FE', of.problem, held='speed')


def test_figures():
    assert normalised(np.array([[2.0, 0.0], [1.0, 1.0]]), np.tile(np.diag([4.0, 1.0]), (2, 1, 1))) == pytest.approx(
        [1.0, 1.25])
    assert score(1000, 1000) == pytest.approx(0.0, abs=0.02) and score(1100, 1000) > BOUND > -BOUND > score(900, 1000)
