# SPDX-License-Identifier: Apache-2.0
"""``mbse benchmark pipeline``: the whole chain over a log, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import typer

from ..machine import load_machine
from ..simulation.crane import SimulatedCrane

LOG_S = 23.5
SEGMENT_S = 0.1     # a log needs no short segments
CHILD = '''
import resource, sys, time
import numpy as np
from mbse_ros.machine import load_machine
from mbse_ros.streams.pipeline import Pipeline
log = np.load(sys.argv[1])
names = [str(name) for name in log['channels']]
samples = [(names[k], int(stamp), float(value)) for k, stamp, value in zip(log['channel'], log['stamp'], log['value'])]
machine = load_machine('patu655_lift')
def run(segment):
    pipeline = Pipeline(machine, segment=segment)
    outputs = []
    start = time.perf_counter()
    for channel, stamp, value in samples:
        outputs += pipeline.add(channel, stamp, value)
    outputs += pipeline.flush()
    return time.perf_counter() - start, sum(len(output.state.mean) for output in outputs)
runs = [(run(float(sys.argv[3])), run(0.0)) for _ in range(int(sys.argv[2]))]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(min(log[0] for log, _ in runs), min(online[0] for _, online in runs), runs[0][0][1], peak)
'''


def run_pipeline(json_file: Path | None, runs: int = 7) -> None:
    """Simulate a log, run it ``runs`` times in a new process, print and write the fastest."""
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
    seconds, online, steps, peak = (float(word) for word in done.stdout.split())
    result = {'log_s': LOG_S, 'steps': int(steps), 'real_time_share': seconds / LOG_S, 'peak_mb': peak,
              'segment_s': SEGMENT_S, 'online_real_time_share': online / LOG_S}
    if json_file is not None:
        json_file.write_text(json.dumps(result, indent=2) + '\n')
    typer.echo(f'{LOG_S} s of samples, {int(steps)} steps, interpolation included, fastest of {runs}:\n'
               f'{1e3 * seconds:.0f} ms = {100 * seconds / LOG_S:.2f} % of real time in segments of {SEGMENT_S} s\n'
               f'{1e3 * online:.0f} ms = {100 * online / LOG_S:.2f} % in segments of one sensor period, as the nodes run\n'
               f'peak memory {peak:.0f} MB')
