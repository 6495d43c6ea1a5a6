# SPDX-License-Identifier: Apache-2.0
"""Memory of ``mbse estimate`` for hours of bag, without estimating them: the Outputs and samples of one bag again and
again through what keeps them and through the checks.

    python benchmarks/estimate_memory.py [--machine zx200] [--hours 1] [--states]

Prints MB for the rows and samples, MB at most during the checks, and s of the processor of both. ``--states``: with the
states at the ends of the periods, as for ``--full`` and ``--report``.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

from mbse_ros.bags.reader import SampleReader
from mbse_ros.machine import load_machine
from mbse_ros.offline.bag import estimate_bag
from mbse_ros.offline.checks.log_verdict import fit_lines, sample_lines, state_lines, stroke_lines
from mbse_ros.offline.checks.plausibility import judged
from mbse_ros.offline.log_samples import LogSamples
from mbse_ros.offline.track import Tracker
from mbse_ros.streams.pipeline import Output
from studies.bags import write_long_bag

LAP_S, PAUSE_NS = 60.0, 1_000_000_000


def used() -> float:
    """MB of this process."""
    return int(Path('/proc/self/statm').read_text().split()[1]) * os.sysconf('SC_PAGE_SIZE') * 1e-6


class Peak:
    """The most of ``used`` while it runs."""

    def __init__(self) -> None:
        self.most, self._end = used(), Event()
        self._thread = Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(0.01):
            self.most = max(self.most, used())


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--machine', default='zx200')
    parser.add_argument('--hours', type=float, default=1.0)
    parser.add_argument('--states', action='store_true')
    args = parser.parse_args()
    machine, outputs = load_machine(args.machine), list[Output]()
    with TemporaryDirectory() as folder:
        write_long_bag(args.machine, Path(folder) / 'bag', LAP_S)
        estimate_bag(Path(folder) / 'bag', machine, {}, take=outputs.append)
        reader = SampleReader(Path(folder) / 'bag', machine.channels, machine.commands)
        blocks = list(reader.blocks())
    tracker, samples, before, begin = Tracker(args.states), LogSamples(), used(), time.process_time()
    for lap in range(round(args.hours * 3600.0 / LAP_S)):
        for output in outputs:
            tracker.add(output)
        for block in blocks:
            shift = lap * (round(1e9 * LAP_S) + PAUSE_NS)
            samples.add(reader.channels, block.channels, block.stamps + shift, block.values)
    track = tracker.track()
    kept, taken, begin = used() - before, time.process_time() - begin, time.process_time()
    with Peak() as peak:
        sample_lines(samples, 0, 100_000_000)
        stroke_lines(samples, machine)
        state_lines(track)
        fit_lines(track)
        judged(samples, machine)
    print(f'{args.hours:g} h of {args.machine}: {len(track)} periods, {samples.count} samples; kept {kept:.0f} MB in '
          f'{taken:.1f} s, at most {peak.most - before:.0f} MB during the checks, which take '
          f'{time.process_time() - begin:.1f} s')


if __name__ == '__main__':
    main()
