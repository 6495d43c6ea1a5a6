# SPDX-License-Identifier: Apache-2.0
"""The package's plant under the commands of ``machine_commands``, beside the independent one of ``exudyn_machine``.

    python benchmarks/exudyn_machine.py zx200 --payload 800 --swing held -o exudyn.npz      # where Exudyn is installed
    tools/environment.sh python benchmarks/plants_agree.py zx200 --payload 800 -o ours.npz --with exudyn.npz

Prints the largest differences and ends with status 1 where lengths differ by more than 0.2 mm, joint angles by more
than 0.5 mrad or pressures by more than 20 kPa. ``ours.npz`` has the layout of ``exudyn_machine``, whose ``--compare``
takes it. The commands are those of the middle of each step of 0.1 ms. What no cylinder moves (the swing) is held by
its drive at speed 0, as close to ``--swing held`` as the plant has it. The plant's anti-cavitation valves, which the
other one does not have, open only where a pressure falls below the tank's: the lowest one is printed.

Found on 2026-11-22, largest differences over 10 s (Exudyn 1.13.6, step 0.25 ms; its own error by halving that is of
this size): patu655 with 300 kg 1e-5 mm, 4e-5 mrad, 0.045 kPa; zx200 with 800 kg, swing held, 6e-4 mm, 1.3e-3 mrad,
0.57 kPa. The lowest pressure of the excavator is 0.233 MPa, with the tank at 0.2 MPa.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from exudyn_machine import compare
from machine_commands import COMMANDS
from machine_oil import command

from mbse_ros.machine import Machine, load_machine
from mbse_ros.simulation.plant import STEP_NS, Plant

EVERY = 10      # steps between outputs: 1 ms
LIMITS = {'lengths': ('cylinders', 2e-4), 'angles': ('joints', 5e-4), 'pressures': ('volumes', 20e3)}


def run(machine: Machine, payload: float, duration: float) -> dict[str, np.ndarray]:
    """Time series over ``duration``, s, with a load, kg, from the file's initial position."""
    plant, tables, parameters = Plant(machine), COMMANDS[machine.name], machine.parameters.mean
    x = plant.start(machine.model.start.q[machine.pistons], payload, parameters)
    closed = np.array([c.closed_length.value for c in machine.description.cylinders.values()])
    joints = [name for name in machine.system.names if name not in machine.cylinders]
    places, dt, rows = [machine.system.names.index(name) for name in joints], STEP_NS * 1e-9, []
    for k in range(round(duration / dt) + 1):
        if k % EVERY == 0:
            q, (_, _, _, p, spools) = plant.coordinates(x), plant.split(x)
            rows.append(np.concatenate([[k * dt], q[machine.pistons] + closed, q[places], p, spools]))
        sent = [command(tables[name], (k + 0.5) * dt) for name in machine.valves]
        x, _ = plant.advance(x, np.array(sent + [0.0] * len(plant.drives)), 1, payload, parameters)
    names = {'cylinders': machine.cylinders, 'joints': joints, 'volumes': machine.volumes, 'valves': machine.valves}
    data, ends = np.array(rows), np.cumsum([1, *(len(item) for item in names.values())])
    parts = np.split(data, ends, axis=1)[1:]
    return {'t': data[:, 0], **dict(zip(('lengths', 'angles', 'pressures', 'spools'), parts)),
            **{key: np.array(item) for key, item in names.items()}}


def agree(one: str, other: str) -> bool:
    """Whether two runs keep the limits at their common times."""
    a, b = np.load(one), np.load(other)
    _, ia, ib = np.intersect1d(np.round(a['t'], 6), np.round(b['t'], 6), return_indices=True)
    return all(np.array_equal(a[names], b[names]) and np.abs(a[key][ia] - b[key][ib]).max() <= limit
               for key, (names, limit) in LIMITS.items())


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('machine', help='zx200, zx200_can, patu655, or a file')
    parser.add_argument('--payload', type=float, default=0.0, help='kg')
    parser.add_argument('--duration', type=float, default=10.0, help='s')
    parser.add_argument('--with', dest='other', default='', metavar='NPZ', help='output of exudyn_machine')
    parser.add_argument('-o', '--output', required=True, metavar='NPZ')
    settings = parser.parse_args()
    series = run(load_machine(settings.machine), settings.payload, settings.duration)
    np.savez_compressed(settings.output, **series)
    print(f'lowest pressure {1e-6 * series["pressures"].min():.3f} MPa')
    if not settings.other:
        return 0
    compare(settings.other, settings.output)
    return 0 if agree(settings.other, settings.output) else 1


if __name__ == '__main__':
    sys.exit(main())
