# SPDX-License-Identifier: Apache-2.0
"""Position of a machine: known angle, the whole stroke, and what is out of reach or at a dead point fails loudly."""

from __future__ import annotations

import numpy as np
import pytest
from core_support import crane, two_cylinders
from hypothesis import given
from hypothesis import strategies as st
from lagrange_by_hand import Lagrange

from mbse_ros.errors import PositionProblemError, SingularConfigurationError
from mbse_ros.machine import Machine, load_machine


@pytest.fixture(scope='module')
def simple() -> Machine:
    return load_machine('lut_simple_crane')


def test_known_angle_of_the_crane() -> None:
    """theta = -5 deg stands for 0.909591735 m between the pins (data from a second program)."""
    q = crane().position(np.array([0.909591735 - 0.820]))
    assert np.degrees(q[0]) == pytest.approx(-5.0, abs=1e-6)
    assert q[1] == 0.909591735 - 0.820


@given(share=st.floats(0, 1))
def test_round_trip_over_the_whole_stroke(share: float) -> None:
    machine = crane()
    z = share * machine.stroke[0, 1]
    q = machine.position(np.array([z]))
    hand = Lagrange(machine.description)
    assert hand.piston(hand.at({'boom_joint': q[0]}), 'lift') == pytest.approx(z, abs=1e-12)


@given(shares=st.tuples(st.floats(0.05, 0.95), st.floats(0.05, 0.95)))
def test_round_trip_of_two_cylinders(shares: tuple[float, float]) -> None:
    machine = two_cylinders()
    z = np.array(shares) * machine.stroke[:, 1]
    q = machine.position(z)
    hand = Lagrange(machine.description)
    found = hand.at(dict(zip(machine.system.names, q)))
    np.testing.assert_allclose([hand.piston(found, name) for name in machine.cylinders], z, atol=1e-12)


def test_solution_is_the_one_near_the_start() -> None:
    """The boom above or below the line through the pivot and the cylinder's base."""
    machine, z = crane(), np.array([0.2])
    upper, lower = (machine.position(z, np.array([start, 0.2]))[0] for start in (0.0, -2.8))
    assert upper == pytest.approx(machine.position(z)[0], abs=1e-12)
    assert abs(upper - lower) > 0.5


@pytest.mark.parametrize('piston', [0.7, 2.0, -0.8, 1e6, np.nan, np.inf])
def test_out_of_reach_is_an_error_with_its_data(piston: float) -> None:
    with pytest.raises(PositionProblemError) as caught:
        crane().position(np.array([piston]))
    assert caught.value.coordinates[-1] == piston or np.isnan(piston)
    assert not caught.value.residual < 1e-6
    assert 'position problem' in str(caught.value)


def test_dead_point_is_an_error_that_names_the_cylinder(simple: Machine) -> None:
    """Rod along the line from the pivot to the cylinder's base: the piston moves nothing there."""
    piston = 0.866025 - 0.5 - 0.42
    with pytest.raises(SingularConfigurationError) as caught:
        simple.position(np.array([piston]), np.array([0.3, piston]))
    assert caught.value.coordinates == ('lift',) and caught.value.condition > 1e5


def test_a_hair_from_the_dead_point_still_solves(simple: Machine) -> None:
    """The issue is the point itself, not its neighbourhood: 0.1 deg off."""
    angle = np.radians(0.1)
    length = np.hypot(0.5 * np.cos(angle) - 0.866025, 0.5 * np.sin(angle))
    q = simple.position(np.array([length - 0.42]), np.array([0.3, 0.0]))
    assert q[0] == pytest.approx(angle, abs=1e-8)


def test_exactly_at_the_dead_point_nothing_is_divided_by_zero(simple: Machine) -> None:
    with pytest.raises((SingularConfigurationError, PositionProblemError)):
        simple.position(np.array([0.2]), np.array([0.0, 0.2]))
