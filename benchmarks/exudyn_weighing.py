# SPDX-License-Identifier: Apache-2.0
"""Loads on plants that share no code with the package, beside the package's own: is the mass as exact?

    python benchmarks/exudyn_machine.py zx200 --payload 800 --swing held -o exudyn.npz      # where Exudyn is installed
    tools/environment.sh python benchmarks/plants_agree.py zx200 --payload 800 -o ours.npz --with exudyn.npz
    tools/environment.sh python benchmarks/exudyn_weighing.py zx200 800 exudyn.npz ours.npz --seeds 20

Sensors of the machine's file at 100 Hz on both motions, the same noise on both. Of each kind of valve: RMS error of the
mass at the end over the seeds, the share of intervals that hold, RMS errors of positions in standard deviations of
their sensors and of the pistons' speeds, mm/s, by finite differences of the plant, and the s until the mass was known.
"""

from __future__ import annotations

import argparse
from functools import partial
from math import nan

import numpy as np
from machine_commands import COMMANDS
from machine_oil import command

from mbse_ros.machine import Machine, load_machine
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.studies.many import add_workers, many

EVERY = 10          # ms between samples
SKIP = 100          # first samples that do not count


def truth_of(machine: Machine, data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Samples without noise (n,), SI, by channel."""
    closed = {name: c.closed_length.value for name, c in machine.description.cylinders.items()}
    strokes = {str(name): data['lengths'][:, k] - closed[str(name)] for k, name in enumerate(data['cylinders'])}
    angles = {str(name): data['angles'][:, k] for k, name in enumerate(data['joints'])}
    pressures = {str(name): data['pressures'][:, k] for k, name in enumerate(data['volumes'])}
    kinds = {'position': {**angles, **strokes}, 'pressure': pressures}
    return {channel: kinds[channel.split('/')[0]][channel.split('/')[1]][::EVERY] for channel in machine.channels}


def run(name: str, valve: str, load: float, data: dict[str, np.ndarray], seed: int) -> dict[str, float | np.ndarray]:
    """Errors of one estimate."""
    machine, rng = load_machine(name, valve), np.random.default_rng(seed)
    truth, t, tables = truth_of(machine, data), data['t'][::EVERY], COMMANDS[name]
    samples = {c.name: truth[c.name] + c.sensor.stddev * rng.standard_normal(len(t)) for c in machine.all_channels}
    pipeline, outputs = Pipeline(machine), []
    for k, time in enumerate(t):
        for sent in pipeline.machine.commands:
            outputs += pipeline.add(sent, round(time * 1e9), command(tables[sent.split('/')[1]], time))
        for channel in machine.channels:
            outputs += pipeline.add(channel, round(time * 1e9), samples[channel][k])
    g, moved = len(machine.coordinates), [c for c in machine.coordinates if c in machine.cylinders]
    stamps = np.array([round(o.state.stamp_ns * 1e-9 * 100) for o in outputs])[SKIP:]
    mean = np.array([o.state.mean[-1] for o in outputs])[SKIP:]
    places = [machine.coordinates.index(c) for c in moved]
    position = np.stack([truth[f'position/{c}'] for c in moved], axis=1)
    speed = np.gradient(np.stack([data['lengths'][:, list(data['cylinders']).index(c)] for c in moved], axis=1),
                        data['t'], axis=0)[::EVERY]
    sigma = np.array([next(c.sensor.noise for c in machine.all_channels if c.name == f'position/{k}') for k in moved])
    known = [o.payload.stamp_ns * 1e-9 for o in outputs if np.isfinite(o.payload.mass)]
    last = outputs[-1].payload
    return {'mass': last.mass - load, 'holds': last.lower < load < last.upper, 'half': last.upper - last.mass,
            'position': np.sqrt(np.mean((mean[:, places] - position[stamps]) ** 2, axis=0)) / sigma,
            'speed': 1e3 * np.sqrt(np.mean((mean[:, np.add(places, g)] - speed[stamps]) ** 2, axis=0)),
            'known': known[0] if known else nan}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('machine')
    parser.add_argument('load', type=float, help='kg')
    parser.add_argument('plants', nargs='+', help='npz of the motions')
    parser.add_argument('--seeds', type=int, default=10)
    add_workers(parser)
    args = parser.parse_args()
    for valve in ('orifice', 'unknown'):
        for path in args.plants:
            data = dict(np.load(path))
            rows = many(partial(run, args.machine, valve, args.load, data), range(1, args.seeds + 1), args.jobs,
                        args.cluster)
            rms = {key: np.sqrt(np.mean([row[key] ** 2 for row in rows], axis=0))
                   for key in ('mass', 'position', 'speed')}
            mean, half = np.mean([row['mass'] for row in rows]), np.median([row['half'] for row in rows])
            print(f'{args.machine} {valve:8} {path}: mass {rms["mass"]:.2f} kg RMS, mean {mean:+.2f}, half-width '
                  f'{half:.1f}, {sum(row["holds"] for row in rows)} of {len(rows)} hold; position',
                  rms['position'].round(2), 'speed', rms['speed'].round(2),
                  f'known after {max(row["known"] for row in rows):.1f} s', flush=True)


if __name__ == '__main__':
    main()
