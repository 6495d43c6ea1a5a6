# SPDX-License-Identifier: Apache-2.0
"""How well do cylinders follow a motion: by raw sensors, by the estimate, and by it with the feed-forward of its load?

    tools/environment.sh python benchmarks/tracking.py [--machine zx200,patu655] [--seeds 2] [--page F]

All cylinders of the simulated machine follow sines of their own, 24 s, 100 Hz, while the load changes unseen from a
tenth to half of the largest and back. ``raw``: a proportional controller on the sensors with the valve's nominal speed
per volt. ``estimate``: one on the estimated positions, the command by ``ValveFeedForward`` against the
estimated pressures. ``load``: against the forces that ``FeedForward`` plans for the estimated load, and friction; while
the mass is not known, as ``estimate``. RMS of the true pistons' distance from the wanted ones, mm, from 2 s on.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from pathlib import Path

import casadi as ca
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mbse_ros.machine import Machine, load_machine
from mbse_ros.machine.feed_forward import FeedForward
from mbse_ros.machine.valve_commands import ValveFeedForward
from mbse_ros.monitor.faults import GATED, PayloadStatus
from mbse_ros.report.files import write_between
from mbse_ros.simulation.crane import SimulatedCrane, plant_of
from mbse_ros.simulation.cycle import Move, WorkCycle
from mbse_ros.streams.pipeline import Pipeline

GAINS = {'raw': 4.0, 'estimate': 1.0, 'load': 2.0}     # 1/s, of the distance: the best of 1, 2, 4 for each way
WORDS = {'raw': 'raw sensors', 'estimate': 'estimate, valves by its pressures',
         'load': 'estimate, valves by the load and the motion'}
SECONDS, SETTLED = 24.0, 2.0
SWING = 0.12            # of the stroke, amplitude of the sines
SLOWEST = 5.0           # s, period of the first cylinder's; each next is 0.8 times as long, ...
FASTEST = 0.4           # ... but no faster than this share of the speed at the valve's nominal flow
LOADS = 0.1, 0.5, 0.1   # of the largest, for a third of the time each


def wanted(machine: Machine, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, speeds, accelerations (c,) of the pistons, m and s, that begin at rest."""
    stroke = machine.stroke[:, 1]
    size = SWING * stroke
    rate = np.minimum(2 * np.pi / (SLOWEST * 0.8 ** np.arange(len(stroke))), FASTEST * nominal_speeds(machine) / size)
    return (stroke / 2 + size * (1 - np.cos(rate * t)), size * rate * np.sin(rate * t),
            size * rate ** 2 * np.cos(rate * t))


def nominal_speeds(machine: Machine) -> np.ndarray:
    """Speeds (c,), m/s, out at the nominal flow of each cylinder's valve."""
    areas = np.array([cylinder.piston_area for cylinder in machine.description.cylinders.values()])
    return np.array([valve.nominal_flow.value for valve in machine.hydraulics.valves.values()]) / areas


class Controller:
    """Commands of the valves, V, from what is known 100 times a second; ``way`` of GAINS."""

    def __init__(self, machine: Machine, way: str) -> None:
        self.machine, self.way, self.pipeline = machine, way, Pipeline(machine)
        self.valves, self.forward = ValveFeedForward(machine), FeedForward(machine)
        full = np.array([valve.nominal_command.value for valve in machine.hydraulics.valves.values()])
        self._per_speed = full / nominal_speeds(machine)       # V s/m
        v, p = ca.SX.sym('v', len(machine.cylinders)), ca.SX.sym('p', len(machine.volumes))
        self._friction = ca.Function('friction', [v, p, machine.parameters.symbol], [
            machine.circuit.friction_forces(v, p)])
        self._state, self._mass, self._q = None, None, None

    def take(self, stamp: int, samples: dict[str, float], commands: dict[str, float]) -> None:
        """Samples of an instant, SI, into the estimate."""
        for channel, value in (*commands.items(), *samples.items()):
            for output in self.pipeline.add(channel, stamp, value):
                self._state, payload = output.state, output.payload
                good = payload.status in (PayloadStatus.UPDATING, *GATED) and np.isfinite(payload.mass)
                self._mass = max(payload.mass, 0.0) if good else None

    def __call__(self, t: float, samples: dict[str, float]) -> np.ndarray:
        """Commands (v,) at a time; what is not estimated yet is measured."""
        machine, (s, v, a), gain = self.machine, wanted(self.machine, t), GAINS[self.way]
        here = np.array([samples[f'position/{name}'] for name in machine.cylinders])
        if self.way == 'raw' or self._state is None:
            return self._per_speed * (v + gain * (s - here))
        entries = dict(zip(self._state.names, self._state.mean[-1].tolist()))
        here = np.array([entries[f'position/{name}'] for name in machine.cylinders])
        speeds = v + gain * (s - here)
        pressures = np.array([entries[f'pressure/{name}'] for name in machine.volumes])
        if self.way == 'estimate' or self._mass is None:
            return self.valves(speeds, pressures).commands
        z = np.array([entries[f'position/{name}'] for name in machine.coordinates])
        zd, zdd = np.zeros((2, len(z)))
        zd[machine.actuated], zdd[machine.actuated] = v, a
        self._q = machine.position(z, self._q)
        forces = self.forward(self._q, self._mass, zd=zd, zdd=zdd).forces
        friction = self._friction(speeds, pressures, machine.parameters.mean).full().ravel()
        return self.valves(speeds, forces=forces + friction).commands


def run(name: str, way: str, seed: int) -> np.ndarray:
    """RMS (c,), mm, of one run."""
    machine = load_machine(name)
    _, high = machine.payload_data.limits
    still = WorkCycle(0.5, (Move(0.0, SECONDS),))
    crane = SimulatedCrane(machine, LOADS[0] * high, seed, still, plant=plant_of(machine))
    controller, errors, commands = Controller(machine, way), [], np.zeros(len(machine.valves))
    for k in range(round(SECONDS * 100)):
        t = 0.01 * k
        crane.payload = high * LOADS[min(int(3 * t / SECONDS), 2)]
        frame = crane.frame(dict(zip(machine.valves, commands.tolist())))
        controller.take(frame.stamp_ns, frame.samples, frame.commands)
        commands = controller(t, frame.samples)
        if t > SETTLED:
            errors.append(crane.coordinates[machine.pistons] - wanted(machine, t + 0.01)[0])
    return 1e3 * np.sqrt(np.mean(np.square(errors), axis=0))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--machine', default='zx200,patu655')
    parser.add_argument('--seeds', type=int, default=2)
    parser.add_argument('--page', type=Path)
    given = parser.parse_args()
    names = given.machine.split(',')
    rows = [f'{datetime.date.today().isoformat()}, `python benchmarks/tracking.py`:', '',
            f'| distance, RMS, mm | {" | ".join(names)} |', '|---' * (1 + len(names)) + '|']
    for way in GAINS:
        found = [np.mean([run(name, way, seed) for seed in range(1, given.seeds + 1)], axis=0) for name in names]
        cells = [', '.join(f'{item:.2g}' for item in one) for one in found]
        rows.append(f'| {WORDS[way]} | {" | ".join(cells)} |')
        print(rows[-1], flush=True)
    if given.page:
        write_between(given.page, 'tracking', '\n'.join(rows))


if __name__ == '__main__':
    main()
