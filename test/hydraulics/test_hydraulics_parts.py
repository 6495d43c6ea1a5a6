# SPDX-License-Identifier: Apache-2.0
"""Fluid, valve and friction: the formulas of Pyrhönen et al., mass estimation with numbers, symmetries and
continuity."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbse_ros.hydraulics.circuit import (
    brown_mcphee,
    effective_compressibility,
    flow_coefficient,
    port_flows,
    pressure_friction,
    pressure_rate,
    turbulent_root,
)

PUMP, TANK, LIMIT = 10e6, 0.1e6, 0.2e6
PRESSURES, SPOOLS, SPEEDS = st.floats(0, 12e6), st.floats(-10, 10), st.floats(-1, 1)
CV = float(flow_coefficient(24 / 60e3, 9.9, 3.5e6))


def number(value: object) -> float:
    return float(ca.evalf(ca.SX(value))) if isinstance(value, ca.SX) else float(value)


def flows(spool: float, a: float, b: float, limit: float = LIMIT) -> tuple[float, float]:
    found = port_flows(*(ca.SX(v) for v in (spool, PUMP, TANK, a, b, CV, limit)))
    return number(found[0]), number(found[1])


def test_effective_bulk_modulus_of_a_chamber_and_a_hose() -> None:
    """Eq. 10: compliances add, each weighted by its volume; half a litre of cylinder and a fifth of hose."""
    volume, compressibility = effective_compressibility(1.65e9, [(5e-4, 2.1e11), (2e-4, 7e8)])
    assert volume == pytest.approx(7e-4)
    assert 1 / compressibility == pytest.approx(7e-4 / (7e-4 / 1.65e9 + 5e-4 / 2.1e11 + 2e-4 / 7e8), rel=1e-13)
    assert 0.9e9 < 1 / compressibility < 1.65e9


def test_pressure_rate_of_a_rigid_volume() -> None:
    """Eq. 9: 1 l/min into half a litre of oil in stiff walls."""
    inflow = 1e-3 / 60
    assert pressure_rate(1.6e9, [(5e-4, 1e30)], inflow, 0.0) == pytest.approx(1.6e9 / 5e-4 * inflow, rel=1e-12)
    assert pressure_rate(1.6e9, [(5e-4, 1e30)], inflow, inflow) == 0.0


def test_nominal_flow_comes_at_the_nominal_point() -> None:
    """Eqs. 12-14 in SI: 24 l/min at 3.5 MPa and 9.9 V."""
    a, b = flows(9.9, PUMP - 3.5e6, TANK + 3.5e6)
    assert a == pytest.approx(24 / 60e3, rel=1e-12) and b == pytest.approx(-24 / 60e3, rel=1e-12)


@given(limit=st.floats(1e3, 1e6))
def test_flow_is_continuous_where_it_turns_laminar(limit: float) -> None:
    for sign in (-1, 1):
        below, at, above = (number(turbulent_root(ca.SX(sign * limit * share), ca.SX(limit)))
                            for share in (1 - 1e-9, 1, 1 + 1e-9))
        assert at == pytest.approx(sign * np.sqrt(limit), rel=1e-12)
        assert below == pytest.approx(at, rel=1e-8) and above == pytest.approx(at, rel=1e-8)
    assert number(turbulent_root(ca.SX(0.0), ca.SX(limit))) == 0.0


@given(drop=st.floats(-12e6, 12e6))
def test_flow_law(drop: float) -> None:
    """Eq. 15: square root above the limit, a line below it, odd."""
    found = number(turbulent_root(ca.SX(drop), ca.SX(LIMIT)))
    expected = np.sign(drop) * np.sqrt(abs(drop)) if abs(drop) > LIMIT else np.sqrt(LIMIT) * drop / LIMIT
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert number(turbulent_root(ca.SX(-drop), ca.SX(LIMIT))) == -found


@given(spool=SPOOLS, a=PRESSURES, b=PRESSURES)
def test_a_reversed_spool_exchanges_the_ports(spool: float, a: float, b: float) -> None:
    """Pump to a and b to tank for U > 0, the other way for U < 0."""
    if spool == 0.0:
        assert flows(spool, a, b) == (0.0, 0.0)
    else:
        assert flows(spool, a, b) == flows(-spool, b, a)[::-1]
    assert flows(abs(spool), a, b)[0] * (PUMP - a) >= 0 and flows(abs(spool), a, b)[1] * (TANK - b) >= 0


@given(a=PRESSURES, b=PRESSURES)
def test_flow_is_continuous_through_the_closed_valve(a: float, b: float) -> None:
    assert max(abs(q) for q in (*flows(1e-9, a, b), *flows(-1e-9, a, b))) <= 1e-9 * CV * np.sqrt(12e6)


def test_brown_mcphee_reference_values() -> None:
    """Eq. 51 worked by hand with Fc 210, Fs 300, vs 5 mm/s, sigma 330."""
    force = lambda v: float(ca.evalf(ca.SX(brown_mcphee(ca.SX(v), 210.0, 300.0, 5e-3, 330.0))))     # noqa: E731
    assert force(5e-3) == pytest.approx(210 * np.tanh(4) + 90 * 1 / (0.25 + 0.75) ** 2 + 330 * 5e-3, rel=1e-13)
    assert force(5e-3) == pytest.approx(301.5091, abs=1e-4)     # the static force is reached at the transition velocity
    assert force(1.0) == pytest.approx(540.0, abs=0.01)         # far above it: Coulomb and viscous
    assert force(0.0) == 0.0


@given(velocity=SPEEDS, piston=PRESSURES, rod=PRESSURES)
def test_friction_is_odd_and_opposes_the_motion(velocity: float, piston: float, rod: float) -> None:
    def total(v: float) -> float:
        return number(ca.SX(brown_mcphee(ca.SX(v), 210.0, 300.0, 5e-3, 330.0))
                      + pressure_friction(ca.SX(v), piston, rod, 5.5e-4, 1e-4, 5e-3))
    assert total(-velocity) == -total(velocity)
    assert total(velocity) * velocity >= 0


def test_pressure_friction_reference_value() -> None:
    """Eq. 52 well above the transition velocity: 5.5e-4 m2 on 4 MPa and 1e-4 m2 on 2 MPa."""
    assert number(pressure_friction(ca.SX(0.1), 6e6, 2e6, 5.5e-4, 1e-4, 5e-3)) == pytest.approx(2400.0, rel=1e-12)
    assert number(pressure_friction(ca.SX(-0.1), 2e6, 6e6, 5.5e-4, 0.0, 5e-3)) == pytest.approx(-2200.0, rel=1e-12)
