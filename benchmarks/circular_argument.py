# SPDX-License-Identifier: Apache-2.0
"""Does the estimate of motion and mass together go round in circles? The objection of Pyrhönen et al., mass estimation.

    python benchmarks/circular_argument.py --seeds 8 4 --page docs/papers/mass_estimation_pyrhonen.md

The objection: a mass from accelerations that were predicted with that mass confirms itself. Simulated logs of 11 s
(lift, lower, hold, lift), truth known. Two runs of the same samples differ only by what is done to the mass in the
observer's state; tables, means over the seeds:

1. *Gain*. 1 kg is added to the mass, its covariance not told. Share of it that is left in the state after some time,
   beside what a mere average would keep: information before, over that after. A circle would keep more. ``pinned``: the
   mass is put back to a value after every segment; change of the mass that the steps measure, by kg of that value.
2. *Start*. The mass is wrong by half of its full scale, and its deviation is a hundredth of it. When the state and the
   published mass come back, s of motion to 5 % of full scale, and the mass at the end, beside ``apart``.
3. *Standstill*. 10 s without motion, from an unknown mass and from one that is wrong and too sure: deviation and error
   of the mass in the state, shares of time in which a mass is published and in which its interval does not hold.
4. *Against apart*. Errors of mass and piston speed and how often the 95 % interval of the mass holds at the end, where
   numbers of the file are wrong, samples rare, motion slow.

``--seeds``: of the crane and of the excavator, one number for both or two. ``--page F`` writes the first table between
the two marks in a page. About ten minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from machine_accuracy import piston_rates

from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.machine import Machine, load_machine
from mbse_ros.report.files import write_between
from mbse_ros.simulation.crane import SensorFrame, SimulatedCrane, plant_of
from mbse_ros.simulation.cycle import Move, WorkCycle
from mbse_ros.simulation.plant import Plant
from mbse_ros.streams.pipeline import Output, Pipeline
from mbse_ros.studies.many import add_workers, many

LOADS, SLOW = {'patu655_lift': 200.0, 'zx200': 800.0}, {'patu655_lift': 1.1, 'zx200': 0.5}
MOVING, STILL, AFTER = 1.2, 5.4, (0.1, 0.5, 1.0, 3.0)       # s
SHOWN = 'default', 'slow', 'acceleration x100, 10 Hz'           # cases on the page
VALVES, WAYS, NORMAL = ('orifice', 'unknown'), ('joint', 'apart'), 1.959964
CASES = {'default': {}, '10 Hz': {'thin': 10}, 'slow': {'slow': True},
         'acceleration x100, 10 Hz': {'acceleration_psd': 2e3, 'thin': 10}, 'force / 1e4': {'force_psd': 2e-10}}
Touch = Callable[[Pipeline, float], None]


@cache
def plant(name: str) -> Plant:
    """The simulated machine."""
    return plant_of(load_machine(name))


def simulated(name: str, seed: int, volts: float = 5.0, thin: int = 1) -> list[SensorFrame]:
    """Samples and truth, each ``thin``-th instant: lift, lower, hold, lift; without volts hold alone."""
    moves = Move(0.0, 0.5), Move(volts, 2.0), Move(-volts, 2.0), Move(0.0, 4.5), Move(volts, 2.0)
    cycle = WorkCycle(0.3, moves if volts else (Move(0.0, 10.0),), timed=True)
    return SimulatedCrane(load_machine(name), LOADS[name], seed, cycle, plant=plant(name)).run()[::thin]


def run(machine: Machine, frames: list[SensorFrame], touch: Touch | None = None, **settings: float | str
        ) -> list[Output]:
    """The whole chain; ``touch`` is called after each segment with the time since the first stamp, s."""
    pipeline, outputs = Pipeline(machine, observer=ObserverSettings(**settings)), []
    for frame in frames:
        for channel, value in (*frame.commands.items(), *frame.samples.items()):
            for output in pipeline.add(channel, frame.stamp_ns, value):
                outputs.append(output)
                if touch is not None:
                    touch(pipeline, (output.state.stamp_ns - frames[0].stamp_ns) * 1e-9)
    return outputs


def put(pipeline: Pipeline, mass: float, stddev: float | None = None, add: bool = False) -> None:
    """The mass in the observer's state, kg; ``stddev``, kg: independent of all else, else the covariance stays."""
    observer = pipeline.observer._observer
    x, n, full = observer.running.state, len(observer.names), observer._full
    x[n - 1] = mass + x[n - 1] * add
    if stddev is not None:
        x[full[-1]] = x[observer.filter.slopes[-1]] = 0.0
        x[full[-1, -1]] = (stddev / observer.model.scale[-1]) ** 2


def once(time: float, change: Callable[[Pipeline], None]) -> Touch:
    """After the first segment that ends at ``time``, s, or later."""
    done = []

    def touch(pipeline: Pipeline, now: float) -> None:
        if now >= time - 1e-9 and not done:
            done.append(now)
            change(pipeline)
    return touch


def series(outputs: list[Output]) -> dict[str, np.ndarray]:
    """Time, s; mass of the state and its deviation, published mass and its half-width, kg."""
    t = np.array([o.state.stamp_ns for o in outputs])
    return {'t': (t - t[0]) * 1e-9 + 0.01, 'x': np.array([o.state.mean[-1, -1] for o in outputs]),
            's': np.array([np.sqrt(o.state.covariance[-1, -1]) for o in outputs]),
            'mass': np.array([o.payload.mass for o in outputs]),
            'half': np.array([o.payload.upper - o.payload.mass for o in outputs])}


def measured(outputs: list[Output]) -> float:
    """Mass that all steps together measure, kg, whatever was known before."""
    rows = np.concatenate([o.state.weighing[:, :2] for o in outputs])
    return float(rows[:, 1].sum() / rows[:, 0].sum())


def gain(job: tuple[str, str, str, int]) -> dict:
    """Table 1, of one log."""
    name, valve, case, seed = job
    machine, options = load_machine(name, valve), dict(CASES[case])
    frames = simulated(name, seed, SLOW[name] if options.pop('slow', False) else 5.0, options.pop('thin', 1))

    def until(time: float) -> list[SensorFrame]:
        return [frame for frame in frames if frame.stamp_ns - frames[0].stamp_ns < (time + AFTER[-1] + 0.2) * 1e9]
    a, found = series(run(machine, until(STILL), **options)), {'key': (name, valve, case)}
    for kind, time in (('motion', MOVING), ('still', STILL)):
        b = series(run(machine, until(time), once(time, lambda p: put(p, 1.0, add=True)), **options))
        begin = int(np.searchsorted(a['t'], time - 1e-6))
        for after in AFTER:
            k = min(int(np.searchsorted(a['t'], time + after)), len(a['t']) - 1)
            found[f'{kind} {after}'] = b['x'][k] - a['x'][k]
            found[f'{kind} {after} average'] = (a['s'][k] / a['s'][begin]) ** 2
            found[f'{kind} {after} published'] = b['mass'][k] - a['mass'][k]
    span, load = 0.02 * machine.payload_data.limits[1], LOADS[name]
    pinned = [measured(run(machine, until(MOVING), lambda p, t, m=m: put(p, m), **options))
              for m in (load, load + span)]
    return found | {'pinned': (pinned[1] - pinned[0]) / span}


def start(job: tuple[str, str, str, int]) -> dict:
    """Table 2, of one log: time until a mass is, and stays, within 5 % of full scale, s; error at the end, kg."""
    name, valve, case, seed = job
    machine, frames, load = load_machine(name, valve), simulated(name, seed), LOADS[name]
    full = machine.payload_data.limits[1]
    wrong = once(0.01, lambda p: put(p, load + float(case) * full, 0.01 * full))
    joint, apart = series(run(machine, frames, wrong)), series(run(machine, frames, weighing='apart'))
    found: dict = {'key': (name, valve, case)}
    for way, those, mass in (('state', joint, 'x'), ('joint', joint, 'mass'), ('apart', apart, 'mass')):
        far = np.flatnonzero(~(np.abs(those[mass] - load) < 0.05 * full))
        found[way], found[f'{way} end'] = those['t'][far[-1]], abs(those[mass][-1] - load)
        half = NORMAL * joint['s'] if way == 'state' else those['half']
        found[f'{way} holds'] = found[f'{way} end'] <= half[-1]
    return found


def still(job: tuple[str, str, str, int]) -> dict:
    """Table 3, of one log without motion."""
    name, valve, case, seed = job
    machine, load = load_machine(name, valve), LOADS[name]
    full = machine.payload_data.limits[1]
    wrong = once(0.5, lambda p: put(p, load + 0.5 * full, 0.01 * full))
    it = series(run(machine, simulated(name, seed, 0.0), wrong if case == 'wrong and sure' else None))
    at = np.searchsorted(it['t'], (0.6, 1.0, 3.0, 9.9))
    return {'key': (name, valve, case), 'NEES': ((it['x'] - load)[-1] / it['s'][-1]) ** 2,
            'off': it['x'][-1] - load, 'published': np.isfinite(it['mass']).mean(),
            'beyond': (np.abs(it['mass'] - load) > it['half']).mean(),
            **dict(zip(('0.6 s', '1 s', '3 s', '10 s'), it['s'][at]))}


def against(job: tuple[str, str, str, int]) -> dict:
    """Table 4, of one log: error and half-width of the mass at the end, kg, squared error of the speeds."""
    name, valve, case, seed = job
    machine, options = load_machine(name, valve), dict(CASES.get(case, {}))
    frames = simulated(name, seed, SLOW[name] if options.pop('slow', False) else 5.0, options.pop('thin', 1))
    p, mean, offsets = machine.parameters, machine.parameters.mean.copy(), {}
    for k, number in enumerate(p.names):
        if case == 'friction' and number.endswith('friction.scale'):
            mean[k] += 2 * p.stddev[k]
        if case == 'offset' and number.endswith('_piston.offset'):
            offsets['pressure/' + number.split('.')[1]] = 2 * p.stddev[k]
    p.assume(mean)
    frames = [replace(f, samples={c: v + offsets.get(c, 0.0) for c, v in f.samples.items()}) for f in frames]
    by_stamp, g, found = {f.stamp_ns: f for f in frames}, len(machine.coordinates), {'key': (name, valve, case)}
    for way in ('joint', 'apart'):
        outputs = run(machine, frames, weighing=way, **options)
        true = [by_stamp[o.state.stamp_ns] for o in outputs if o.state.stamp_ns in by_stamp]
        levers = np.sqrt((piston_rates(machine, np.array([f.position for f in true])) ** 2).sum(axis=1))
        error = levers * (np.array([o.state.mean[-1, g:2 * g] for o in outputs if o.state.stamp_ns in by_stamp])
                          - np.array([f.velocity for f in true]))
        last = outputs[-1].payload
        found[f'{way} v'] = 1e3 * np.sqrt(np.mean(error[len(error) // 10:] ** 2) * g / len(machine.actuated))
        found[f'{way} mass'], found[f'{way} half'] = last.mass - LOADS[name], last.upper - last.mass
        found[f'{way} holds'] = abs(found[f'{way} mass']) <= found[f'{way} half']
    return found


def tables(rows: dict[str, list[dict]], seeds: dict[str, int]) -> list[str]:
    """Head, the table of the page, and those that are printed alone."""
    texts = [f'`benchmarks/circular_argument.py --seeds {" ".join(map(str, seeds.values()))}` ({", ".join(seeds)}), '
             f'{date.today():%d %B %Y}; 11 s a log; means over the seeds, errors of masses RMS, kg.']

    def table(name: str, head: str, cells: Callable[[dict[str, np.ndarray]], list[str]]) -> None:
        lines = [head, '|---' * head.count(' | ') + '|---|']
        known = rows['gain' if name in ('page', 'at rest') else name]
        if name == 'page':
            known = [row for row in known if row['key'][-1] in SHOWN]
        for key in dict.fromkeys(row['key'] for row in known):
            own = [row for row in known if row['key'] == key]
            of = {item: np.array([row[item] for row in own]) for item in own[0] if item != 'key'}
            lines.append('| ' + ' | '.join([*key, *cells(of)]) + ' |')
        texts.append('\n'.join(lines))

    def share(of: dict[str, np.ndarray], kind: str, after: float) -> str:
        return f'{of[f"{kind} {after}"].mean():.2f} ({of[f"{kind} {after} average"].mean():.2f})'

    def largest(of: dict[str, np.ndarray]) -> str:
        return f'{np.nanmax([np.nanmax(np.abs(of[k])) for k in of if "published" in k]):.2f}'

    def rms(values: np.ndarray) -> str:
        return f'{np.sqrt(np.mean(values ** 2)):.3g}' if np.isfinite(values).all() else 'none'

    def hold(of: dict[str, np.ndarray], way: str) -> str:
        return f'{of[f"{way} holds"].sum()} of {len(of[f"{way} holds"])}'

    table('page', '| machine | valve | case | kept after 1 s of motion (average) | 3 s | largest published | pinned |',
          lambda of: [*(share(of, 'motion', after) for after in AFTER[2:]), largest(of), f'{of["pinned"].mean():.2f}'])
    table('gain', '| machine | valve | case | kept after 1 s of motion (average) | 3 s | largest published | pinned |',
          lambda of: [*(share(of, 'motion', after) for after in AFTER[2:]), largest(of), f'{of["pinned"].mean():.2f}'])
    table('at rest', '| machine | valve | case | kept after 3 s of standstill (average) | published after 3 s |',
          lambda of: [share(of, 'still', AFTER[-1]), f'{of["motion 3.0 published"].mean():.2f}'])
    table('start', '| machine | valve | wrong by (full scales) | state right after, s | published, joint | published, '
          'apart | error at the end, joint (hold) | apart (hold) |', lambda of: [
              *(f'{np.median(of[way]):.1f}' for way in ('state', 'joint', 'apart')),
              *(f'{rms(of[f"{way} end"])} ({hold(of, way)})' for way in ('joint', 'apart'))])
    table('still', '| machine | valve | start | deviation, 0.6 s, kg | 1 s | 3 s | 10 s | error | NEES | published '
          '| beyond its interval |', lambda of: [
              *(f'{of[k].mean():.0f}' for k in ('0.6 s', '1 s', '3 s', '10 s')), rms(of['off']),
              f'{of["NEES"].mean():.2g}', f'{of["published"].mean():.2f}', f'{of["beyond"].mean():.2f}'])
    table('against', '| machine | valve | case | mass, joint | apart | half-width, joint | apart | hold, joint | apart '
          '| speed, mm/s, joint | apart |', lambda of: [
              *(rms(of[f'{way} mass']) for way in WAYS), *(rms(of[f'{way} half']) for way in WAYS),
              *(hold(of, way) for way in WAYS), *(rms(of[f'{way} v']) for way in WAYS)])
    return texts


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seeds', type=int, nargs='+', default=[5], help='for ' + ' and '.join(LOADS))
    parser.add_argument('--page', type=Path, help='page with the two marks')
    add_workers(parser, 2)
    args = parser.parse_args()
    if len(args.seeds) not in (1, len(LOADS)) or min(args.seeds) < 1:
        parser.error(f'--seeds: got {args.seeds}, expected a number from 1 on, or {len(LOADS)}: {", ".join(LOADS)}')
    seeds = dict(zip(LOADS, args.seeds * (len(LOADS) // len(args.seeds))))
    parts = {gain: CASES, start: ('0.5', '-0.5'), still: ('unknown', 'wrong and sure'),
             against: ('default', 'friction', 'offset', *list(CASES)[1:-1])}
    rows = {part.__name__: many(part, [(*job, seed) for job in product(LOADS, VALVES, cases)
                                       for seed in range(1, seeds[job[0]] + 1)], args.jobs, args.cluster)
            for part, cases in parts.items()}
    texts = tables(rows, seeds)
    print('\n\n'.join(texts))
    if args.page:
        write_between(args.page, 'circular_argument.py', '\n\n'.join(texts[:2]))


if __name__ == '__main__':
    main()
