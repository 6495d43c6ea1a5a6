# SPDX-License-Identifier: Apache-2.0
"""Mutated files, bags, messages and parameters through the package: our own errors, or nothing at all.

    python benchmarks/mutations.py [--only KIND,...] [--count 1000] [--seconds S] [--seed 0] [--jobs 1] [--json F]
    python benchmarks/mutations.py --again FOLDER       # a case that failed, in this process, with its traceback

Each kind runs in worker processes with a limit of memory (500 MB) and a watch (10 s for a case). A traceback, another
error than those of mbse_ros.errors, a crash, a hang or more memory is a failure: its files are kept in a folder below
``-o``, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / 'benchmarks'), str(ROOT), str(ROOT / 'test' / 'support')]
os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
os.environ.setdefault('ROS_DOMAIN_ID', '182')
os.environ.update(OMP_NUM_THREADS='1', OPENBLAS_NUM_THREADS='1')

from fuzz.kinds import KINDS  # noqa: E402
from fuzz.run import MB, Tally, emptied, random_of, watched, written  # noqa: E402


def again(folder: Path) -> None:
    """Run one case in this process."""
    name = folder.name.partition('-')[0]
    with tempfile.TemporaryDirectory() as top:
        place = Path(top) / 'case'
        place.mkdir()
        case = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != 'failure.txt'}
        written(case, place)
        kind = KINDS[name](place)
        kind.prepare()
        print(dict(kind.run(case)), flush=True)
    os._exit(0)


def kept(name: str, seed: int, index: int, text: str, output: Path) -> Path:
    """The files of a failed case, and what came of it, in a folder of their own."""
    folder = output / f'{name}-{seed}-{index}'
    folder.mkdir(parents=True, exist_ok=True)
    emptied(folder)
    with tempfile.TemporaryDirectory() as unused:
        written(KINDS[name](Path(unused)).make(random_of(name, seed, index)), folder)
    (folder / 'failure.txt').write_text(text)
    return folder


def fuzzed(name: str, options: argparse.Namespace, first: int, stop: int) -> Tally:
    """A part of the cases of a kind; each sort of failure is shown once."""
    shown: Counter[str] = Counter()
    until = time.monotonic() + (options.seconds or 1e9)

    def tell(index: int, text: str) -> None:
        sort = hashlib.sha1('\n'.join(text.strip().splitlines()[-4:-1] or [text]).encode()).hexdigest()
        shown[sort] += 1
        if shown[sort] <= 2:
            folder = kept(name, options.seed, index, text, options.output)
            print(f'--- {name} {index}: {text.strip()[-1500:]}\n    again: python benchmarks/mutations.py --again '
                  f'{folder}', flush=True)
    return watched(KINDS[name], name, options.seed, first, stop, until, tell)


def summed(parts: list[Tally], seconds: float) -> dict:
    """The figures of a kind."""
    outcomes = sum((part.outcomes for part in parts), Counter())
    return {'cases': sum(part.cases for part in parts), 'mutations': sum(outcomes.values()),
            'outcomes': dict(outcomes.most_common()), 'failures': sum(len(part.failures) for part in parts),
            'failed': [index for part in parts for index, _ in part.failures][:100],
            'peak_MB': round(max(part.peak for part in parts) / MB),
            'slowest_s': max(part.slowest for part in parts), 'seconds': round(seconds)}


def main() -> int:
    """Print a line for each kind; 1 where there was a failure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--only', default=','.join(KINDS), help=f'of {", ".join(KINDS)}')
    parser.add_argument('--count', type=int, default=1000, help='cases of each kind')
    parser.add_argument('--seconds', type=float, help='of each kind, at most')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--jobs', type=int, default=1)
    parser.add_argument('--json', type=Path)
    parser.add_argument('-o', '--output', type=Path, default=Path('out/mutations'))
    parser.add_argument('--again', type=Path)
    options = parser.parse_args()
    if options.again:
        again(options.again)
    report = {}
    for name in options.only.split(','):
        began, edges = time.monotonic(), [options.count * k // options.jobs for k in range(options.jobs + 1)]
        with ThreadPoolExecutor(options.jobs) as pool:
            parts = list(pool.map(lambda pair: fuzzed(name, options, *pair), zip(edges, edges[1:])))  # noqa: B023
        report[name] = summed(parts, time.monotonic() - began)
        print(name, report[name], flush=True)
        if options.json:
            options.json.write_text(json.dumps(report, indent=2) + '\n', encoding='utf-8')
    print(f'{sum(one["mutations"] for one in report.values())} mutations, '
          f'{sum(one["failures"] for one in report.values())} failures')
    return int(any(one['failures'] for one in report.values()))


if __name__ == '__main__':
    sys.exit(main())
