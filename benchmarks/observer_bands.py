# SPDX-License-Identifier: Apache-2.0
"""Honesty and accuracy of the hydraulic observer: how often its 95 % bands hold the truth, and its errors.

    python benchmarks/observer_bands.py --seeds 20                      # simulated cycles, payload not known to it
    python benchmarks/observer_bands.py --seeds 5 --set pressure_psd=0.1 --set activity_range=1
    python benchmarks/observer_bands.py --own 300                       # states drawn from the filter's own model
    python benchmarks/observer_bands.py --wrong --seeds 5               # a valve that is not as the observer believes

Cycles: lift, hold, lower with ramps of 0.2 s and with steps of 20 ms, and random ones; payloads 0 to 200 kg by seed;
100 Hz. Bands and errors are those of the states at the stamps after the first second. Run it in the environment of
`make environment` (tools/environment.sh python benchmarks/observer_bands.py ...).
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import casadi as ca
import numpy as np
from scipy.stats import chi2

from mbse_ros.compiled import Scan
from mbse_ros.filters.hydraulic_model import NOISES, hydraulic_model
from mbse_ros.filters.hydraulic_observer import HydraulicObserver
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.machine import Machine, load_machine
from mbse_ros.simulation.crane import SimulatedCrane
from mbse_ros.simulation.cycle import WorkCycle, lift_hold_lower, random_cycle
from mbse_ros.simulation.plant import Plant
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.studies.many import add_workers, many

VALVES, CYCLES, SKIP, BAND = ('orifice', 'unknown'), ('lift_hold_lower', 'steps', 'random'), 100, 1.959964
WRONG = {'exact': (1.0, 1.0, 1.0), 'oil -10 %': (0.9, 1.0, 1.0), 'flow +2 %': (1.0, 1.02, 1.0),
         'flow +5 %': (1.0, 1.05, 1.0), 'pump -5 %': (1.0, 1.0, 0.95)}
"""What the plant's oil modulus, valve flow and pump pressure are multiplied by."""
HEADS = ('position, mm', 'velocity, mm/s', 'acceleration, m/s2', 'piston, kPa', 'rod, kPa')
SCALES = np.array([1e3, 1e3, 1.0, 1e-3, 1e-3])
PERIODS, SUB = 20, 20       # own model: sensor periods, substeps of a millisecond


@cache
def machine_of(valve: str) -> Machine:
    """The default machine with a valve model."""
    return load_machine('patu655_lift', valve)


@cache
def plant_of(case: str) -> Plant:
    """The plant, other than the observer believes."""
    oil, flow, pump = WRONG[case]
    description = machine_of('orifice').description
    h = description.hydraulics
    supplies = {name: replace(s, value=s.value * (pump if name == 'pump' else 1.0)) for name, s in h.supplies.items()}
    valves = {name: replace(v, nominal_flow=replace(v.nominal_flow, value=v.nominal_flow.value * flow))
              for name, v in h.valves.items()}
    modulus = replace(h.oil_bulk_modulus, value=h.oil_bulk_modulus.value * oil)
    hydraulics = replace(h, supplies=supplies, valves=valves, oil_bulk_modulus=modulus)
    return Plant(Machine(replace(description, hydraulics=hydraulics)))


def cycle_of(name: str, seed: int) -> WorkCycle:
    """A work cycle by name."""
    if name == 'random':
        return random_cycle(np.random.default_rng([seed, 2026]))
    return lift_hold_lower(0.02 if name == 'steps' else 0.2)


def run(job: tuple[str, str, str, int, ObserverSettings]) -> dict:
    """Mean squares of errors and stated deviations, coverages, NEES of five states, NIS by channel, of one run."""
    case, valve, cycle, seed, settings = job
    plant, payload = plant_of(case), float(np.random.default_rng([seed, 11]).uniform(0.0, 200.0))
    frames = SimulatedCrane(plant.machine, payload, seed, cycle_of(cycle, seed), plant=plant).run()
    pipeline, states = Pipeline(machine_of(valve), observer=settings), []
    for frame in frames:
        for channel, value in (*frame.samples.items(), *frame.commands.items()):
            states += [output.state for output in pipeline.add(channel, frame.stamp_ns, value)]
    by_stamp = {f.stamp_ns: np.concatenate([f.position, f.velocity, f.acceleration, f.pressure]) for f in frames}
    states = states[SKIP:]
    error = np.array([s.mean[-1, :5] - by_stamp[s.stamp_ns] for s in states])
    P = np.array([s.covariance[:5, :5] for s in states])
    stddev = np.sqrt(P[:, range(5), range(5)])
    z = error / stddev
    scaled = P / (stddev[:, :, None] * stddev[:, None, :])
    nees = np.einsum('ki,ki->k', z, np.linalg.solve(scaled, z[..., None])[..., 0])
    ratios = np.array([s.innovation / s.innovation_stddev for s in states])
    return {'case': case, 'valve': valve, 'cycle': cycle, 'seed': seed, 'square': np.mean(error ** 2, axis=0).tolist(),
            'variance': np.mean(stddev ** 2, axis=0).tolist(), 'inside': np.mean(np.abs(z) < BAND, axis=0).tolist(),
            'nees': float(nees.mean()), 'nis': np.mean(ratios ** 2, axis=0).tolist()}


def table(rows: list[dict]) -> None:
    """RMS error, stated deviation and share inside the band of each state, by case, valve and cycle."""
    print(f'{"":36}' + ''.join(f'{head:>26}' for head in HEADS) + '   NEES of 5')
    print(f'{"":36}' + f'{"RMS / stated / inside %":>26}' * 5)
    for key in dict.fromkeys((r['case'], r['valve'], r['cycle']) for r in rows):
        some = [r for r in rows if (r['case'], r['valve'], r['cycle']) == key]
        square, variance, inside = (np.mean([r[name] for r in some], axis=0)
                                    for name in ('square', 'variance', 'inside'))
        cells = (f'{e:9.3f} /{s:8.3f} /{100 * c:5.1f}' for e, s, c in
                 zip(np.sqrt(square) * SCALES, np.sqrt(variance) * SCALES, inside))
        print('{:10} {:8} {:16}'.format(*key) + ''.join(f'{cell:>26}' for cell in cells)
              + f'{np.mean([r["nees"] for r in some]):9.2f}', flush=True)


def own_model(valve: str, runs: int, settings: ObserverSettings) -> None:
    """Mean NEES and coverage on states that move as the filter assumes, sampled at 100 Hz, interpolated to 1 kHz."""
    machine, rng = machine_of(valve), np.random.default_rng(20)
    settings = replace(settings, acceleration_psd=1.0, start_velocity=0.005, start_acceleration=0.05)
    observer, truth = HydraulicObserver(machine, settings), stochastic_step(machine, settings)
    names, scale = observer.names, observer.model.scale
    stddev = {'velocity': 0.005, 'acceleration': 0.05, 'spool': 0.5, 'flow': 1e-4}
    spread = np.array([stddev.get(name.split('/')[0], 0.0) for name in names])
    measured, start, noise = list(observer.model.measured), np.array([0.25, 4e6, 3e6]), np.array([4e-4, 12e3, 8e3])
    command, steps = 4.0, 10 * PERIODS
    found, inside = [], []
    for _ in range(runs):
        X = rng.standard_normal(len(names)) * spread + [command * n.startswith('spool') for n in names]
        X[measured] = start
        inputs = np.hstack([rng.standard_normal((steps * SUB, len(names))),
                            np.full((steps * SUB, len(machine.commands)), command)])
        _, path = truth(X / scale, inputs, np.zeros(0))
        at_stamps = np.vstack([X, path[10 * SUB - 1::10 * SUB] * scale])
        samples = at_stamps[:, measured] + rng.standard_normal((PERIODS + 1, 3)) * noise
        values = np.column_stack([np.interp(np.arange(1, steps + 1) / 10, np.arange(PERIODS + 1), c)
                                  for c in samples.T])
        commands = np.full((steps, len(machine.commands)), command)
        observer.start(samples[0], commands[0])
        result = observer.process(values, commands, np.full(3, 10.0), 1e-3)
        deviations = np.sqrt(np.diag(result.covariance))
        z = (result.mean[-1] - at_stamps[-1]) / deviations
        found.append(float(z @ np.linalg.solve(result.covariance / np.outer(deviations, deviations), z)))
        inside.append(np.abs(z) < BAND)
    low, high = chi2.ppf([0.005, 0.995], runs * len(names)) / runs
    shares = ' '.join(f'{100 * share:.1f}' for share in np.mean(inside, axis=0))
    print(f'{valve:8} own model: mean NEES {np.mean(found):.2f} of {len(names)} (99 %: {low:.2f} to {high:.2f}), '
          f'inside {shares}', flush=True)


def stochastic_step(machine: Machine, settings: ObserverSettings) -> Scan:
    """The observer's model as a stochastic differential equation: Heun's method with additive noise."""
    model = hydraulic_model(machine)
    n, h = len(model.names), 1e-3 / SUB
    noise, U = ca.SX.sym('noise', n), ca.SX.sym('U', model.U.numel())
    psd, p = np.array([getattr(settings, name) for name in NOISES]), machine.parameters.mean
    f, W = ca.substitute([model.f, model.W], [model.psd, machine.parameters.symbol], [ca.SX(psd), ca.SX(p)])
    rates = ca.Function('f', [model.X, model.U], [f])
    kick = ca.sqrt(ca.diag(W) * h) * noise
    k1 = rates(model.X, U)
    after = model.X + h / 2 * (k1 + rates(model.X + h * k1 + kick, U)) + kick
    return Scan(ca.Function('sde', [model.X, ca.vertcat(noise, U), ca.SX(0, 1)], [after, after]))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seeds', type=int, default=20)
    parser.add_argument('--valves', nargs='*', choices=VALVES, default=VALVES)
    parser.add_argument('--cycles', nargs='*', choices=CYCLES, default=CYCLES)
    parser.add_argument('--wrong', action='store_true', help='also with plants other than the observer believes')
    parser.add_argument('--own', type=int, default=0, metavar='RUNS', help="the filter's own model instead of cycles")
    parser.add_argument('--set', action='append', default=[], metavar='NAME=VALUE', help='a setting of the observer')
    add_workers(parser, 2)
    parser.add_argument('--json', type=Path)
    args = parser.parse_args()
    changes = {name: float(value) for name, value in (item.split('=') for item in args.set)}
    settings = ObserverSettings(**changes)
    if args.own:
        for valve in args.valves:
            own_model(valve, args.own, settings)
        return
    cases = tuple(WRONG) if args.wrong else ('exact',)
    for case in cases:
        plant_of(case)      # compiled before the processes start
    rows = many(run, [(*key, settings) for key in
                      product(cases, args.valves, args.cycles, range(1, args.seeds + 1))], args.jobs, args.cluster)
    table(rows)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + '\n')


if __name__ == '__main__':
    main()
