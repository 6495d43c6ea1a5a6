# SPDX-License-Identifier: Apache-2.0
"""The plant of another program with a boom that bends and a spring and a damper beside the pistons, against balances
by hand; what needs that program is skipped where it is not installed."""

import exudyn_machine
import numpy as np
import pytest
from exudyn_real import LIFTS, SHARE, Beyond, RealPlant, log_of, machine_of
from machine_oil import friction
from machine_pose import holding_forces

from mbse_ros.machine import load_machine

LIFT, LOAD, STEP = 'patu655_lift', 200.0, 1e-3
WHY = 'Exudyn, an independent multibody program, is not installed (pip install exudyn)'


def pushed(data, place):
    """Force of the oil, N, speed, m/s, and length, m, at a row."""
    (one, two), (length,) = data['pressures'][place], data['lengths'][place]
    A1, A2 = machine_of(LIFT).cylinders['lift'].areas
    return A1 * one - A2 * two, float(np.gradient(data['lengths'][:, 0], data['t'])[place]), length


def moved(monkeypatch, beyond, table, seconds):
    pytest.importorskip('exudyn', reason=WHY)
    machine = machine_of(LIFT)
    monkeypatch.setitem(exudyn_machine.COMMANDS, LIFT, {'lift_valve': table})
    return RealPlant(machine, LOAD, beyond).run(seconds, STEP)


def test_at_rest_the_oil_carries_the_spring_too():
    """At 0.4 of the stroke it pulls out with a tenth of it."""
    machine = machine_of(LIFT)
    cylinder, force = machine.cylinders['lift'], 2e4 * 0.1 * 0.535
    plant = RealPlant.__new__(RealPlant)
    plant.beyond = Beyond(damper=1e5, spring=2e4)
    (_, plain), (_, sprung) = (exudyn_machine.start(machine, LOAD, *beside) for beside in ((), (plant._beside,)))
    A1, A2 = cylinder.areas
    assert A1 * plain[0] - A2 * plain[1] == pytest.approx(holding_forces(machine, machine.initial, LOAD)['lift'])
    assert A1 * (plain[0] - sprung[0]) == pytest.approx(force) and sprung[1] == plain[1]


def test_a_boom_without_a_load_does_not_bend():
    with pytest.raises(ValueError, match='payload 0.0, expected a mass above 0 kg'):
        RealPlant(machine_of(LIFT), 0.0, Beyond(bending=2.0))


def test_while_it_lifts_the_oil_carries_load_friction_spring_and_damper(monkeypatch):
    data = moved(monkeypatch, Beyond(damper=1e5, spring=2e4), ((0.0, 0.0), (0.2, 4.0)), 1.2)
    machine = machine_of(LIFT)
    cylinder = machine.cylinders['lift']
    force, speed, length = pushed(data, -10)
    z = length - cylinder.closed
    rubs = friction(cylinder, speed, *data['pressures'][-10])
    beside = 1e5 * speed + 2e4 * (z - cylinder.stroke / 2.0)
    assert force == pytest.approx(holding_forces(machine, {'lift': z}, LOAD)['lift'] + rubs + beside,
                                  abs=0.1 * 1e5 * speed) and speed > 0.02


def test_at_rest_nothing_moves_and_a_push_lets_the_load_swing_at_its_frequency(monkeypatch):
    """The oil gives way a little: the load on it swings 3 % slower than on a machine that is held."""
    data = moved(monkeypatch, Beyond(bending=2.0), ((0.0, 0.0), (0.1, 0.0), (0.12, 5.0), (0.25, 5.0), (0.27, 0.0)), 1.9)
    assert np.ptp(data['lengths'][data['t'] < 0.1]) < 1e-7
    after = data['t'] > 0.5
    pressure = data['pressures'][after, 0] - np.polyval(np.polyfit(data['t'][after], data['pressures'][after, 0], 1),
                                                        data['t'][after])
    spectrum = np.abs(np.fft.rfft(pressure * np.hanning(len(pressure)), 1 << 16))
    assert 1.85 < np.fft.rfftfreq(1 << 16, 1e-3)[spectrum.argmax()] < 2.0
    assert np.ptp(pressure) > 2e5


def test_the_log_has_all_channels_with_their_noise():
    machine, t = load_machine(LIFT, 'orifice'), np.arange(0.0, 10.0, 1e-3)
    data = {'t': t, 'lengths': np.full((len(t), 1), 0.82 + SHARE * 0.535), 'cylinders': np.array(['lift']),
            'angles': np.zeros((len(t), 1)), 'joints': np.array(['boom_joint']),
            'pressures': np.full((len(t), 2), [4e6, 2e6]), 'volumes': np.array(['lift_piston', 'lift_rod'])}
    machine_of(LIFT)
    log = log_of(machine, data, 1)
    assert set(log) == {*machine.channels, *machine.commands}
    off = log['pressure/lift_piston'][1] - 4e6
    assert off.std() == pytest.approx(12e3, rel=0.1) and len(off) == 1000
    assert log['position/lift'][1].mean() == pytest.approx(SHARE * 0.535, abs=1e-4)
    assert log['command/lift_valve'][1][200] == dict(LIFTS)[0.7] == 4.0
