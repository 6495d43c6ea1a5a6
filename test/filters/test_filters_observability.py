# SPDX-License-Identifier: Apache-2.0
"""Observability along a motion: the pattern of Naya et al., review, and directions in words."""

import numpy as np
import pytest

from mbse_ros.dynamics.model import load_model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.errors import SettingError
from mbse_ros.filters.observability.information import observability
from mbse_ros.filters.observability.mechanism import (
    MODELS,
    SampledMotion,
    blind_in_words,
    echelon,
    state_observability,
)

DT = 5e-3


@pytest.fixture(scope='module', params=['four_bar', 'five_bar'])
def linkage(request):
    model = load_model(request.param, backend='vm')
    motion = simulate(model, 1.5, DT, 'trapezoid')
    q = np.tile(model.start.q, (101, 1))
    return (model, SampledMotion(motion.q, motion.qd, motion.t, DT), SampledMotion(q, 0 * q, DT * np.arange(101), DT))


def of_kind(model, kind):
    """The sensors of one kind on each degree of freedom."""
    return [name for name in model.description.sensors if name.startswith(kind)]


def verdicts(model, sensors, motion):
    return {observed.model: observed.verdict for observed in state_observability(model, sensors, motion, MODELS, 0.5)}


def test_gyros_on_the_cranks(linkage):
    model, moving, rest = linkage
    gyros = of_kind(model, 'crank_gyro')
    assert verdicts(model, gyros, moving) == {'simple': 'blind', 'exact': 'seen', 'force': 'seen'}
    at_rest = verdicts(model, gyros, rest)
    assert at_rest['simple'] == at_rest['force'] == 'blind'


def test_gyros_on_the_couplers(linkage):
    model, moving, rest = linkage
    gyros = of_kind(model, 'coupler_gyro')
    assert verdicts(model, gyros, moving)['exact'] == verdicts(model, gyros, moving)['force'] == 'seen'
    at_rest = verdicts(model, gyros, rest)
    assert at_rest['simple'] == at_rest['force'] == 'blind'


def test_encoders_see_everything_always(linkage):
    model, moving, rest = linkage
    for motion in (moving, rest):
        assert set(verdicts(model, of_kind(model, 'encoder'), motion).values()) == {'seen'}


def test_blind_directions_and_the_sensor_that_helps():
    model = load_model('four_bar', backend='vm')
    start = model.start.q
    rest = SampledMotion(np.tile(start, (101, 1)), np.zeros((101, len(start))), DT * np.arange(101), DT)
    simple, force = state_observability(model, ['crank_gyro'], rest, ['simple', 'force'], 0.5)
    assert simple.blind == {'theta': 1} and simple.rank == 1 and simple.least == 0.0
    assert force.blind == {'theta with theta force': 1} or force.blind == {'theta force with theta': 1}
    assert simple.helpers['coupler_gyro'] == 0.0                 # at rest one more gyro is as blind
    assert simple.helpers['encoder'] > 1.0
    assert list(simple.helpers.values()) == sorted(simple.helpers.values(), reverse=True)


def test_a_mechanism_without_freedom_is_refused():
    model = load_model('four_bar_adams_driven', backend='vm')
    with pytest.raises(SettingError, match='degrees of freedom'):
        state_observability(model, [], SampledMotion(model.start.q[None], model.start.qd[None], np.zeros(1), DT),
                            MODELS, 0.5)


def test_directions_have_components_of_their_own():
    rng = np.random.default_rng(1)
    basis = np.array([[1.0, 0, 0, 0], [0, 0, 1.0, 0.5]]).T
    turned, _ = np.linalg.qr(basis)
    turned = turned @ np.linalg.qr(rng.normal(size=(2, 2)))[0]
    found = echelon(turned)
    assert np.linalg.matrix_rank(np.hstack([found, basis]), 1e-9) == 2
    F, H = np.tile(np.eye(4), (5, 1, 1)), np.tile([[0, 1.0, 0, 0], [0, 0, -0.5, 1.0]], (5, 1, 1))
    window, = observability(F, H, np.ones(2), np.ones(4), 5)
    assert set(blind_in_words(window, ('a', 'b', 'c', 'd'), np.ones(4))) == {'a', 'c with d'}
