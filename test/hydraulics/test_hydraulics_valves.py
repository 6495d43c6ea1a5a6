# SPDX-License-Identifier: Apache-2.0
"""Valves that are compensated, have a dead band or edges of their own; cylinders side by side."""

from __future__ import annotations

from functools import cache
from typing import Any

import casadi as ca
import numpy as np
import pytest
from core_support import crane
from hypothesis import given
from hypothesis import strategies as st
from machine_variants import changed

from mbse_ros.hydraulics.circuit import beyond, edge_flows, port_flows, turbulent_root
from mbse_ros.machine import Machine

PUMP, TANK, LIMIT, FLOW, DROP, COMMAND = 10e6, 0.1e6, 0.2e6, 24 / 60e3, 3.5e6, 9.9
PRESSURES, OPENINGS = st.floats(0, 12e6), st.floats(-1e-6, 1e-6).filter(lambda v: v == 0 or abs(v) > 1e-12)
EDGES = ('pump_a', 'b_tank', 'pump_b', 'a_tank')
VALVE = 'hydraulics/valves/lift_valve'


@cache
def machine(*changes: tuple[str, Any]) -> Machine:
    """The default machine with another valve."""
    return changed('patu655_lift', {f'{VALVE}/{key}': dict(value) if isinstance(value, tuple) else value
                                    for key, value in changes})


def flows(it: Machine, spool: float, a: float, b: float) -> np.ndarray:
    """Flows (2,), m3/s, at pressures, Pa."""
    symbol = ca.SX.sym('s')
    f = ca.Function('f', [symbol, it.parameters.symbol], [it.circuit.valve_flows('lift_valve', symbol, ca.SX([a, b]))])
    return f(spool, it.parameters.mean).full()[:, 0]


@given(opening=OPENINGS, a=PRESSURES, b=PRESSURES)
def test_edges_of_gain_one_are_the_plain_orifice(opening: float, a: float, b: float) -> None:
    plain = port_flows(*(ca.SX(v) for v in (opening, PUMP, TANK, a, b, 1.0, LIMIT)))
    for gains in ({}, dict.fromkeys(EDGES, 1.0)):
        found = edge_flows(*(ca.SX(v) for v in (opening, PUMP, TANK, a, b, LIMIT)), gains)
        assert [float(item) for item in found] == pytest.approx([float(item) for item in plain], rel=1e-14, abs=0)


def test_a_machine_with_gains_of_one_and_no_dead_band_is_the_same() -> None:
    other = machine(('gains', tuple((edge, 1) for edge in EDGES)), ('dead_band', '0 V'))
    assert other.description.hydraulics.valves['lift_valve'].gains and other.description.hydraulics.valves[
        'lift_valve'].dead_band is not None
    for spool in (-7.0, -0.1, 0.0, 0.1, 7.0):
        np.testing.assert_allclose(flows(other, spool, 4e6, 2e6), flows(crane(), spool, 4e6, 2e6), rtol=1e-13)


@pytest.mark.parametrize('edge', EDGES)
def test_each_gain_is_that_of_its_edge(edge: str) -> None:
    """Half of one edge: the flow through it, at the sign of the spool at which it is open, and no other."""
    half = machine(('gains', ((edge, 0.5),)))
    port, sign = ('ab'.index(edge.strip('_').replace('pump', '').replace('tank', '').strip('_')),
                  1 if edge in ('pump_a', 'b_tank') else -1)
    for spool in (5.0, -5.0):
        share = np.ones(2)
        if np.sign(spool) == sign:
            share[port] = 0.5
        np.testing.assert_allclose(flows(half, spool, 4e6, 2e6), share * flows(crane(), spool, 4e6, 2e6), rtol=1e-13)


def test_dead_band() -> None:
    """Nothing inside it, the nominal flow at the nominal command, a straight line between; odd."""
    it = machine(('dead_band', '1.5 V'))
    at = lambda spool: flows(it, spool, PUMP - DROP, TANK + DROP)     # noqa: E731
    for spool in (0.0, 1.49, -1.49):
        assert (at(spool) == 0).all()
    np.testing.assert_allclose(at(COMMAND), [FLOW, -FLOW], rtol=1e-12)
    np.testing.assert_allclose(at((COMMAND + 1.5) / 2), [FLOW / 2, -FLOW / 2], rtol=1e-12)
    np.testing.assert_allclose(at(1.5 + 1e-9), 0, atol=1e-12)      # continuous at its edge
    assert float(beyond(ca.SX(-4.0), 1.5)) == -float(beyond(ca.SX(4.0), 1.5)) == -2.5


@pytest.mark.parametrize('spool', [4.0, -4.0])
def test_compensated_flow_is_constant_while_the_supply_lasts(spool: float) -> None:
    """From the pump the nominal drop is held; less than it is an orifice; the way to the tank is an orifice always."""
    held = machine(('kind', 'compensated'))
    share, port = abs(spool) / COMMAND, 0 if spool > 0 else 1
    for load in (0.0, 2e6, PUMP - DROP):
        p = np.full(2, load)
        assert flows(held, spool, *p)[port] == pytest.approx(share * FLOW, rel=1e-12)
        assert flows(crane(), spool, *p)[port] >= (1 - 1e-12) * share * FLOW
    for load in (PUMP - 0.99 * DROP, PUMP - 1e6, PUMP - 1e5, PUMP, PUMP + 1e6):
        p = np.full(2, load)
        np.testing.assert_allclose(flows(held, spool, *p), flows(crane(), spool, *p), rtol=1e-12)
    drain = flows(held, spool, 3e6, 3e6)[1 - port]
    assert drain == pytest.approx(-share * FLOW * np.sqrt((3e6 - TANK) / DROP), rel=1e-12)


def test_compensated_with_gains_and_dead_band() -> None:
    """All at once: gain of the edge times the share beyond the band times the held flow."""
    it = machine(('kind', 'compensated'), ('dead_band', '1 V'), ('gains', (('pump_a', 0.8), ('b_tank', 0.5))))
    found, share = flows(it, 5.0, 1e6, 4e6), 4.0 / (COMMAND - 1.0)
    np.testing.assert_allclose(found, [0.8 * share * FLOW, -0.5 * share * FLOW * np.sqrt((4e6 - TANK) / DROP)],
                               rtol=1e-12)


def test_a_drop_below_the_laminar_pressure_is_a_line_in_all_kinds() -> None:
    for kind in ('orifice', 'compensated'):
        it = machine(('kind', kind), ('gains', (('pump_a', 0.5),)))
        found = [flows(it, 9.9, PUMP - drop, 1e6)[0] for drop in (0.05e6, 0.1e6)]
        assert found[1] == pytest.approx(2 * found[0], rel=1e-12)
        assert found[1] == pytest.approx(0.5 * FLOW * float(turbulent_root(0.1e6, LIMIT)) / np.sqrt(DROP), rel=1e-12)


def test_anti_cavitation_valves_make_up_what_is_missing() -> None:
    """In proportion to the lack below the tank, the nominal flow at ``make_up``; nothing above, at any spool."""
    it = machine(('make_up', '50 kPa'))
    for spool in (-4.0, 0.0, 4.0):
        for a, b in ((TANK - 25e3, 2e6), (2e6, TANK - 50e3), (TANK - 0.1e6, TANK - 1e3)):
            added = flows(it, spool, a, b) - flows(crane(), spool, a, b)
            lack = np.maximum(TANK - np.array([a, b]), 0.0)
            np.testing.assert_allclose(added, FLOW * lack / 50e3, rtol=1e-9, atol=1e-15)
        np.testing.assert_array_equal(flows(it, spool, TANK, 2e6), flows(crane(), spool, TANK, 2e6))


def test_a_measured_supply_replaces_the_files() -> None:
    it = crane()
    p = ca.SX([4e6, 2e6])
    def f(**supplies):
        return ca.evalf(it.circuit.valve_flows('lift_valve', ca.SX(5.0), p, supplies)).full()[:, 0]

    np.testing.assert_allclose(f(pump=ca.SX(8e6))[0] / f()[0], np.sqrt(4 / 6), rtol=1e-12)
    np.testing.assert_allclose(f(tank=ca.SX(1e6))[1] / f()[1], np.sqrt(1 / 1.9), rtol=1e-12)


def test_two_cylinders_side_by_side_are_one_with_a_count() -> None:
    """Areas, volumes' growth, hydraulic and friction forces, end stops, masses: twice those of one, at all parts."""
    masses = {'cylinders/lift/barrel_mass': '20 kg', 'cylinders/lift/rod_mass': '9 kg', 'cylinders/lift/end_stop': {
        'stiffness': '1e7 N/m', 'damping': '5e3 N*s/m', 'length': '8 mm'}}
    one, two = changed('patu655_lift', masses), changed('patu655_lift', {**masses, 'cylinders/lift/count': 2})
    z, zd, p = ca.SX([0.004]), ca.SX([-0.03]), ca.SX([5e6, 2e6])
    for make in (lambda c: c.areas(), lambda c: c.hydraulic_forces(p), lambda c: c.friction_forces(zd, p),
                 lambda c: c.end_stop_forces(z, zd)):
        found = [ca.Function('f', [it.parameters.symbol], [make(it.circuit)])(it.parameters.mean).full()
                 for it in (one, two)]
        np.testing.assert_allclose(found[1], 2 * found[0], rtol=1e-14)
        assert np.abs(found[0]).min() > 0
    M = [ca.Function('M', [it.system.q, it.payload, it.parameters.symbol], [it.system.M]) for it in (crane(), one, two)]
    bare, single, double = (f(crane().model.start.q, 0, crane().parameters.mean).full() for f in M)
    np.testing.assert_allclose(double - bare, 2 * (single - bare), rtol=1e-12, atol=1e-12)
    assert single[0, 0] > bare[0, 0]
    assert two.description.cylinders['lift'].piston_area == 2 * one.description.cylinders['lift'].piston_area
