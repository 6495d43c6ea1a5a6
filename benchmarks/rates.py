# SPDX-License-Identifier: Apache-2.0
"""Do intervals hold at the rates of a CAN bus, with jitter and holes? The table of docs/data_expectations.md.

    tools/environment.sh python benchmarks/rates.py --seeds 20 --seconds 600 --json out/rates.jsonl
    tools/environment.sh python benchmarks/rates.py --table out/rates.jsonl

Each log is simulated once at 1 kHz and then thinned to every rate; ``--json`` gets a line for each, and those that are
there already are not run again. The seed chooses cycle (repeated), load, kind of valve, errors of the uncertain
numbers, drawn from the file, and noise; cycle `loads` drops and takes a part of its load every 8 s. The load counts as
constant when it has been so for 5 s.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path

import numpy as np
import yaml

from mbse_ros.description.load import known_machines, parse_mechanism
from mbse_ros.machine import Machine, load_machine
from mbse_ros.simulation.crane import CraneSettings, SimulatedCrane, cycle_by_name, plant_of
from mbse_ros.simulation.cycle import WorkCycle
from mbse_ros.simulation.plant import Plant
from mbse_ros.streams.interpolation import InterpolationSettings
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.streams.records import PayloadStatus
from mbse_ros.studies.many import add_workers
from mbse_ros.workers import results

CYCLES = {'zx200': ('dig', 'boom', 'random', 'loads'), 'zx200_can': ('dig', 'boom', 'random', 'loads'),
          'patu655': ('boom', 'random', 'loads'), 'patu655_lift': ('boom', 'random', 'loads'),
          'lut_simple_crane': ('boom', 'random', 'loads'), 'patu655_measured': ('boom', 'random', 'loads')}
SHARES = 0.0, 0.1, 0.3, 0.8         # of the largest load
LIFTED = {'patu655': 0.3}           # of it, what the simulated pump lifts in every pose
PART, TAKEN, EVERY = 0.2, 1.0, 8.0  # share of the load that stays, s in which it changes, s from change to change
SETTLED = 5.0                       # s
HELD = PayloadStatus.NO_DATA, PayloadStatus.IMPLAUSIBLE, PayloadStatus.CHANGING, PayloadStatus.CONTACT
DATA_OF = {'patu655_measured': 'patu655_lift'}      # machines whose file has no valve data: those of another


@dataclass(frozen=True)
class Stream:
    """How a log is thinned: s between samples, with ``jitter``, s, of each sensor by itself; ``positions``, s, where
    they have another interval; every ``lost``-th sample of each sensor missing; ``pause``, s, of all sensors, once in
    1 to 3 s; ``silence``, s, the same of one sensor; ``step``, s, of the grid."""

    every: float = 0.01
    jitter: float = 0.0
    positions: float = 0.0
    lost: int = 0
    pause: float = 0.0
    silence: float = 0.0
    step: float = 0.001

    def samples(self, channel: str, seconds: float, rng: np.random.Generator) -> np.ndarray:
        """Instants (n,), whole ms, of a channel."""
        every = self.positions if self.positions and channel.startswith('position/') else self.every
        t = np.arange(0.0, seconds, every)
        found = np.rint(1e3 * (t + rng.uniform(-self.jitter, self.jitter, len(t)))).astype(int)
        return found[np.arange(len(found)) % self.lost != self.lost - 1] if self.lost else found


STREAMS = {
    '100 Hz': Stream(), '20 Hz': Stream(0.05), '16.7 Hz': Stream(0.06), '12.5 Hz': Stream(0.08), '10 Hz': Stream(0.1),
    '10 Hz, 20 ms of jitter': Stream(0.1, 0.02), 'positions 5 Hz, else 50 Hz': Stream(0.02, positions=0.2),
    '100 Hz, every 7th missing': Stream(lost=7), '50 Hz, every 3rd missing': Stream(0.02, lost=3),
    '100 Hz, all pause 0.2 s': Stream(pause=0.2), '20 Hz, all pause 0.4 s': Stream(0.05, pause=0.4),
    '100 Hz, one silent 0.4 s': Stream(silence=0.4),
    '100 Hz, step 0.2 ms': Stream(step=2e-4), '100 Hz, step 0.5 ms': Stream(step=5e-4),
    '100 Hz, step 2 ms': Stream(step=2e-3), '10 Hz, step 2 ms': Stream(0.1, step=2e-3)}


@dataclass(frozen=True)
class Log:
    """A simulated log, to be thinned to some ``streams``."""

    machine: str
    seed: int
    seconds: float
    streams: tuple[str, ...]

    @property
    def cycle(self) -> str:
        return CYCLES[self.machine][self.seed % len(CYCLES[self.machine])]

    @property
    def valve(self) -> str | None:
        """None: the file's."""
        return None if self.machine in DATA_OF else ('orifice', 'unknown')[self.seed // len(CYCLES[self.machine]) % 2]


@cache
def plant(name: str) -> Plant:
    """The simulated machine, compiled once."""
    if name not in DATA_OF:
        return plant_of(load_machine(name))
    tree, other = (yaml.safe_load(known_machines()[item].read_text(encoding='utf-8')) for item in (name, DATA_OF[name]))
    tree['hydraulics'] |= {key: other['hydraulics'][key] for key in ('valves', 'supplies')}
    return plant_of(Machine(parse_mechanism(yaml.safe_dump(tree, sort_keys=False), f'{name}.yaml')))


def cycle_of(log: Log, machine: Machine) -> WorkCycle:
    """Repeated until the log is over."""
    cycle = cycle_by_name('random' if log.cycle == 'loads' else log.cycle, machine, log.seed)
    cycle = cycle.repeated(int(log.seconds / cycle.duration) + 1)
    if log.cycle != 'loads':
        return cycle
    ends = np.arange(EVERY, log.seconds, EVERY)
    shares = [(1.0, PART)[k % 2] for k in range(len(ends) + 1)]
    changes = [(float(t) + late, share) for t, pair in zip(ends, zip(shares, shares[1:]))
               for late, share in zip((0.0, TAKEN), pair)]
    return replace(cycle, load=((0.0, 1.0), *changes))


@dataclass(frozen=True)
class Motion:
    """Samples (ms, channels and commands) by ``names``, and the true load (ms,), kg."""

    names: tuple[str, ...]
    values: np.ndarray
    load: np.ndarray

    @property
    def changed(self) -> np.ndarray:
        """Time (ms,), s, since the load last changed."""
        now = np.arange(len(self.load))
        last = np.maximum.accumulate(np.where(np.diff(self.load, prepend=self.load[0]) != 0.0, now, -10 ** 9))
        return 1e-3 * (now - last)


def simulated(log: Log, machine: Machine) -> Motion:
    """At 1 kHz; the errors of the uncertain numbers drawn from the file."""
    true = plant(log.machine)
    p, rng = true.machine.parameters, np.random.default_rng([log.seed, 7])
    drawn = p.mean + p.factor() @ rng.standard_normal(p.factor().shape[1])
    share = rng.choice(SHARES[1:] if log.cycle in ('dig', 'loads') else SHARES)
    load = min(float(share), LIFTED.get(log.machine, 1.0)) * machine.payload_data.limits[1]
    crane = SimulatedCrane(true.machine, load, log.seed, cycle_of(log, true.machine), CraneSettings(rate=1000.0),
                           parameters=drawn, plant=true)
    names = (*machine.commands, *machine.channels)
    values, loads = np.empty((round(1e3 * log.seconds), len(names))), np.empty(round(1e3 * log.seconds))
    for k in range(len(values)):
        frame = crane.frame()
        both = {**frame.commands, **frame.samples}
        values[k], loads[k] = [both[name] for name in names], frame.payload
    return Motion(names, values, loads)


def thinned(motion: Motion, stream: Stream, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places among the names, stamps, ns, and values (n,) in the order of the stamps."""
    rng, count = np.random.default_rng([seed, 11]), len(motion.load)
    paused, silent = np.zeros(count, bool), np.zeros((count, len(motion.names)), bool)
    sensors, t = [k for k, name in enumerate(motion.names) if not name.startswith('command/')], 1.0
    while (stream.pause or stream.silence) and t < 1e-3 * count:
        first, last = round(1e3 * t), round(1e3 * (t + (stream.pause or stream.silence)))
        if stream.pause:
            paused[first:last] = True
        else:
            silent[first:last, rng.choice(sensors)] = True
        t += stream.pause + stream.silence + rng.uniform(1.0, 3.0)
    rows, places = [], []
    for place, name in enumerate(motion.names):
        found = stream.samples(name, 1e-3 * count, rng)
        found = found[(found >= 0) & (found < count)]
        found = found[~(paused[found] | silent[found, place])]
        rows.append(found)
        places.append(np.full(len(found), place))
    row, place = np.concatenate(rows), np.concatenate(places)
    order = np.lexsort((place, row))
    return place[order], row[order] * 1_000_000, motion.values[row[order], place[order]]


def judged(motion: Motion, machine: Machine, stream: Stream, seed: int) -> dict:
    """What the offline pipeline makes of a thinned log, against the truth."""
    pipeline = Pipeline(machine, InterpolationSettings(step=stream.step))
    segments = pipeline.all_segments(motion.names, *thinned(motion, stream, seed), lambda error, row: None)
    found, reasons, restarts = [], Counter[str](), 0
    for segment in (*segments, *pipeline.last_segments()):
        state = pipeline.observer.process(segment)
        p = pipeline.payload.process(state)
        restarts += state.restart
        found.append((segment.start_ns * 1e-9, p.stamp_ns * 1e-9, p.lower, p.upper, p.status))
        if p.status in (PayloadStatus.IMPLAUSIBLE, PayloadStatus.CHANGING):
            reasons[f'{p.status.name}: {p.reason}'] += 1
    start, t, lower, upper, status = np.array(found).T
    now = np.minimum(np.rint(1e3 * t).astype(int), len(motion.load) - 1)
    load, calm, dt = motion.load[now], motion.changed[now] > SETTLED, t - start
    updating, outside = status == PayloadStatus.UPDATING, (load < lower) | (load > upper)
    wrong, held = updating & outside, status[-1] in HELD or not np.isfinite(upper[-1] - lower[-1])
    alarm = calm & (np.cumsum(updating) > 0)        # before the first mass the load is not known to be constant
    last = 'held' if held else 'misses' if outside[-1] else 'holds'
    half = (upper - lower)[updating] / 2 / machine.payload_data.limits[1]
    return {'updating_s': float(dt[updating].sum()), 'wrong_s': float(dt[wrong].sum()),
            'updating_constant_s': float(dt[updating & calm].sum()), 'wrong_constant_s': float(dt[wrong & calm].sum()),
            'longest_s': longest(wrong & calm, dt), 'longest_changing_s': longest(wrong & ~calm, dt),
            'implausible_s': float(dt[status == PayloadStatus.IMPLAUSIBLE].sum()),
            'changing_s': float(dt[(status == PayloadStatus.CHANGING) & alarm].sum()),
            'final': last, 'half_width': float(np.median(half)) if len(half) else None, 'restarts': restarts,
            'reasons': dict(reasons.most_common(3))}


def longest(where: np.ndarray, dt: np.ndarray) -> float:
    """The longest spell, s."""
    most = spell = 0.0
    for inside, length in zip(where.tolist(), dt.tolist()):
        spell = spell + length if inside else 0.0
        most = max(most, spell)
    return most


def run(log: Log) -> list[dict]:
    """A row for each stream."""
    machine = load_machine(log.machine, log.valve)
    motion = simulated(log, machine)
    about = {**asdict(log), 'cycle': log.cycle, 'valve': log.valve or 'file', 'load': float(motion.load.max())}
    del about['streams']
    return [{**about, 'stream': name, **judged(motion, machine, STREAMS[name], log.seed)} for name in log.streams]


HEADER = ('sensors', 'logs', 'hours', 'time with a mass', 'inside its interval', 'inside while the load is constant',
          'longest outside then, s', 'longest outside after a change, s', '`IMPLAUSIBLE`, s',
          '`CHANGING` without a change, s', 'intervals at the end that hold', 'half-width, of full scale')


def line(name: str, rows: list[dict]) -> str:
    """One row of the table."""
    def total_of(key: str) -> float:
        return sum(row[key] for row in rows)
    total, updating = total_of('seconds'), total_of('updating_s')
    told = [row['final'] for row in rows if row['final'] != 'held']
    half = [row['half_width'] for row in rows if row['half_width'] is not None]
    cells = (name, len(rows), f'{total / 3600:.2f}', f'{100 * updating / total:.0f} %',
             *(f'{100 - 100 * total_of(f"wrong{kind}_s") / max(total_of(f"updating{kind}_s"), 1e-9):.1f} %'
               for kind in ('', '_constant')),
             *(f'{max(row[key] for row in rows):.1f}' for key in ('longest_s', 'longest_changing_s')),
             *(f'{total_of(key):.1f}' for key in ('implausible_s', 'changing_s')),
             f'{told.count("holds")} of {len(told)}', f'{100 * np.median(half):.1f} %' if half else '')
    return f'| {" | ".join(map(str, cells))} |'


def table(rows: list[dict], by: Callable[[dict], str]) -> None:
    """Markdown."""
    print(f'| {" | ".join(HEADER)} |\n|{"---|" * len(HEADER)}')
    for name in sorted({by(row) for row in rows}, key=lambda name: (name not in STREAMS, name in STREAMS and list(
            STREAMS).index(name), name)):
        print(line(name, [row for row in rows if by(row) == name]))


def read(files: Iterable[Path]) -> list[dict]:
    return [json.loads(text) for file in files if file.exists() for text in file.read_text().splitlines()]


def missing(logs: Iterable[Log], rows: list[dict]) -> Iterator[Log]:
    """What is still to be run."""
    done = {(row['machine'], row['seed'], row['seconds'], row['stream']) for row in rows}
    for log in logs:
        streams = tuple(name for name in log.streams if (log.machine, log.seed, log.seconds, name) not in done)
        if streams:
            yield replace(log, streams=streams)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--machines', nargs='*', choices=CYCLES, default=list(CYCLES))
    parser.add_argument('--rates', nargs='*', choices=STREAMS, default=list(STREAMS), metavar='RATE',
                        help=', '.join(f'"{name}"' for name in STREAMS))
    parser.add_argument('--seeds', type=int, default=2)
    parser.add_argument('--first', type=int, default=0)
    parser.add_argument('--seconds', type=float, default=30.0)
    parser.add_argument('--json', type=Path, default=Path('out/rates.jsonl'))
    parser.add_argument('--table', nargs='+', type=Path, help='only print the table of such files')
    add_workers(parser)
    args = parser.parse_args()
    if not args.table:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        logs = [Log(name, seed, args.seconds, tuple(args.rates))
                for seed in range(args.first, args.first + args.seeds) for name in args.machines]
        for rows in results(run, missing(logs, read([args.json])), args.jobs, args.cluster):
            with args.json.open('a') as file:
                file.writelines(json.dumps(row) + '\n' for row in rows)
    rows = read(args.table or [args.json])
    logs = {(row['machine'], row['seed'], row['seconds']) for row in rows}
    print(f'{len(logs)} simulated logs of {len({item[0] for item in logs})} machines, '
          f'{sum(item[2] for item in logs) / 3600:.2f} h, {date.today()}\n')
    table(rows, lambda row: row['stream'])


if __name__ == '__main__':
    main()
