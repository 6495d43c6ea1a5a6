# SPDX-License-Identifier: Apache-2.0
"""How well motion of a machine can be known at all from its samples, beside what the observer finds.

    tools/environment.sh python benchmarks/velocity_bound.py --seeds 2 --keep DIRECTORY
    tools/environment.sh python benchmarks/velocity_bound.py --only observer --set pressure_psd=0.01

Root mean square errors of the velocities, mm/s or, of joint angles, mrad/s, and of the positions over the standard
deviations of their sensors, over the stamps after the first second of the simulated logs of ``machine_accuracy.py``:

``observer``: of the project, with the tuning ``--set``. ``smoother``: acausal, of all samples of the log; it does not
use the valves and takes the load as constant; nan where it does not converge. ``EKF``: a filter that knows the plant
itself: the acceleration follows from the forces, nothing has process noise but what no model tells (swing, changes of
the load, flows of unknown valves). ``bound``: the covariance of that filter linearised along the true motion, which is
the Cramer-Rao bound where nothing is random but the samples' noise.
Then the bound with a tenth of the pressures' noise, of the positions' noise, and of both.

Densities of what no model tells are taken from the truth: ``mean`` constant over the log, ``oracle`` following it over
0.1 s, which no real filter can. For unknown valves the bound holds for flows that are random walks of that density.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from machine_accuracy import SKIP, frames_of, machine_of
from plant_filter import STEPS, Dynamics, Filter, along, bound, ekf, truth_of

from mbse_ros.errors import DivergenceError
from mbse_ros.filters.hydraulic_state import direct
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.graph.machines.machine_log import MachineLog
from mbse_ros.graph.machines.machine_smoother import smooth_machine
from mbse_ros.machine import Machine
from mbse_ros.simulation.crane import SensorFrame
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.studies.many import add_workers, many

KINDS = 'observer', 'smoother', 'EKF', 'bound'
FLOOR, WINDOW = 1e-9, 10        # density of what the model tells; samples that an oracle sees at once
QUIETER = {'bound': (1.0, 1.0), 'p/10': (1.0, 0.1), 'x/10': (0.1, 1.0), 'both/10': (0.1, 0.1)}


def densities(model: Dynamics, truth: np.ndarray, dt: float, oracle: bool) -> np.ndarray:
    """Densities (k, n) of what no model tells, from its true changes."""
    squares, ends = np.zeros_like(truth), model.ends
    unknown = np.arange(0) if model.known else np.arange(ends[3], ends[4])
    told = np.r_[ends[1]:ends[2], ends[-1] - 1, unknown].astype(int)
    squares[1:, told] = np.diff(truth[:, told], axis=0) ** 2 / dt
    if not oracle:
        return np.tile(squares.mean(axis=0), (len(truth), 1)) + FLOOR
    window = np.ones(WINDOW) / WINDOW
    return np.array([np.convolve(column, window, 'same') for column in squares.T]).T + FLOOR


def motion_of(frame: SensorFrame) -> np.ndarray:
    """True positions and velocities (2 g,)."""
    return np.concatenate([frame.position, frame.velocity])


def observed(machine: Machine, frames: list[SensorFrame], settings: ObserverSettings) -> np.ndarray:
    """Squared errors (k, 2 g) of the project's observer, positions and velocities."""
    pipeline, states, outputs = Pipeline(machine, observer=settings, segment=0.1), {}, []
    for frame in frames:
        for channel in (*machine.commands, *machine.channels):
            value = {**frame.commands, **frame.samples}[channel]
            outputs += pipeline.add(channel, frame.stamp_ns, value)
    g = len(machine.coordinates)
    for state in (output.state for output in (*outputs, *pipeline.flush())):
        stamps = state.stamp_ns - state.step_ns * np.arange(len(state.mean))[::-1]
        states |= dict(zip(stamps.tolist(), state.mean[:, :2 * g]))
    return np.array([(states[frame.stamp_ns] - motion_of(frame)) ** 2 if frame.stamp_ns in states else np.zeros(2 * g)
                     for frame in frames])


def smoothed(machine: Machine, frames: list[SensorFrame]) -> np.ndarray:
    """Squared errors (k, 2 g) of the project's smoother, positions and velocities."""
    t = np.array([1e-9 * (f.stamp_ns - frames[0].stamp_ns) for f in frames])
    log = MachineLog(t, np.array([[f.samples[name] for name in machine.channels] for f in frames]))
    try:
        found = smooth_machine(machine, log)
        return (np.hstack([found.position, found.velocity]) - np.array([motion_of(f) for f in frames])) ** 2
    except DivergenceError:
        return np.full((len(frames), 2 * len(machine.coordinates)), np.nan)


def figures(name: str, valve: str, frames: list[SensorFrame], kinds: list[str], settings: ObserverSettings
            ) -> dict[str, np.ndarray]:
    """Mean squares (2 g,) of each row of the table."""
    machine, rows, dt = machine_of(name, valve), {}, 1e-9 * (frames[1].stamp_ns - frames[0].stamp_ns)
    if 'observer' in kinds:
        rows['observer'] = observed(machine, frames, settings)
    if 'smoother' in kinds and not machine.unknown_valves:
        rows['smoother'] = smoothed(machine, frames)
    if {'EKF', 'bound'} & set(kinds):
        model, h, g = Dynamics(machine), dt / STEPS, len(machine.coordinates)
        truth, U = truth_of(model, frames)
        F = along(model, truth, U, h) if 'bound' in kinds else None
        for name in ('mean', 'oracle'):
            W = densities(model, truth, dt, name == 'oracle')
            if 'EKF' in kinds:
                rows[f'EKF, {name}'] = ekf(model, Filter(model, frames), truth, U, W, h)
            for label, quieter in QUIETER.items() if F is not None else ():
                rows[f'{label}, {name}'] = bound(Filter(model, frames, quieter), F, W, h, g)
    return {name: values[SKIP:].mean(axis=0) for name, values in rows.items()}


def figures_of(item: tuple[str, str, str, int, Path | None, list[str], ObserverSettings]) -> dict[str, np.ndarray]:
    """The same of a machine, kind of valve, cycle and seed."""
    name, valve, cycle, seed, keep, kinds, settings = item
    return figures(name, valve, frames_of(name, cycle, seed, 800.0, keep), kinds, settings)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--machine', default='zx200')
    parser.add_argument('--cycle', nargs='*', default=['random', 'dig'])
    parser.add_argument('--valve', nargs='*', default=['orifice', 'unknown'])
    parser.add_argument('--seeds', type=int, default=2)
    parser.add_argument('--only', nargs='*', choices=KINDS, default=list(KINDS))
    parser.add_argument('--set', action='append', default=[], metavar='NAME=VALUE', help='of the observer')
    parser.add_argument('--keep', type=Path)
    add_workers(parser)
    args = parser.parse_args()
    settings = replace(ObserverSettings(), **{name: float(value) for name, value in (s.split('=') for s in args.set)})
    machine = machine_of(args.machine)
    driven = machine.actuated
    sigma = [direct(machine)[f'position/{c}'].sensor.noise for c in machine.coordinates]
    for valve, cycle in product(args.valve, args.cycle):
        found = many(figures_of, [(args.machine, valve, cycle, seed, args.keep, args.only, settings)
                                  for seed in range(1, args.seeds + 1)], args.jobs, args.cluster)
        for name in found[0]:
            position, speed = np.split(np.sqrt(np.mean([row[name] for row in found], axis=0)), 2)
            print(f'{valve:8} {cycle:7} {name:16}', ' '.join(f'{value:6.2f}' for value in 1e3 * speed[driven]),
                  '| position', ' '.join(f'{value:5.2f}' for value in (position / sigma)[driven]), flush=True)


if __name__ == '__main__':
    main()
