# SPDX-License-Identifier: Apache-2.0
"""Motions against reference values of others: IFToMM benchmarks, the four-bars of papers 000, 001 and 002."""

from __future__ import annotations

import numpy as np
import pytest
from motion_examples import model

from mbse_ros.dynamics.motion import simulate

FOUR_BAR = {0.5: (0.897722896263, -0.716323044777), 1: (-0.015424412145, -2.756618443800),
            2: (-3.891978504626, -2.260481636118), 5: (-2.357948769623, 6.517154088663),
            10: (-4.912619460538, 0.032670194855)}                                      # theta, its rate
SPRING = {0.1: (1.0495964236, 0.3897738630, -0.0091634447), 0.25: (1.0268984033, 0.4038212500, -0.0286738006),
          0.5: (0.9568352195, 0.4177511938, -0.0292263624), 1: (0.4712199303, 0.5112693695, 0.0053455563)}
ADAMS = {0.5: -1.592757562198, 1: -3.748586777077, 2: -0.022161289285, 5: -3.607916066899}
PENDULUM = {1: (0.986291751131875, -0.165010853125541), 10: (-0.275087462576117, -0.961419205099125)}
FLAT = {1: (-0.195020301949435, -0.980799205662174), 10: (0.328458111540815, 0.944518538178601)}

# Largest |E - E(0)|, J, in 10 s of the four-bar of Pyrhönen et al., state transition, example 1 (a trial by others).
ENERGY = [('forward_euler', {}, 4.26, 54.4), ('augmented_euler', {}, 1.455, 16.8),
          ('exponential', {'order': 1}, 0.00986, 1.000), ('exponential', {'order': 2}, 0.00914, 0.895),
          ('exponential', {'order': 'exact'}, 0.00914, 0.901)]


def at(motion, times, *names):
    """Named coordinates (k, ...) at times."""
    places = [int(np.argmin(abs(motion.t - t))) for t in times]
    assert np.allclose(motion.t[places], list(times))
    return np.array([[motion.of(name)[k] for name in names] for k in places])


def test_pendulum():
    motion = simulate(model('pendulum'), 10, 1, 'dop853')
    assert np.abs(at(motion, PENDULUM, 'bob.P.x', 'bob.P.y') - list(PENDULUM.values())).max() < 1e-8
    period = simulate(model('pendulum'), 2.36784194757624, 2.36784194757624, 'dop853')
    assert np.abs(period.q[-1] - period.q[0]).max() < 1e-8
    assert np.abs(period.qd[-1]).max() < 1e-8


def test_two_loops_through_the_flat_position():
    motion = simulate(model('n_four_bar:2'), 10, 1, 'dop853')
    assert np.abs(at(motion, FLAT, 'B0.x', 'B0.y') - list(FLAT.values())).max() < 1e-8
    assert len(motion.singular_times) == 10
    assert np.abs(motion.balance).max() < 2e-8


def test_four_bar():
    motion = simulate(model('four_bar'), 10, 0.5, 'dop853', rtol=1e-13, atol=1e-13)
    angle, rate = at(motion, FOUR_BAR, 'theta')[:, 0], motion.of('theta', 1)[[int(2 * t) for t in FOUR_BAR]]
    assert np.abs(np.array([angle, rate]).T - list(FOUR_BAR.values())).max() < 1e-8
    assert np.abs(motion.balance).max() < 5e-11
    assert motion.violation.max() < 1e-12


def test_four_bar_by_radau():
    motion = simulate(model('four_bar'), 2, 0.5, 'radau')
    assert np.abs(at(motion, [0.5, 1, 2], 'theta')[:, 0] - [FOUR_BAR[t][0] for t in (0.5, 1, 2)]).max() < 1e-8


def test_four_bar_with_spring():
    motion = simulate(model('four_bar_spring'), 1, 0.05, 'dop853')
    assert np.abs(at(motion, SPRING, 'theta1', 'theta21', 'bend') - list(SPRING.values())).max() < 1e-9


def test_four_bar_of_adams():
    motion = simulate(model('four_bar_adams'), 5, 0.5, 'dop853')
    assert np.abs(at(motion, ADAMS, 'theta')[:, 0] - list(ADAMS.values())).max() < 1e-8


@pytest.mark.parametrize('scheme, options, fine, coarse', ENERGY, ids=lambda x: str(x))
def test_energy_of_example_1(scheme, options, fine, coarse):
    largest = []
    for dt in (1e-3, 1e-2):
        motion = simulate(model('four_bar'), 10, dt, scheme, **options)
        largest.append(np.abs(motion.energy - motion.energy[0]).max())
        assert not motion.warnings
    assert largest == pytest.approx([fine, coarse], rel=0.02)
    if scheme == 'exponential':
        assert 100 * largest[0] < 1.455         # augmented Euler's
