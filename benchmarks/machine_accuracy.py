# SPDX-License-Identifier: Apache-2.0
"""Accuracy and honesty of observer and payload on simulated machines, the payload not known to the observer.

    tools/environment.sh python benchmarks/machine_accuracy.py --machine zx200 --cycle dig --valve orifice unknown
    tools/environment.sh python benchmarks/machine_accuracy.py --seeds 3 --set acceleration_psd=20 --json out.json

For each machine, cycle and kind of valve, over the stamps after the first second, per coordinate: root mean square
error of the position over the standard deviation of its sensor (rounding included), that of the speed of the pistons
that it moves (mm/s; mrad/s where no cylinder moves it), the shares of position and velocity inside their 95 % bands.
Then the mean NEES of positions, velocities, accelerations and pressures over their number, and the mass at the end:
its error and its interval, kg, and where the samples of the mass went (`dig` takes a load and drops it: the filter, of
5 s of motion, holds both then, and its error says nothing). `*`: outside what is required (see ``LIMITS``).

A cycle of 24 s takes about 30 s of computing for an excavator; ``--keep DIRECTORY`` keeps the simulated samples for
the next run.
"""

from __future__ import annotations

import argparse
import json
import pickle
from collections import Counter
from dataclasses import fields
from functools import cache
from itertools import product
from pathlib import Path

import casadi as ca
import numpy as np

from mbse_ros.errors import PositionProblemError
from mbse_ros.filters.hydraulic_state import direct
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.machine import Machine, load_machine
from mbse_ros.payload.mass import PayloadSettings
from mbse_ros.simulation.crane import SensorFrame, SimulatedCrane, cycle_by_name, plant_of
from mbse_ros.simulation.plant import Plant
from mbse_ros.streams.interpolation import InterpolationSettings
from mbse_ros.streams.pipeline import Output, Pipeline
from mbse_ros.studies.many import add_workers, many

CYCLES = {'patu655_lift': ('boom', 'random'), 'patu655': ('boom', 'random'), 'zx200': ('dig', 'boom', 'random'),
          'zx200_can': ('dig', 'boom', 'random')}
PAYLOADS = {'patu655_lift': 50.0, 'patu655': 100.0}
SKIP, BAND = 100, 1.959964      # first stamps that do not count; 95 %
LIMITS = {'orifice': (0.3, 3.0), 'unknown': (0.6, 12.0)}
"""Largest error of the position in sensor deviations, and of the piston speed, mm/s."""
INSIDE = 0.92, 0.98


@cache
def machine_of(name: str, valve: str | None = None) -> Machine:
    """A machine with a kind of valve."""
    return load_machine(name, valve)


@cache
def plant(name: str) -> Plant:
    """Its plant, compiled once."""
    return plant_of(machine_of(name))


def frames_of(name: str, cycle: str, seed: int, payload: float, keep: Path | None) -> list[SensorFrame]:
    """Samples and truth of a run, from ``keep`` where they are there."""
    path = keep / f'{name}-{cycle}-{seed}-{payload:g}.pickle' if keep else None
    if path and path.exists():
        return pickle.loads(path.read_bytes())
    machine = machine_of(name)
    frames = SimulatedCrane(machine, payload, seed, cycle_by_name(cycle, machine, seed), plant=plant(name)).run()
    if path:
        path.write_bytes(pickle.dumps(frames))
    return frames


def piston_rates(machine: Machine, positions: np.ndarray) -> np.ndarray:
    """Derivatives (n, cylinders, g) of the pistons by the coordinates (n, g) along a motion."""
    system, g = machine.system, len(machine.coordinates)
    near, z = ca.SX.sym('near', len(system.dependent)), ca.SX.sym('z', g)
    q = machine.closed(near, z)
    S = ca.substitute(ca.densify(machine.piston_rates), system.q, q)
    function = ca.Function('rates', [near, z, machine.parameters.symbol], [S, q[system.dependent]])
    last, found = machine.position(positions[0])[system.dependent], []
    for row in positions:
        S, last = function(last, row, machine.parameters.mean)
        found.append(S.full())
    return np.array(found)


def estimate(name: str, valve: str, frames: list[SensorFrame], interpolation: InterpolationSettings,
             observer: ObserverSettings, payload: PayloadSettings) -> list[Output]:
    """The whole chain over the samples."""
    pipeline, outputs = Pipeline(machine_of(name, valve), interpolation, observer, payload), []
    channels = pipeline.machine.channels
    for frame in frames:
        for channel in pipeline.machine.commands:
            outputs += pipeline.add(channel, frame.stamp_ns, frame.commands[channel])
        for channel in channels:
            outputs += pipeline.add(channel, frame.stamp_ns, frame.samples[channel])
    return outputs


def run(job: tuple) -> dict:
    """All figures of one run."""
    name, cycle, valve, seed, payload, *settings, keep = job
    machine, frames = machine_of(name, valve), frames_of(name, cycle, seed, payload, keep)
    outputs = estimate(name, valve, frames, *settings)
    by_stamp = {f.stamp_ns: f for f in frames}
    pairs = [(o.state, by_stamp[o.state.stamp_ns]) for o in outputs if o.state.stamp_ns in by_stamp][SKIP:]
    g, n = len(machine.coordinates), 3 * len(machine.coordinates) + len(machine.volumes)
    truth = np.array([np.concatenate([f.position, f.velocity, f.acceleration, f.pressure]) for _, f in pairs])
    error = np.array([s.mean[-1, :n] for s, _ in pairs]) - truth
    P = np.array([s.covariance[:n, :n] for s, _ in pairs])
    stddev = np.sqrt(P[:, range(n), range(n)])
    z = error / stddev
    inside = (np.abs(z) < BAND).mean(axis=0)
    scaled = P / (stddev[:, :, None] * stddev[:, None, :])
    nees = np.einsum('ki,ki->k', z, np.linalg.solve(scaled, z[..., None])[..., 0])
    sensors = {entry.partition('/')[2]: channel.sensor.noise for entry, channel in direct(machine).items()
               if entry.startswith('position/')}
    try:
        levers = np.sqrt((piston_rates(machine, truth[:, :g]) ** 2).sum(axis=1))
    except PositionProblemError:
        levers = np.ones((len(truth), g))
    free = [k for k in range(g) if k not in machine.actuated]
    levers[:, free] = 1.0
    speeds = error[:, g:2 * g] * levers
    last, truth_mass = outputs[-1].payload, frames[-1].payload
    return {'machine': name, 'cycle': cycle, 'valve': valve, 'seed': seed, 'payload': payload,
            'coordinates': machine.coordinates, 'free': free,
            'sigma': [sensors.get(c, float('nan')) for c in machine.coordinates],
            'square': np.mean(error[:, :g] ** 2, axis=0).tolist(), 'speed': np.mean(speeds ** 2, axis=0).tolist(),
            'position': inside[:g].tolist(), 'velocity': inside[g:2 * g].tolist(),
            'acceleration': inside[2 * g:3 * g].tolist(), 'pressure': inside[3 * g:].tolist(),
            'nees': float(nees.mean()) / n, 'states': n, 'mass': last.mass - truth_mass, 'lower': last.lower,
            'upper': last.upper, 'samples': last.samples,
            'stages': Counter(o.payload.status.name for o in outputs)}


def table(rows: list[dict]) -> None:
    """One line for each machine, cycle and valve."""
    for key in dict.fromkeys((r['machine'], r['cycle'], r['valve'], r['payload']) for r in rows):
        some = [r for r in rows if (r['machine'], r['cycle'], r['valve'], r['payload']) == key]
        near, fast = LIMITS[key[2]]
        mean = {name: np.mean([r[name] for r in some], axis=0) for name in (
            'square', 'speed', 'position', 'velocity', 'acceleration', 'pressure')}
        position = np.sqrt(mean['square']) / some[0]['sigma']
        speed = 1e3 * np.sqrt(mean['speed'])
        moved = [k not in some[0]['free'] for k in range(len(speed))]
        print('{:12} {:6} {:7} {:5g} kg'.format(*key), 'rms/sigma', _cells(position, 0.0, near, '5.2f'), '| v',
              _cells(speed, 0.0, [fast if m else np.inf for m in moved], '5.1f'), '| in: x',
              _cells(mean['position'], *INSIDE, '5.3f'), 'v', _cells(mean['velocity'], *INSIDE, '5.3f'),
              f'a {mean["acceleration"].min():.2f}-{mean["acceleration"].max():.2f}',
              f'p {mean["pressure"].min():.2f}-{mean["pressure"].max():.2f}',
              f'| NEES/n {np.mean([r["nees"] for r in some]):.2f}', flush=True)
        for r in some:
            print(f'      mass, seed {r["seed"]}: error {r["mass"]:8.2f} kg, interval {r["lower"]:.1f} to '
                  f'{r["upper"]:.1f}, {r["samples"]} samples;', ', '.join(f'{k} {v}' for k, v in r['stages'].items()))


def _cells(values: np.ndarray, low: float, high: float | list[float], form: str) -> str:
    high = np.broadcast_to(high, np.shape(values))
    return ' '.join(f'{value:{form}}' + (' ' if low <= value <= limit else '*') for value, limit in zip(values, high))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--machine', nargs='*', default=list(CYCLES))
    parser.add_argument('--cycle', nargs='*', default=[], help='boom, dig, random, lift_hold_lower; default: all fit')
    parser.add_argument('--valve', nargs='*', choices=tuple(LIMITS), default=list(LIMITS))
    parser.add_argument('--seeds', type=int, default=1)
    parser.add_argument('--payload', type=float, nargs='*', default=[], help='kg; default: 800, cranes 50 and 100')
    parser.add_argument('--set', action='append', default=[], metavar='NAME=VALUE',
                        help='of interpolation, observer or payload')
    parser.add_argument('--keep', type=Path)
    add_workers(parser, 2)
    parser.add_argument('--json', type=Path)
    args = parser.parse_args()
    changes = {name: float(value) for name, value in (item.split('=') for item in args.set)}
    settings = [kind(**{f.name: type(f.default)(changes[f.name]) for f in fields(kind) if f.name in changes})
                for kind in (InterpolationSettings, ObserverSettings, PayloadSettings)]
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)
    jobs = [(name, cycle, valve, seed, payload, *settings, args.keep)
            for name in args.machine for cycle in args.cycle or CYCLES.get(name, ('boom', 'random'))
            for payload in args.payload or [PAYLOADS.get(name, 800.0)]
            for valve, seed in product(args.valve, range(1, args.seeds + 1))]
    rows = many(run, jobs, args.jobs, args.cluster)
    table(rows)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + '\n')


if __name__ == '__main__':
    main()
