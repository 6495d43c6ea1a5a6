# SPDX-License-Identifier: Apache-2.0
"""What a plant has beyond its file, each against a balance by hand on the crane with one cylinder."""

from __future__ import annotations

from math import exp, inf, nan, pi, sin

import casadi as ca
import numpy as np
import pytest
from core_support import crane, plant, simulate
from scipy.integrate import cumulative_simpson

from mbse_ros.errors import SettingError
from mbse_ros.machine import load_machine
from mbse_ros.simulation.added_physics import AddedPhysics
from mbse_ros.simulation.crane import SimulatedCrane, plant_of
from mbse_ros.simulation.physics import NOTHING, PlantPhysics
from mbse_ros.simulation.plant import Plant

AREAS = pi / 4 * 0.1 ** 2, pi / 4 * (0.1 ** 2 - 0.056 ** 2)
NOMINAL, PUMP, G = 24e-3 / 60, 10e6, 9.8066            # m3/s, Pa, m/s2
BOOM, CENTRE, TURNS, TIP, LOAD = 143.66, (1.229248, 0.055596), 67.053707, (2.89, 0.0246), 200.0
BEGIN = 0.16        # m


def moved(made: Plant, volts: float, ms: float, x: np.ndarray | None = None) -> np.ndarray:
    """State after a command, from rest."""
    p = made.machine.parameters.mean
    x = made.start(np.array([BEGIN]), LOAD, p) if x is None else x
    return made.advance(x, np.array([volts]), round(10 * ms), LOAD, p)[0]


def read(made: Plant, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return made.read(x, made.machine.parameters.mean)


def lever(z: float) -> tuple[float, float]:
    """Angle of the boom, rad, and its derivative by the stroke."""
    angles = [crane().position(np.array([z + step]))[0] for step in (-1e-5, 0.0, 1e-5)]
    return angles[1], (angles[2] - angles[0]) / 2e-5


def turned(place: tuple[float, float], angle: float) -> tuple[float, float]:
    """x and z of a point of the boom."""
    return (place[0] * np.cos(angle) - place[1] * np.sin(angle), place[0] * np.sin(angle) + place[1] * np.cos(angle))


def test_a_plant_without_is_that_of_the_file_and_its_sensors_see_it() -> None:
    assert AddedPhysics(NOTHING, crane()).names == () and not NOTHING.reads
    x = moved(plant(), 4.0, 300)
    _, z, _, p, _ = plant().split(x)
    assert len(x) == 6 and all(map(np.array_equal, read(plant(), x), (z, p)))


def test_pressure_is_lost_in_lines_with_the_flow_and_its_square() -> None:
    made = plant_of(crane(), physics=PlantPhysics(line_loss=2e5, line_turbulence=3e5))
    x = moved(made, 5.0, 1500)
    _, _, zd, p, _ = made.split(x)
    share = np.array(AREAS) * [zd[0], -zd[0]] / NOMINAL         # steady: nothing is compressed
    np.testing.assert_allclose(read(made, x)[1] - p, 2e5 * share + 3e5 * share * np.abs(share), rtol=0.03)
    assert share[0] > 0.4
    assert made.split(x)[1] == pytest.approx(plant().split(moved(plant(), 5.0, 1500))[1], abs=1e-12)


@pytest.mark.parametrize('velocity', [0.002, -0.004, 0.05])
def test_bristles_rub_as_the_file_at_constant_velocity_and_are_springs_at_first(velocity: float) -> None:
    stiffness, pressures = 5e6, (4e6, 1e6)
    added = AddedPhysics(PlantPhysics(bristles=stiffness), crane())
    bristle, v, p = ca.SX.sym('bristle'), ca.SX.sym('v'), ca.SX.sym('p', 2)
    found = ca.Function('f', [bristle, v, p, crane().parameters.symbol], list(added.resistance(bristle, 0.2, v, p)))
    level = 210 + 90 * exp(-(velocity / 5e-3) ** 2) + 5.5e-4 * 3e6
    force, rate = found(np.sign(velocity) * level / stiffness, velocity, pressures, crane().parameters.mean)
    assert float(rate) == pytest.approx(0.0, abs=1e-9)
    assert float(force) == pytest.approx(np.sign(velocity) * level + 330 * velocity)
    force, rate = found(1e-6, 0.0, pressures, crane().parameters.mean)
    assert float(force) == pytest.approx(stiffness * 1e-6) and float(rate) == 0.0
    assert float(found(0.0, velocity, pressures, crane().parameters.mean)[1]) == pytest.approx(velocity)


def test_a_pump_sags_with_the_flow_that_is_taken() -> None:
    made = plant_of(crane(), physics=PlantPhysics(sag=0.3))
    for volts, area in ((4.0, AREAS[0]), (-2.0, AREAS[1])):
        x = moved(made, volts, 1500)
        flow = area * abs(made.split(x)[2][0])
        assert 1e6 * x[-1] == pytest.approx(PUMP * (1.0 - 0.3 * flow / NOMINAL), rel=2e-3) and flow > 0.1 * NOMINAL
    assert moved(made, 0.0, 500)[-1] == pytest.approx(10.0)


def test_a_pump_ripples() -> None:
    made = plant_of(crane(), physics=PlantPhysics(ripple=3e5, ripple_rate=200.0))
    x = moved(made, 0.0, 1.2)
    assert x[-2] == pytest.approx(sin(2 * pi * 200 * 1.2e-3), abs=1e-5)
    states = ca.SX.sym('states', 2)
    pump = ca.Function('pump', [states], [made.added.oil.supplies(made.added.named(states))['pump']])
    assert float(pump(x[-2:])) == pytest.approx(PUMP + 3e5 * x[-2])


def test_a_base_that_is_accelerated_pushes_all_masses_back() -> None:
    made, z = plant_of(crane(), physics=PlantPhysics(base_acceleration=1.5)), BEGIN
    p, x = made.machine.parameters.mean, made.start(np.array([z]), LOAD, made.machine.parameters.mean)
    x[-2:] = 1.0, 0.0                   # where the base is accelerated most
    _, _, found = made._rhs()(x, 0.0, [LOAD, 0.0], p)
    angle, rate = lever(z)
    first = [rate * -turned(place, angle)[1] for place in (CENTRE, TIP)]        # dx/ds of boom and load
    inertia = rate ** 2 * (TURNS + BOOM * np.dot(CENTRE, CENTRE) + LOAD * np.dot(TIP, TIP))
    assert float(found) == pytest.approx(-1.5 * (BOOM * first[0] + LOAD * first[1]) / inertia, rel=1e-4)
    moved_on = moved(made, 0.0, 100)
    assert moved_on[-2] == pytest.approx(sin(2 * pi * 1.5 * 0.1), abs=1e-6)


def test_a_boom_that_bends_keeps_the_energy() -> None:
    """Power of the cylinder less that of the damping is the change of the energy; at rest the load hangs g / omega2
    lower."""
    made = plant_of(crane(), physics=PlantPhysics(bending=2.0))
    p, omega, live = made.machine.parameters.mean, 4 * pi, LOAD + 20.0
    stiffness, damping = live * omega ** 2, 2 * 0.03 * live * omega
    x = made.start(np.array([BEGIN]), LOAD, p)
    assert x[-2] == pytest.approx(-G / omega ** 2, rel=1e-6)
    assert abs(made.advance(x, np.zeros(1), 100, LOAD, p)[1][0]) < 1e-6
    pressures, v = ca.SX.sym('p', 2), ca.SX.sym('v')
    force = ca.Function('force', [v, pressures, crane().parameters.symbol], [
        crane().circuit.hydraulic_forces(pressures) - crane().circuit.friction_forces(v, pressures)])
    work, energy = [], []
    for volts in np.repeat([6.0, 0.0, -5.0, 0.0], 200):         # 1 ms each
        _, z, zd, pressure, _ = made.split(x)
        angle, rate = lever(z[0])
        spin, (w, wd) = rate * zd[0], x[-2:]
        inertia = TURNS + BOOM * np.dot(CENTRE, CENTRE) + LOAD * np.dot(TIP, TIP)
        kinetic = inertia * spin ** 2 / 2 + live * turned(TIP, angle)[0] * spin * wd + live * wd ** 2 / 2
        height = BOOM * turned(CENTRE, angle)[1] + LOAD * turned(TIP, angle)[1] + live * w
        energy.append(kinetic + G * height + stiffness * w ** 2 / 2)
        work.append(float(force(zd[0], pressure, p)) * zd[0] - damping * wd ** 2)
        x, _ = made.advance(x, np.array([volts]), 10, LOAD, p)
    done, gained = cumulative_simpson(work, dx=1e-3, initial=0), np.array(energy) - energy[0]
    assert np.ptp(gained) > 100.0
    np.testing.assert_allclose(done, gained, atol=2e-3 * np.ptp(gained))


def test_the_load_on_a_boom_that_bends_obeys_newton() -> None:
    """Fast, with the acceleration that the boom's turning gives its tip."""
    made = plant_of(crane(), physics=PlantPhysics(bending=2.0))
    before, after = (lever(BEGIN + step) for step in (-1e-3, 1e-3))
    x, omega, (angle, rate) = made.start(np.array([BEGIN]), LOAD, made.machine.parameters.mean), 4 * pi, lever(BEGIN)
    x[2], x[-2:] = 1.0, (-0.04, 0.3)        # m/s, m, m/s
    xd, _, zdd = (np.array(item).ravel() for item in made._rhs()(x, 0.0, [LOAD, 0.0], made.machine.parameters.mean))
    spun = rate * zdd[0] + (after[1] - before[1]) / 2e-3
    tip = turned(TIP, angle)[0] * spun - turned(TIP, angle)[1] * rate ** 2
    assert xd[-2] == pytest.approx(0.3) and abs(turned(TIP, angle)[1] * rate ** 2) > 1.0
    assert tip + xd[-1] + G == pytest.approx(0.04 * omega ** 2 - 2 * 0.03 * omega * 0.3, abs=1e-2)


def test_pins_lie_at_one_side_of_their_play() -> None:
    made = plant_of(crane(), physics=PlantPhysics(play=4e-3))
    x = moved(made, 4.0, 200)
    assert read(made, x)[0] - made.split(x)[1] == pytest.approx(2e-3)     # the cylinder pushes
    x[3:5] = 0.2, 6.0       # MPa: it pulls
    assert read(made, x)[0] - made.split(x)[1] == pytest.approx(-2e-3)


def test_pressure_sensors_lag() -> None:
    made, read_at = plant_of(crane(), physics=PlantPhysics(sensor_lag=0.02)), []
    x = moved(made, 0.0, 10)
    for _ in range(60):
        read_at.append((read(made, x)[1], made.split(x)[3]))
        x = moved(made, 6.0, 1, x)
    seen, true = (np.array(item) for item in zip(*read_at))
    lacking = cumulative_simpson(true - seen, dx=1e-3, axis=0, initial=0)
    np.testing.assert_allclose(0.02 * (seen - seen[0]), lacking, atol=1e-3 * np.ptp(lacking))
    assert np.abs(seen - true).max() > 1e5


def test_a_pressure_that_rises_is_read_too_low() -> None:
    made, width = plant_of(crane(), physics=PlantPhysics(hysteresis=5e4)), 5e4
    x = moved(made, 0.0, 1)
    begin = made.split(x)[3][0]
    for _ in range(15):
        x = moved(made, 6.0, 1, x)
        true, seen = made.split(x)[3][0], read(made, x)[1][0]
        assert seen == pytest.approx(true - width * (1.0 - exp((begin - true) / width)), abs=100.0)
    assert true - begin > 2 * width


def test_a_load_holding_valve_is_closed_until_its_pilot_opens_it() -> None:
    """Never opened, the piston stays, and the rod side has the pump's pressure; oil that comes in passes."""
    shut = plant_of(crane(), physics=PlantPhysics(holding=5.0, holding_ratio=0.0))
    begin, end = (shut.split(moved(shut, volts, 400)) for volts in (0.0, -5.0))
    assert abs(end[1][0] - begin[1][0]) < 2e-3 and end[3][1] == pytest.approx(PUMP, rel=1e-2)
    assert plant().split(moved(plant(), -5.0, 400))[1][0] < BEGIN - 0.01
    up, file = (made.split(moved(made, 4.0, 400)) for made in (shut, plant()))
    assert up[1] == pytest.approx(file[1], abs=1e-6)


def test_a_load_holding_valve_is_an_orifice_behind_that_of_the_spool() -> None:
    """What leaves at constant speed, by the spool's opening and that of the poppet in series."""
    made = plant_of(crane(), physics=PlantPhysics(holding=2.0, holding_ratio=2.0))
    x = moved(made, -4.0, 500)
    _, _, zd, (piston, rod), (spool,) = made.split(x)
    poppet = (piston + 2.0 * rod - 2.0 * PUMP) / (0.5 * 2.0 * PUMP)
    assert 0.1 < poppet < 0.9 and x[-1] == pytest.approx(poppet, rel=0.02)
    full = NOMINAL / np.sqrt(3.5e6)
    both = 1.0 / np.sqrt(1.0 / (full * -spool / 9.9) ** 2 + 1.0 / (full * poppet) ** 2)
    assert -AREAS[0] * zd[0] == pytest.approx(both * np.sqrt(piston - 1e5), rel=0.02)


def test_a_pump_follows_the_load_with_its_margin() -> None:
    made = plant_of(crane(), physics=PlantPhysics(sensing=2e6))
    x = moved(made, 0.0, 500)
    assert x[-1] == pytest.approx(2.0)
    for volts, side in ((3.0, 0), (-3.0, 1)):
        x = moved(made, volts, 1500)
        assert 1e6 * x[-1] == pytest.approx(made.split(x)[3][side] + 2e6, rel=0.01) and x[-1] < 9.0
    most = plant_of(crane(), physics=PlantPhysics(sensing=2e7))
    np.testing.assert_allclose(moved(most, 4.0, 300)[:6], moved(plant(), 4.0, 300), rtol=1e-12)


def test_a_hose_is_a_tube_of_oil_that_is_inert_elastic_and_rubs() -> None:
    """Of the bore at which the nominal flow has 5 m/s, with Hagen-Poiseuille's loss."""
    made, length = plant_of(crane(), physics=PlantPhysics(hose=4.0)), 4.0
    d = np.sqrt(4.0 * NOMINAL / (pi * 5.0))
    loss = 128.0 * 0.04 * length / (pi * d ** 4)
    x = moved(made, 4.0, 1500)
    flow = np.array(AREAS) * [1.0, -1.0] * made.split(x)[2][0]
    np.testing.assert_allclose(x[-2:], flow, rtol=0.03)
    np.testing.assert_allclose(read(made, x)[1] - made.split(x)[3], loss * x[-2:], rtol=0.03)
    x[-4:-2] += 0.5, -0.3       # MPa
    x[-2:] += 1e-5, 2e-5        # m3/s
    slopes = np.array(made._rhs()(x, 4.0, [LOAD, 0.0], made.machine.parameters.mean)[0]).ravel()
    there, cylinder = 1e6 * x[-4:-2], made.split(x)[3]
    np.testing.assert_allclose(slopes[-2:], (there - cylinder - loss * x[-2:]) / (
        870.0 * length * 4.0 / (pi * d ** 2)), rtol=1e-6)
    assert slopes[3] * (AREAS[0] * x[1] * (1 / 1650 + 1 / 2.1e5) + 1.90019e-4 * (1 / 1650 + 1 / 700)) == (
        pytest.approx(x[-2] - AREAS[0] * x[2], rel=1e-6))
    spool = x[5] / 9.9 * NOMINAL / np.sqrt(3.5e6)
    valve = spool * np.array([np.sqrt(PUMP - there[0]), -np.sqrt(there[1] - 1e5)])
    np.testing.assert_allclose(1e6 * slopes[-4:-2], (valve - x[-2:]) / (pi * d ** 2 / 4.0 * length / 7e8), rtol=1e-6)


def test_air_in_oil_is_compressed_as_a_gas() -> None:
    made, p = plant_of(crane(), physics=PlantPhysics(air=0.02)), ca.SX.sym('p')
    air = ca.Function('air', [p], [made.added.oil.air(p)])
    gas = [0.02 * (101325.0 / at) ** (1 / 1.4) for at in (0.99e6, 1.01e6)]
    assert float(air(1e6)) == pytest.approx((gas[0] - gas[1]) / 2e4, rel=1e-3)
    assert float(air(-3e5)) == float(air(1e4)) > 1e-6
    x, numbers = made.start(np.array([BEGIN]), LOAD, made.machine.parameters.mean), made.machine.parameters.mean
    x[2] = 0.05     # m/s: only the piston changes a pressure
    rates = [np.array(one._rhs()(x, 0.0, [LOAD, 0.0], numbers)[0]).ravel()[3:5] for one in (made, plant())]
    chambers = np.array([AREAS[0] * BEGIN, AREAS[1] * (0.535 - BEGIN)])
    file = (chambers + 1.90019e-4) / 1650e6 + chambers / 2.1e11 + 1.90019e-4 / 700e6
    more = (chambers + 1.90019e-4) * np.array([float(air(1e6 * at)) for at in x[3:5]])
    np.testing.assert_allclose(rates[0] / rates[1], file / (file + more), rtol=1e-6)
    assert rates[0][1] / rates[1][1] < 0.9


@pytest.mark.parametrize('bristles', [0.0, 5e6])
def test_cold_oil_rubs_more_until_it_is_warm(bristles: float) -> None:
    """1.5 times more at the start, by 1 / e of that after the time constant; bristles at the end of their way."""
    made = plant_of(crane(), physics=PlantPhysics(bristles=bristles, cold=1.5, cold_time=0.2))
    warm = 210 + 90 * exp(-100) + 5.5e-4 * 3e6 + 330 * 0.05
    v, states, p = ca.SX.sym('v'), ca.SX.sym('states', len(made.added.names)), ca.SX.sym('p', 2)
    force = ca.Function('force', [states, v, p, made.machine.parameters.symbol], [
        made.added.resistance(states, 0.2, v, p)[0]])
    for ms, more in ((0, 1.5), (200, 1.5 / np.e)):
        x = moved(made, 0.0, ms)[6:]
        assert x[-1] == pytest.approx(more, rel=1e-6)
        x[:-1] = (1.0 + more) * (warm - 330 * 0.05) / 5e6       # of bristles that slip
        assert float(force(x, 0.05, (4e6, 1e6), made.machine.parameters.mean)) == pytest.approx(
            (1.0 + more) * warm, rel=2e-3)


def test_sensors_of_a_simulated_crane_read_what_the_plant_lets_them_see() -> None:
    made = plant_of(crane(), physics=PlantPhysics(play=4e-3))
    other = SimulatedCrane(crane(), 50.0, 1, plant=made).run()[:100]
    for one, two in zip(simulate(50.0, 1), other):
        assert two.samples['position/lift'] - one.samples['position/lift'] == pytest.approx(2e-3, abs=1e-6)
        assert np.array_equal(one.position, two.position)


def test_a_machine_with_more_cylinders_has_states_for_all() -> None:
    everything = PlantPhysics(1e5, 1e5, 5e6, 0.3, 1e5, base_acceleration=1.0, bending=2.0, play=1e-3, sensor_lag=0.01,
                              hysteresis=1e4, holding=0.7, sensing=2e6, hose=2.0, air=0.01, cold=1.0)
    machine = load_machine('patu655', 'orifice')
    made = plant_of(machine, 'vm', everything)
    assert len(made.added.names) == 2 + 2 + 1 + 2 + 2 + 4 + 4 + 2 + 8 + 1
    p = made.machine.parameters.mean
    x, _ = made.advance(made.start(np.array([0.2, 0.4]), LOAD, p), np.array([4.0, -3.0]), 200, LOAD, p)
    assert np.isfinite(x).all() and np.isfinite(np.concatenate(read(made, x))).all()


@pytest.mark.parametrize('options', [
    {'bending': nan}, {'sag': 1.5}, {'play': -1.0}, {'ripple': inf}, {'bristles': '1'}, {'hose': 0.1},
    {'cold_time': 0.0}])
def test_bad_numbers_are_refused(options) -> None:
    with pytest.raises(SettingError, match=next(iter(options))):
        PlantPhysics(**options)
