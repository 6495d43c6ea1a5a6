# SPDX-License-Identifier: Apache-2.0
"""A machine that Exudyn moves, with a boom that bends and a spring and a damper beside each piston, weighed.

    python benchmarks/exudyn_real.py patu655_lift --payload 200 --damper 100e3 --bending 2     # with Exudyn installed
    python benchmarks/exudyn_real.py patu655_lift --damper 100e3 --set observer.force_error=0 --bag lift

It shares no code with the package up to the log: see ``exudyn_machine``. The log goes through ``mbse estimate`` with
the file as it is, once for each kind of valve, and is kept with ``--bag``.

- ``--damper``, N s/m, and ``--spring``, N/m, at rest in the middle of the stroke: beside each piston.
- ``--bending``, Hz: the load is at the end of an arm without mass that turns about the pin of its body on a torsion
  spring, with 3 % of critical damping. With the machine held still, the load swings with this frequency. At rest at
  the start the load is where the file has it.
- Commands: ``machine_commands``, for other machines the first valve lifts, holds and lowers for 3 s, 2 s and 3 s.

Out: mass and interval, loads, how often the bands of 95 % hold the strokes and their speeds while the mass is UPDATING.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from exudyn_machine import MACHINES, THIN, Plant, _axes
from exudyn_weighing import EVERY, truth_of
from machine_commands import COMMANDS
from machine_oil import command
from machine_pose import place
from machine_reader import Machine, read_machine

import mbse_ros as mbse
from mbse_ros.machine import Machine as Described
from mbse_ros.machine import load_machine

DAMPING = 0.03          # of the critical damping of the arm
SHARE = 0.4             # of the stroke, where a machine starts whose file does not say
WITHIN = 1.959964
LIFTS = ((0.0, 0.0), (0.5, 0.0), (0.7, 4.0), (3.5, 4.0), (3.7, 0.0), (5.5, 0.0), (5.7, -4.0), (8.5, -4.0), (8.7, 0.0),
         (10.5, 0.0), (10.7, 4.0), (13.5, 4.0), (13.7, 0.0))


@dataclass(frozen=True)
class Beyond:
    """What the plant has beyond its file; SI, 0: nothing."""

    damper: float = 0.0
    spring: float = 0.0
    bending: float = 0.0


class RealPlant(Plant):
    """The plant with more than its file says. Raises ValueError for a boom that bends without a load."""

    def __init__(self, machine: Machine, payload: float, beyond: Beyond, swing: str = 'held') -> None:
        if beyond.bending and not payload > 0:
            raise ValueError(f'payload {payload}, expected a mass above 0 kg: it is what swings')
        self.beyond, self._carries = beyond, not beyond.bending
        super().__init__(machine, payload, swing)

    def _beside(self, cylinder, z: float, rate: float) -> float:
        return cylinder.count * (self.beyond.damper * rate + self.beyond.spring * (z - cylinder.stroke / 2.0))

    def _add_more(self, payload: float) -> None:
        """The load at the end of its arm; the spring carries its weight at the start."""
        if self._carries:
            return
        machine, (body, point) = self.machine, self.machine.payload
        joint = next(item for item in machine.joints.values() if item.child[0] == body and not item.loop)
        R, r = self.pose[body]
        load, pin = r + R @ point, place(machine, self.pose, joint.child)
        axis = self.pose[joint.parent[0]][0] @ joint.axis
        arm = (load - pin) - axis * float(axis @ (load - pin))
        inertia, omega = payload * float(arm @ arm), 2.0 * np.pi * self.beyond.bending
        weight = float(axis @ np.cross(load - pin, payload * machine.gravity))
        mass = self.inertia(mass=payload, com=np.zeros(3), inertiaTensor=THIN * payload * np.eye(3))
        tip = self.mbs.CreateRigidBody(name='load', referencePosition=load, referenceRotationMatrix=np.eye(3),
                                       inertia=mass, gravity=machine.gravity)
        self._generic(body, tip, pin, _axes(axis), [1, 1, 1, 1, 1, 0])
        self.mbs.CreateTorsionalSpringDamper(
            itemNumbers=[self.bodies[body], tip], position=pin, axis=axis, stiffness=inertia * omega ** 2,
            damping=2.0 * DAMPING * inertia * omega, offset=-weight / (inertia * omega ** 2))
        self.tip = tip


def machine_of(name: str) -> Machine:
    """A machine of the package, or a file, with commands and a place to start."""
    path = Path(name)
    machine = read_machine(path if path.suffix else MACHINES / f'{name}.yaml')
    valves = list(machine.valves)
    COMMANDS.setdefault(machine.name, {valve: LIFTS if k == 0 else ((0.0, 0.0),) for k, valve in enumerate(valves)})
    start = {key: SHARE * item.stroke for key, item in machine.cylinders.items()}
    return machine if machine.initial else replace(machine, initial=start)


def log_of(machine: Described, data: dict[str, np.ndarray], seed: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Samples by channel, SI, (times, values) at 100 Hz: those of the file's sensors with their noise, commands."""
    rng, t, truth = np.random.default_rng(seed), data['t'][::EVERY], truth_of(machine, data)
    found = {c.name: (t, truth[c.name] + c.sensor.stddev * rng.standard_normal(len(t))) for c in machine.all_channels}
    tables = COMMANDS[machine.name]
    return found | {name: (t, np.array([command(tables[name.split('/')[1]], time) for time in t]))
                    for name in machine.commands}


def held(machine: Described, found, data: dict[str, np.ndarray]) -> tuple[float, float]:
    """Shares of the UPDATING time in which bands hold the strokes and speeds, of the worst cylinder."""
    series, shares = {item.name: item for item in found.series()}, []
    updating = np.array(found.status) == 'updating'
    for kind in ('position', 'velocity'):
        for k, name in enumerate(str(item) for item in data['cylinders']):
            if name not in machine.coordinates:
                continue
            true = data['lengths'][:, k] - machine.description.cylinders[name].closed_length.value
            true = np.gradient(true, data['t']) if kind == 'velocity' else true
            own = series[f'{kind}/{name}']
            inside = np.abs(own.values - np.interp(found.t, data['t'], true)) <= WITHIN * own.stddev
            shares.append((kind, float(inside[updating].mean())))
    return tuple(min(share for own, share in shares if own == kind) for kind in ('position', 'velocity'))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('machine')
    parser.add_argument('--payload', type=float, default=200.0, help='kg [200]')
    for name, unit in (('damper', 'N s/m'), ('spring', 'N/m'), ('bending', 'Hz')):
        parser.add_argument(f'--{name}', type=float, default=0.0, help=f'{unit} [0]')
    parser.add_argument('--duration', type=float, default=14.0, help='s [14]')
    parser.add_argument('--step', type=float, default=5e-4, help='s [5e-4]')
    parser.add_argument('--seed', type=int, default=1, help="of the sensors' noise [1]")
    parser.add_argument('--set', action='append', default=[], help='as of mbse estimate; repeat it')
    parser.add_argument('--bag', help='folder for the log [none]')
    args = parser.parse_args()
    own = machine_of(args.machine)
    data = RealPlant(own, args.payload, Beyond(args.damper, args.spring, args.bending)).run(args.duration, args.step)
    samples = log_of(load_machine(args.machine), data, args.seed)
    with tempfile.TemporaryDirectory() as folder:
        bag = mbse.write_bag(args.bag or Path(folder) / 'log', samples, args.machine)
        for valve in ('orifice', 'unknown'):
            machine = load_machine(args.machine, valve)
            found = mbse.estimate(bag, machine, tuning=args.set)
            position, velocity = held(machine, found, data)
            print(f'{args.machine} {valve}, {args.payload:g} kg; bands of position {position:.2f}, of velocity '
                  f'{velocity:.2f}', *found.summary(), sep='\n  ', flush=True)


if __name__ == '__main__':
    main()
