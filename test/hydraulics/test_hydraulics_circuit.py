# SPDX-License-Identifier: Apache-2.0
"""The circuit as a network: its matrices, volumes, forces, spools and end stops; SI throughout."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from core_support import crane, two_cylinders

from mbse_ros.machine import Machine, load_machine

PISTON, ROD = np.pi / 4 * 0.1 ** 2, np.pi / 4 * (0.1 ** 2 - 0.056 ** 2)


def value(expression: ca.SX, machine: Machine) -> np.ndarray:
    """Numbers of an expression at the nominal parameters."""
    p = machine.parameters
    return np.array(ca.Function('v', [p.symbol], [expression])(p.mean))[:, 0]


def column(*numbers: float) -> ca.SX:
    return ca.SX(list(numbers))


def test_matrices_of_one_cylinder() -> None:
    """Eq. 18: chambers piston and rod, flows a and b."""
    circuit = crane().circuit
    np.testing.assert_array_equal(circuit.T_sz, [[1], [-1]])
    np.testing.assert_array_equal(circuit.T_Vcyl, np.eye(2))
    np.testing.assert_array_equal(circuit.T_pQ, np.eye(2))


def test_matrices_of_two_cylinders_that_share_nothing() -> None:
    circuit = two_cylinders().circuit
    np.testing.assert_array_equal(circuit.T_sz, [[1, 0], [-1, 0], [0, 1], [0, -1]])
    np.testing.assert_array_equal(circuit.T_Vcyl, np.eye(4))
    np.testing.assert_array_equal(circuit.T_pQ, np.eye(4))


def test_a_volume_may_hold_several_chambers_and_ports() -> None:
    """Two cylinders in parallel: the two rod sides on one volume, both valves drain it."""
    machine = two_cylinders()
    h = machine.description.hydraulics
    shared = replace(h.volumes['lift_b'], chambers=(('lift', 'rod'), ('tilt', 'rod')))
    volumes = {'tilt_a': h.volumes['tilt_a'], 'lift_a': h.volumes['lift_a'], 'both': replace(shared, name='both')}
    valves = {n: replace(v, b='both') for n, v in h.valves.items()}
    joined = Machine(replace(machine.description, hydraulics=replace(h, volumes=volumes, valves=valves)))
    np.testing.assert_array_equal(joined.circuit.T_Vcyl, [[0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 1]])
    np.testing.assert_array_equal(joined.circuit.T_pQ, [[0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 1]])
    rates = value(joined.circuit.pressure_rates(column(0.2, 0.3), column(0.1, 0.0), column(0, 0, 0, 0)), joined)
    assert rates[0] == 0 and rates[1] < 0 < rates[2]        # the lift extends: its piston side expands, 'both' shrinks
    forces = value(joined.circuit.hydraulic_forces(column(1e6, 2e6, 3e6)), joined)
    assert forces[0] == pytest.approx(2e6 * PISTON - 3e6 * ROD)


def test_pressure_rates_of_the_crane() -> None:
    """Eqs. 9-11, 16 written out for both chambers."""
    machine, z, zd, Q = crane(), 0.2, 0.05, np.array([2e-4, -1.5e-4])
    found = value(machine.circuit.pressure_rates(column(z), column(zd), ca.SX(Q)), machine)
    for k, (area, height, sign) in enumerate([(PISTON, z, 1), (ROD, 0.535 - z, -1)]):
        cylinder, hose = area * height, 1.90019e-4
        compliance = (cylinder + hose) / 1650e6 + cylinder / 2.1e11 + hose / 700e6
        assert found[k] == pytest.approx((Q[k] - sign * area * zd) / compliance, rel=1e-12)


def test_forces_of_the_crane() -> None:
    """Eq. 50: 5 MPa on the piston, 2 MPa on the rod side."""
    force = value(crane().circuit.hydraulic_forces(column(5e6, 2e6)), crane())
    assert force[0] == pytest.approx(5e6 * PISTON - 2e6 * ROD, rel=1e-13)


def test_friction_scale_multiplies_all_of_it() -> None:
    machine = crane()
    p = machine.parameters
    f = ca.Function('f', [p.symbol], [machine.circuit.friction_forces(column(0.1), column(5e6, 2e6))])
    more = p.mean + 0.1 * (np.array(p.names) == 'cylinders.lift.friction.scale')
    assert float(f(more)) == pytest.approx(1.1 * float(f(p.mean)), rel=1e-13)
    assert float(f(p.mean)) == pytest.approx(210 + 90 * 20 / (100.75) ** 2 + 33 + 5.5e-4 * 3e6, rel=1e-6)


def test_flows_of_the_named_valve() -> None:
    """Each valve has its own pressures and coefficient."""
    machine, p = two_cylinders(), column(4e6, 1e6, 2e6, 3e6)
    found = value(machine.circuit.valve_flows('tilt_valve', ca.SX(4.0), p), machine)
    coefficient = 16 / 60e3 / 9.9 / np.sqrt(3.5e6)
    np.testing.assert_allclose(found, [4 * coefficient * np.sqrt(10e6), -4 * coefficient * np.sqrt(2.9e6)], rtol=1e-12)


@pytest.mark.parametrize('command, target', [(4.0, 4.0), (12.0, 10.0), (-99.0, -10.0)])
def test_spool_follows_the_command_up_to_its_limit(command: float, target: float) -> None:
    """Eq. 17 with a lag of 4.5 ms."""
    rate = value(crane().circuit.spool_rate('lift_valve', ca.SX(1.0), ca.SX(command)), crane())
    assert rate[0] == pytest.approx((target - 1.0) / 4.5e-3, rel=1e-12)


def test_heights_never_turn_negative() -> None:
    np.testing.assert_allclose(value(crane().circuit.heights(column(-0.01)), crane()), [0.0, 0.545])
    np.testing.assert_allclose(value(crane().circuit.heights(column(0.6)), crane()), [0.6, 0.0])


def test_end_stops_push_back_and_never_pull() -> None:
    """1e7 N/m and 5e3 N s/m over the last 8 mm of 0.26 m; none inside the stroke; steel where none is described."""
    machine = load_machine('lut_simple_crane')
    force = lambda z, zd: value(machine.circuit.end_stop_forces(column(z), column(zd)), machine)[0]     # noqa: E731
    assert force(0.003, -0.1) == pytest.approx(1e7 * 0.005 + 5e3 * 0.1)
    assert force(0.26 - 0.003, 0.1) == pytest.approx(-(1e7 * 0.005 + 5e3 * 0.1))
    assert force(0.0079, 5.0) == 0.0 and force(0.26 - 0.0079, -5.0) == 0.0      # leaving fast: it does not stick
    assert force(0.1, -9.0) == 0.0
    steel = lambda z, zd: value(crane().circuit.end_stop_forces(column(z), column(zd)), crane())[0]     # noqa: E731
    assert steel(-0.001, -0.1) == pytest.approx(1e8 * 0.001 + 1e5 * 0.1) and steel(0.001, -1.0) == 0.0
