# SPDX-License-Identifier: Apache-2.0
"""Plants of machines with several cylinders: work is energy, pressures stay above 0, each valve has its own command."""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
import pytest
from core_support import two_cylinders
from machine_variants import changed
from scipy.integrate import cumulative_simpson

from mbse_ros.compiled import Kernel
from mbse_ros.errors import SettingError
from mbse_ros.machine import load_machine
from mbse_ros.simulation.crane import SimulatedCrane, cycle_by_name
from mbse_ros.simulation.cycle import Move, WorkCycle
from mbse_ros.simulation.plant import Plant


@cache
def plant(name: str) -> Plant:
    return Plant(load_machine(name))


@pytest.mark.parametrize('name, commands', [('patu655', [4.0, -4.0]), ('zx200', [6.0, -5.0, 5.0, 0.0]),
                                            ('zx200_can', [6.0, -5.0, 5.0, 0.0])])
def test_work_of_the_cylinders_is_the_change_of_energy(name: str, commands: list[float]) -> None:
    """0.4 s of all cylinders at once: kinetic and potential energy against the power of pressures and friction."""
    it, machine, load = plant(name), plant(name).machine, 150.0
    r, c, p, S = machine.reduced, machine.circuit, machine.parameters.mean, machine.piston_rates
    pressures = ca.SX.sym('p', len(machine.volumes))
    power = ca.dot(S @ r.zd, c.hydraulic_forces(pressures) - c.friction_forces(S @ r.zd, pressures))
    inputs = [machine.system.q, r.zd, pressures, machine.payload, machine.parameters.symbol]
    both = Kernel(ca.Function('both', inputs, [ca.dot(r.zd, r.Mbar @ r.zd) / 2 + machine.system.potential, power],
                              {'cse': True}), 'vm')
    x = it.start(machine.stroke @ [0.55, 0.45], load, p)
    work, energies = [], []
    for _ in range(801):
        _, _, zd, pressure, _ = it.split(x)
        energy, rate = both(it.coordinates(x), zd, pressure, np.array([load]), p)
        energies.append(energy.item())
        work.append(rate.item())
        x, _ = it.advance(x, np.array(commands), 5, load, p)
    done, gained = cumulative_simpson(work, dx=5e-4, initial=0), np.array(energies) - energies[0]
    assert np.ptp(gained) > 50.0     # J
    np.testing.assert_allclose(done, gained, atol=2e-5 * np.ptp(gained))


@pytest.mark.parametrize('name, cycle, stop', [
    ('lut_simple_crane', 'random', 10.0), ('patu655_lift', 'random', 24.0), ('patu655', 'random', 10.0),
    ('zx200', 'random', 6.0), ('zx200', 'dig', 22.0), ('zx200_can', 'random', 3.0)])
def test_pressures_stay_above_zero(name: str, cycle: str, stop: float) -> None:
    """Anti-cavitation valves feed what runs ahead of the pump; pistons stay inside their strokes."""
    machine = load_machine(name)
    crane = SimulatedCrane(machine, 0.3 * machine.description.payload.limits[1], 2, cycle_by_name(cycle, machine, 2),
                           plant=plant(name))
    frames = list(crane.advance(round(stop * 1e9)))
    assert min(frame.pressure.min() for frame in frames) > 0.0
    q = np.array([crane.plant.coordinates(crane._x)])[:, machine.pistons]
    assert (q > machine.stroke[:, 0]).all() and (q < machine.stroke[:, 1]).all()
    sent = np.array([list(frame.commands.values()) for frame in frames])
    assert (np.ptp(sent, axis=0) > 1.0).all()
    for one in range(sent.shape[1]):       # no valve repeats another one's command
        for other in range(one):
            assert np.abs(sent[:, one] - sent[:, other]).max() > 1.0


def test_each_valve_and_drive_has_its_own_moves() -> None:
    """Lift by the first valve, the tilt's own moves, in the frames as they were sent."""
    machine, it = two_cylinders(), Plant(two_cylinders(), 'vm')
    cycle = WorkCycle({'lift': 0.3, 'tilt': 0.5}, (Move(0.0, 0.1), Move(4.0, 0.4)),
                      {'tilt_valve': (Move(0.0, 0.2), Move(-3.0, 0.3))})
    frames = SimulatedCrane(machine, 20.0, 1, cycle, plant=it).run()
    sent = {name: np.array([frame.commands[name] for frame in frames]) for name in machine.commands}
    assert sent['command/lift_valve'].max() == pytest.approx(4.0) and sent['command/lift_valve'].min() == 0.0
    assert sent['command/tilt_valve'].min() < -2.0 and sent['command/tilt_valve'].max() == 0.0
    assert frames[0].position == pytest.approx([0.3 * 0.535, 0.5 * 0.5])
    assert frames[38].velocity[0] > 0.01 and frames[38].velocity[1] < -0.005
    alone = SimulatedCrane(machine, 20.0, 1, cycle, plant=it)
    for _ in range(20):
        frame = alone.frame({'tilt_valve': 3.0})
    assert frame.commands == {'command/lift_valve': 0.0, 'command/tilt_valve': 3.0}
    assert frame.velocity[1] > 0.02 > 10 * abs(frame.velocity[0])
    with pytest.raises(SettingError):
        SimulatedCrane(machine, 20.0, 1, WorkCycle(0.3, cycle.moves, {'arm_valve': cycle.moves}), plant=it)


def test_a_drive_follows_its_speed() -> None:
    """The swing of the excavator: a first-order lag of 0.15 s, whatever the boom does; at rest without a command."""
    it = plant('zx200')
    assert it.drives == ('swing_joint',)
    x = it.start(it.machine.stroke @ [0.6, 0.4], 300.0, it.machine.parameters.mean)
    x, _ = it.advance(x, np.array([5.0, 0.0, 0.0, 0.4]), 3000, 300.0, it.machine.parameters.mean)
    _, z, zd, _, _ = it.split(x)
    assert zd[0] == pytest.approx(0.4 * (1 - np.exp(-2.0)), rel=1e-6)
    assert z[0] == pytest.approx(0.4 * (0.3 - 0.15 * (1 - np.exp(-2.0))), rel=1e-6) and zd[1] > 0.005


def test_a_count_of_two_is_two_cylinders_between_the_same_pins() -> None:
    """The boom with two cylinders on one valve, written as one of count 2 and as two: the same motion."""
    parts = {'barrel_mass': '20 kg', 'rod_mass': '9 kg'}
    counted = changed('patu655_lift', {'cylinders/lift/count': 2,
                                       **{f'cylinders/lift/{key}': value for key, value in parts.items()}})
    cylinder = {'base': 'ground.cylinder_base', 'rod_eye': 'boom.rod_eye', 'bore': '100 mm', 'rod': '56 mm',
                'closed_length': '0.820 m', 'stroke': '0.535 m', **parts,
                'friction': {'coulomb': 210, 'static': 300, 'transition_velocity': '5 mm/s', 'viscous': 330,
                             'pressure_difference': 5.5e-4}}
    separate = changed('patu655_lift', {
        'cylinders/lift': cylinder, 'cylinders/second': cylinder, 'independent': ['lift'],
        **{f'hydraulics/volumes/lift_{side}/chambers': [f'lift.{side}', f'second.{side}']
           for side in ('piston', 'rod')}})
    assert separate.coordinates == ('lift',) and separate.cylinders == ('lift', 'second')
    ends = []
    for machine in (counted, separate):
        it, p = Plant(machine, 'vm'), machine.parameters.mean
        x = it.start(np.full(len(machine.cylinders), 0.2), 50.0, p)
        x, zdd = it.advance(x, np.array([5.0]), 3000, 50.0, p)
        _, z, zd, pressure, spool = it.split(x)
        ends.append(np.concatenate([z, zd, zdd, pressure, spool]))
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-9)
    assert ends[0][1] > 0.005
