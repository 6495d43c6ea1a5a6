# SPDX-License-Identifier: Apache-2.0
"""``mbse benchmark bags``: how fast a bag is read and estimated, and with how much memory, by a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer

from mbse_ros.bags.writer import BagWriter
from mbse_ros.errors import MbseError, SettingError
from mbse_ros.machine import load_machine
from mbse_ros.report.files import check_file, write_json
from mbse_ros.simulation.work import frame_count, working_machine

SHORT_S = 60.0
LONGEST_H = 100.0
PAUSE_NS = 500_000_000      # between two laps of the cycle: the machine is switched off and on again
SHARE = 0.4                 # of the largest payload that hangs on the machine
CHILD = '''
import json, os, resource, sys, time
from mbse_ros.bags.reader import SampleReader
from mbse_ros.machine import load_machine
from mbse_ros.offline.long_log import LongLog
path, name = sys.argv[1:]
machine = load_machine(name)
def cost(work):
    clock, before = time.perf_counter(), os.times()
    found = work()
    spent = sum(after - start for after, start in zip(os.times()[:2], before))
    return found, time.perf_counter() - clock, spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
def read():
    return sum(len(block.stamps) for block in SampleReader(path, machine.channels, machine.commands).blocks())
log = LongLog(SampleReader(path, machine.channels, machine.commands), machine, {})
def estimate():
    count, last = 0, None
    for last in log:
        count += len(last.segment.values)
    return count, last.payload.mass
read_samples, read_s, read_cpu_s, read_peak = cost(read)
(steps, mass), estimate_s, estimate_cpu_s, peak = cost(estimate)
assert read_samples == log.samples
print(json.dumps({'samples': log.samples, 'read_s': read_s, 'estimate_s': estimate_s, 'peak_mb': peak,
                  'samples_per_s': log.samples / read_s, 'read_cpu_s': read_cpu_s, 'read_peak_mb': read_peak,
                  'estimate_cpu_s': estimate_cpu_s, 'steps': steps, 'mass_kg': mass,
                  'dropped': sum(log.dropped.counts().values())}))
'''


def run_bags(json_file: Path | None, machine: str, seconds: float, storage: str) -> None:
    """Write a bag of so many seconds of the simulated machine, read and estimate it in a process of its own.

    ``estimate_s`` holds the reading of that pass, too; functions are compiled before. ``peak_mb``: the largest memory
    of the process. Raises MbseError.
    """
    check_file(json_file)
    if not 1.0 <= seconds <= LONGEST_H * 3600:
        raise SettingError('seconds', seconds, f'from 1 s to {LONGEST_H:g} h')
    with TemporaryDirectory(prefix='mbse_bags_') as folder:
        place = Path(folder) / 'bag'
        write_long_bag(machine, place, seconds, storage)
        size = sum(file.stat().st_size for file in place.iterdir())
        done = subprocess.run([sys.executable, '-c', CHILD, str(place), machine], capture_output=True, text=True,
                              check=False, env={**os.environ, 'OPENBLAS_NUM_THREADS': '1'})
    if done.returncode:
        raise MbseError(f'reading or estimating failed: {"; ".join(done.stderr.strip().splitlines()[-3:])}')
    result = {'machine': machine, 'log_s': seconds, 'bag_mb': size / 1e6, **json.loads(done.stdout)}
    write_json(json_file, result)
    _show(result)


def write_long_bag(machine: str, folder: Path, seconds: float, storage: str = 'mcap') -> None:
    """A bag of the samples and commands of a random cycle at 100 Hz, again and again, with pauses of half a second."""
    described = load_machine(machine)
    payload = described.description.payload
    crane = working_machine(described, payload=None if payload is None else SHARE * payload.limits[1], cycle='random')
    frames = [crane.frame() for _ in range(min(frame_count(crane), round(seconds * 1e9) // crane.period_ns))]
    lap = frames[-1].stamp_ns - frames[0].stamp_ns + PAUSE_NS
    end = frames[0].stamp_ns + round(seconds * 1e9)
    with BagWriter(folder, storage, frame=described.name) as writer:
        shift = 0
        while frames[0].stamp_ns + shift < end:
            for frame in frames:
                if frame.stamp_ns + shift < end:
                    writer.write_samples(frame.stamp_ns + shift, frame.samples, frame.commands)
            shift += lap


def _show(found: dict[str, Any]) -> None:
    count, log = found['samples'], found['log_s']
    sample, step = (1e6 * found['estimate_cpu_s'] / found[what] for what in ('samples', 'steps'))
    typer.echo(
        f'{log:g} s of {found["machine"]}, {count} samples, {found["bag_mb"]:.1f} MB\n'
        f'read      {found["read_s"]:.2f} s ({found["read_cpu_s"]:.2f} of the processor): '
        f'{found["samples_per_s"] / 1e6:.2f} million samples/s, {found["read_peak_mb"]:.0f} MB\n'
        f'estimated {found["estimate_s"]:.2f} s ({found["estimate_cpu_s"]:.2f} of the processor): '
        f'{sample:.1f} us a sample, {step:.1f} a step of the observer, '
        f'{found["peak_mb"]:.0f} MB')
