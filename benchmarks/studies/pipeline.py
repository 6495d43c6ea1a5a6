# SPDX-License-Identifier: Apache-2.0
"""``mbse benchmark pipeline``: the whole chain over a log, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import typer

from mbse_ros.machine import load_machine
from mbse_ros.report.files import check_file, write_json
from mbse_ros.simulation.crane import SimulatedCrane

LOG_S = 23.5
SEGMENT_S = 0.1     # a log needs no short segments
CHILD = '''
import resource, sys, time
import numpy as np
from mbse_ros.machine import load_machine
from mbse_ros.streams.interpolation import Interpolator
from mbse_ros.streams.pipeline import Merger
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.streams.stages import ObserverStage, PayloadStage
log = np.load(sys.argv[1])
names = [str(name) for name in log['channels']]
samples = [(names[k], int(stamp), float(value)) for k, stamp, value in zip(log['channel'], log['stamp'], log['value'])]
machine = load_machine('patu655_lift')
def segments_of(duration):
    interpolator = Interpolator(machine.channels, machine.commands, delays=machine.delays)
    merger = Merger(round(1e9 * duration))
    found = [joined for channel, stamp, value in samples for segment in interpolator.add(channel, stamp, value)
             for joined in merger.add(segment)]
    return found + list(merger.flush())
def stages(segments):
    observer, payload = ObserverStage(machine), PayloadStage(machine)
    start = time.perf_counter()
    outputs = [payload.process(observer.process(segment)) for segment in segments]
    return time.perf_counter() - start
def whole(duration):
    pipeline, outputs = Pipeline(machine, segment=duration), []
    start = time.perf_counter()
    for channel, stamp, value in samples:
        outputs += pipeline.add(channel, stamp, value)
    outputs += pipeline.flush()
    return time.perf_counter() - start
duration = float(sys.argv[3])
long, short = segments_of(duration), segments_of(1e-9)
calls = [lambda: stages(long), lambda: stages(short), lambda: whole(duration), lambda: whole(0.0)]
best = [float('inf')] * len(calls)
for _ in range(int(sys.argv[2])):
    best = [min(old, call()) for old, call in zip(best, calls)]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(*best, sum(len(segment.values) for segment in long), peak)
'''


def run_pipeline(json_file: Path | None, runs: int) -> None:
    """Simulate a log, run it ``runs`` times in a new process, print and write the fastest.

    ``real_time_share`` is that of observer and payload over segments of 0.1 s, as for a log.
    """
    check_file(json_file)
    crane = SimulatedCrane(load_machine('patu655_lift'))
    rows = [(channel, frame.stamp_ns, value) for frame in crane.advance(round(LOG_S * 1e9))
            for channel, value in (*frame.samples.items(), *frame.commands.items())]
    channels = list(dict.fromkeys(channel for channel, _, _ in rows))
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / 'log.npz'
        np.savez(log, channels=channels, channel=[channels.index(c) for c, _, _ in rows],
                 stamp=np.array([s for _, s, _ in rows], dtype=np.int64), value=[v for _, _, v in rows])
        done = subprocess.run([sys.executable, '-c', CHILD, str(log), str(runs), str(SEGMENT_S)], check=True,
                              env={**os.environ, 'OPENBLAS_NUM_THREADS': '1'}, capture_output=True, text=True)
    *seconds, steps, peak = (float(word) for word in done.stdout.split())
    shares = [second / LOG_S for second in seconds]
    result = {'log_s': LOG_S, 'steps': int(steps), 'real_time_share': shares[0], 'peak_mb': peak,
              'segment_s': SEGMENT_S,
              'short_segments_share': shares[1], 'with_interpolation_share': shares[2],
              'short_segments_with_interpolation_share': shares[3]}
    write_json(json_file, result)
    long, short, long_whole, short_whole = (f'{100 * share:.2f} %' for share in shares)
    typer.echo(f'{LOG_S} s of samples, {int(steps)} steps, shares of real time, fastest of {runs}:\n'
               f'observer and payload {long} in segments of {SEGMENT_S} s, {short} in those of one sensor period\n'
               f'with interpolation   {long_whole} and {short_whole}; the nodes use the short ones\n'
               f'peak memory {peak:.0f} MB')
