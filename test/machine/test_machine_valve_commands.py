# SPDX-License-Identifier: Apache-2.0
"""Commands of valves for wanted speeds: the flows of the circuit at the pressures that they bring, and the plant."""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
import pytest
from machine_variants import changed
from scipy.optimize import brentq

from mbse_ros.errors import DescriptionError, SettingError
from mbse_ros.machine import Machine, load_machine
from mbse_ros.machine.valve_commands import ValveFeedForward
from mbse_ros.simulation.crane import plant_of

VALVE = 'hydraulics/valves/lift_valve'
KINDS = {'orifice': {}, 'band': {f'{VALVE}/dead_band': '1.5 V'},
         'edges': {f'{VALVE}/gains': {'pump_a': 1.2, 'a_tank': 0.7, 'pump_b': 0.9, 'b_tank': 1.6}},
         'compensated': {f'{VALVE}/kind': 'compensated'}}
SHARES = -0.6, 0.1, 0.6, 0.996, 1.3      # of the largest force of the oil on the rod


@cache
def lift(kind: str) -> tuple[Machine, ca.Function, np.ndarray]:
    """A machine with such a valve, its flows at a spool and pressures, areas of piston and rod side."""
    machine = changed('patu655_lift', KINDS[kind])
    spool, p = ca.SX.sym('spool'), ca.SX.sym('p', 2)
    flows = machine.circuit.valve_flows('lift_valve', spool, p)
    values = machine.parameters
    areas = ca.Function('areas', [values.symbol], [machine.circuit.areas()])(values.mean).full().ravel()
    return machine, ca.Function('flows', [spool, p, values.symbol], [flows]), areas


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('share', SHARES)
@pytest.mark.parametrize('speed', (0.002, 0.03, 0.08, -0.002, -0.03, -0.08))
def test_the_circuit_has_these_flows_at_this_command(kind: str, share: float, speed: float) -> None:
    """By the edge to the tank the pressures at which it has its flow and the oil its force; the edge from the pump then
    has its own. Where a load pulls, that chamber is as empty as the tank, and gets less."""
    machine, flows, (big, small) = lift(kind)
    force = share * big * machine.hydraulics.supplies['pump'].value
    found = ValveFeedForward(machine)(np.array([speed]), forces=np.array([force]))
    if not found.shares[0]:
        assert found.commands[0] == 0.0 and force * speed > 0.0     # more than the pump has
        return
    assert np.sign(found.commands[0]) == np.sign(speed) and abs(found.commands[0]) <= 10.0
    out = speed > 0.0
    asked, tank = found.shares[0] * speed * np.array([big, -small]), machine.hydraulics.supplies['tank'].value

    def at(pa: float) -> np.ndarray:
        return flows(found.commands[0], [pa, (big * pa - force) / small], machine.parameters.mean).full().ravel()
    lowest = (force + small * tank) / big if out else tank
    pa = brentq(lambda p: (at(p) - asked)[int(out)], lowest, 2e8, xtol=1e-4)
    pumped = pa if out else (big * pa - force) / small
    assert pumped > tank * (1 - 1e-5)
    exact = at(pa)[int(not out)] == pytest.approx(asked[int(not out)], rel=1e-6)
    assert exact or pumped == pytest.approx(tank, rel=1e-5) and at(pa)[int(not out)] < asked[int(not out)]


@pytest.mark.parametrize('name, speeds', [
    ('patu655_lift', (0.04,)), ('patu655_lift', (-0.04,)), ('patu655', (0.03, -0.02)), ('zx200', (0.05, 0.04, -0.06))])
def test_a_plant_moves_at_the_wanted_speeds(name: str, speeds: tuple[float, ...]) -> None:
    """Commands by the pressures of each instant, 100 times a second, from rest: the speeds over the last half second,
    although pressures, levers and friction change."""
    machine = load_machine(name)
    forward, plant, numbers = ValveFeedForward(machine), plant_of(machine), machine.parameters.mean
    x = plant.start(machine.stroke[:len(speeds), 1] / 2, 100.0, numbers)
    wanted, places = np.array(speeds), []
    for _ in range(150):
        commands = forward(wanted, pressures=plant.split(x)[3]).commands
        x, _ = plant.advance(x, np.concatenate([commands, np.zeros(len(plant.drives))]), 100, 100.0, numbers)
        places.append(plant.coordinates(x)[machine.pistons])
    assert (np.array(places[-1]) - places[-51]) / 0.5 == pytest.approx(wanted, rel=0.06)


def test_more_than_the_valve_gives_is_told() -> None:
    machine, _, _ = lift('orifice')
    forward = ValveFeedForward(machine)
    slow, fast = (forward(np.array([v]), forces=np.array([30e3])) for v in (0.04, 0.5))
    assert slow.shares[0] == 1.0 and fast.commands[0] == 10.0
    assert fast.shares[0] * 0.5 == pytest.approx(0.04 * 10.0 / slow.commands[0], rel=0.05)


def test_what_has_no_command_is_refused() -> None:
    forward = ValveFeedForward(lift('orifice')[0])
    for words in ({}, {'pressures': np.ones(2), 'forces': np.ones(1)}):
        with pytest.raises(SettingError, match='either pressures or forces'):
            forward(np.array([0.1]), **words)
    with pytest.raises(SettingError, match='speeds: .* 1 finite numbers'):
        forward(np.array([np.nan]), forces=np.ones(1))
    with pytest.raises(DescriptionError, match=r'lift_valve.kind: got .unknown., expected orifice or compensated'):
        ValveFeedForward(load_machine('patu655_lift', 'unknown'))
