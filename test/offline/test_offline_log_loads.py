# SPDX-License-Identifier: Apache-2.0
"""The loads of simulated logs against the truth: each that was weighed once, in its interval, at its time; none other.

And the same in every list: estimate, loads and fleet, Python, and the live scale.
"""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from cli_support import mbse
from core_support import feed
from machine_variants import REMOVED, changed

import mbse_ros
from mbse_ros.bags.writer import BagWriter, write_frame
from mbse_ros.machine import Machine, load_machine
from mbse_ros.offline.bag import KINDS, estimate_bag, parse_tuning
from mbse_ros.offline.log_loads import LogLoads, WeighedLoad
from mbse_ros.scale.stage import ScaleStage
from mbse_ros.simulation.crane import CraneSettings, SensorFrame, SimulatedCrane, cycle_by_name, plant_of
from mbse_ros.simulation.cycle import Move, WorkCycle
from mbse_ros.simulation.plant import Plant
from mbse_ros.streams.pipeline import Pipeline

RATE = 100.0        # Hz
END = 8.5           # s, after the load was dropped
LIGHTEST = 0.03     # of the full scale: see ScaleSettings
LATE = 2.5          # s after it was dropped, or taken at 100 Hz, in which a change shows
DROPPED = (0.0, 1.0), (12.0, 1.0), (12.2, 0.0), (17.0, 0.0), (17.2, 0.6), (30.0, 0.6)
UP_DOWN = WorkCycle(0.3, tuple(Move(v, 1.5) for _ in range(4) for v in (4.0, -4.0)), load=(
    (0.0, 0.0), (2.4, 0.0), (2.5, 0.5), (5.9, 0.5), (6.0, 0.0), (9.4, 0.0), (9.5, 1.0), (12.0, 1.0)))


@cache
def built(name: str) -> tuple[Machine, Plant]:
    machine = load_machine(name)
    return machine, plant_of(machine)


def frames_of(name: str, cycle: str, payload: float, rate: float) -> list[SensorFrame]:
    """Of a machine whose numbers are off by what its file says, at a rate of which 100 Hz is a multiple."""
    return simulated(name, cycle, payload)[::round(RATE / rate)]


@cache
def simulated(name: str, cycle: str, payload: float) -> list[SensorFrame]:
    machine, plant = built(name)
    found = UP_DOWN if cycle == 'up and down' else cycle_by_name(cycle.removesuffix(', dropped'), machine, 1)
    found = replace(found, load=DROPPED) if cycle.endswith('dropped') else found
    numbers = plant.machine.parameters
    true = numbers.mean + numbers.stddev * np.random.default_rng([1, 7]).standard_normal(len(numbers.mean))
    return SimulatedCrane(machine, payload, 1, found, CraneSettings(rate=RATE), true, plant).run()


def loads_of(frames: list[SensorFrame], machine: Machine, segment: float = 0.1) -> tuple[WeighedLoad, ...]:
    """As the live scale finds them, from the first to the last sample; ``segment``, s: 0 as it is live."""
    log = LogLoads(ScaleStage(machine))
    log.begin('x')
    for output in feed(Pipeline(machine, segment=segment), frames):
        log.take(output)
    log.close()
    return tuple(log.loads)


def carried(frames: list[SensorFrame]) -> list[tuple[float, float, float, float, float]]:
    """Of each true load when it begins to be taken, hangs there whole, begins to be dropped, is gone, s; its mass."""
    t = np.array([f.stamp_ns for f in frames]) * 1e-9
    mass, found = np.array([f.payload for f in frames]), []
    edges = np.flatnonzero(np.diff((mass > 0.0).astype(int), prepend=0, append=0))
    for first, end in zip(edges[::2], edges[1::2]):
        whole = np.flatnonzero(mass[first:end] > mass[first:end].max() - 1e-6) + first
        found.append((t[first], t[whole[0]], t[whole[-1]], t[end - 1], mass[whole[0]]))
    return found


CASES = [('zx200', 'dig', 1200.0), ('zx200', 'dig', 400.0), ('zx200', 'boom', 1000.0),
         ('zx200', 'random, dropped', 1200.0), ('zx200_can', 'boom, dropped', 1000.0),
         ('patu655_lift', 'up and down', 400.0), ('patu655_lift', 'random, dropped', 400.0),
         ('patu655', 'random, dropped', 400.0)]


SLOW = 'zx200', 'random, dropped'       # at 20 Hz held for seconds: samples are too rare for this motion


@pytest.mark.parametrize('name, cycle, payload, rate', [
    *((*case, 20.0) for case in CASES if case[:2] != SLOW and case != CASES[1]),
    *((*case, 100.0) for case in CASES if case[:2] == SLOW or case == CASES[1])])
def test_each_load_once_in_its_interval_at_its_time(name: str, cycle: str, payload: float, rate: float) -> None:
    frames = frames_of(name, cycle, payload, rate)
    true, found = carried(frames), loads_of(frames, built(name)[0])
    assert len(found) == len(true) and all(load.trusted for load in found)
    for load, (taken, whole, dropped, gone, mass) in zip(found, true):
        half = (load.upper - load.lower) / 2        # of an interval of 95 %: one of these loads is just outside
        assert abs(load.mass - mass) < 1.2 * half and 2.0 * half < 0.08 * built(name)[0].payload_data.limits[1]
        begin, end = (1e-9 * load.record.data[name] for name in ('start_ns', 'end_ns'))
        assert taken - 0.5 < begin < whole + LATE * (100.0 / rate) ** 0.5 and dropped - 0.5 < end < gone + LATE


@pytest.mark.parametrize('name, cycle, payload', [*CASES[3:6], CASES[7], ('zx200', 'dig', 0.0)])
def test_at_10_hz_no_load_that_never_was(name: str, cycle: str, payload: float) -> None:
    """Some loads cannot be weighed then; what is listed was carried at that time, and nothing reaches over a drop."""
    frames = frames_of(name, cycle, payload, 10.0)
    true, found = carried(frames), loads_of(frames, built(name)[0])
    for load in (load for load in found if load.record.counts):
        begin, end = (1e-9 * load.record.data[name] for name in ('start_ns', 'end_ns'))
        met = [other for other in true if min(end, other[2]) > max(begin, other[1])]
        assert len(met) == 1 and begin > met[0][0] - 0.5 and end < met[0][3] + LATE
        assert load.mass > LIGHTEST * built(name)[0].payload_data.limits[1]


def lifted() -> list[SensorFrame]:
    """The crane takes, carries and drops one load of 200 kg."""
    return [frame for frame in frames_of('patu655_lift', 'up and down', 400.0, 50.0) if frame.stamp_ns < END * 1e9]


def written(folder: Path, machine: Machine, frames: list[SensorFrame]) -> Path:
    with BagWriter(folder, 'mcap', frame=machine.name) as writer:
        for frame in frames:
            write_frame(writer, machine, frame)
    return folder


@pytest.fixture(scope='module')
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp('bags') / 'lift', built('patu655_lift')[0], lifted())


def test_one_list(bag: Path, tmp_path: Path) -> None:
    """JSON of estimate and of loads, the table of fleet, Python, and the live scale: the same load, bit for bit."""
    done = mbse('estimate', bag, '--json', tmp_path / 'e.json')
    assert mbse('loads', bag, '--json', tmp_path / 'l.json').status == 0
    assert mbse('fleet', bag, '--jobs', 1, '-o', tmp_path / 'f.csv', '--json', tmp_path / 'f.json').status == 0
    (load,) = json.loads((tmp_path / 'e.json').read_text())['payload']['loads']
    found, fleet = (json.loads((tmp_path / name).read_text()) for name in ('l.json', 'f.json'))
    assert found['loads'] == [load] and found['total'] == fleet['total'] == load['mass']
    assert found['total_interval'] == fleet['total_interval'] == pytest.approx(load['interval'])
    (row,) = csv.DictReader(next((tmp_path / 'f.csv' / 'loads').iterdir()).open())
    assert [row['start'], row['end'], row['faults']] == [load['start'], load['end'], ' '.join(load['faults'])]
    assert float(row['mass_kg']) == pytest.approx(load['mass'], rel=1e-8)
    lower, upper = load['interval']
    assert (f'load 1: {load["start_s"]:.1f} to {load["end_s"]:.1f} s, {load["mass"]:.1f} ({lower:.1f} to {upper:.1f}) '
            'kg') in done.out
    estimate = mbse_ros.estimate(bag, 'patu655_lift')
    (own,), first = estimate.loads, estimate.t[0]
    assert [own.start - first, own.end - first, own.mass, own.lower, own.upper] == pytest.approx(
        [load['start_s'], load['end_s'], load['mass'], lower, upper], rel=1e-12)
    assert (own.status, own.trusted, list(own.faults)) == (load['status'], load['trusted'], load['faults'])
    (live,) = loads_of(lifted(), built('patu655_lift')[0], 0.0)
    assert live.record.data == own.record.data


def test_tuning_of_the_scale(bag: Path) -> None:
    """The same words as for ``mbse loads``."""
    for least, count in (('150', 1), ('300', 0)):
        tuning = parse_tuning([f'scale.least_load={least}'], KINDS)
        assert len(estimate_bag(bag, built('patu655_lift')[0], tuning, every=0.1).loads) == count


def test_sensors_that_weigh_too_little_of_a_load_count_none(tmp_path: Path) -> None:
    """Of the arm alone: no list that joins what lies before and after the load, and why."""
    machine = changed('zx200', {f'sensors/{cylinder}_{side}': REMOVED for cylinder in ('boom', 'bucket')
                                for side in ('piston', 'rod')})
    dug = [frame for frame in frames_of('zx200', 'dig', 1200.0, 20.0) if frame.stamp_ns < 16e9]     # and dropped
    found = estimate_bag(written(tmp_path / 'dig', machine, dug), machine, {}, every=0.1)
    assert found.loads == () and '5% of payload.limits' in found.uncounted
    assert f'loads are not counted: {found.uncounted}' in found.summary()
