# SPDX-License-Identifier: Apache-2.0
"""Random mechanism files through reader, assembly and equations of motion: an error of the package or a sound model.

    python benchmarks/mechanism_fuzz.py --runs 10000 [--seed 0] [--output counts.json]

Three kinds: good files with random changes, random linkages, random documents. A sound model has finite accelerations
that fulfil its equations of motion and are the same in natural and in reference-point coordinates. Whatever else
happens is a failure; it is printed with its seed, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test'))
from linkage_mutations import dump, mutated, random_document, random_mechanism
from linkage_soundness import outcome

KINDS = {'mutated': mutated, 'linkage': random_mechanism, 'document': random_document}

def run(kind: str, runs: int, seed: int) -> tuple[dict[str, int], int]:
    """Counts by outcome, and the number of failures."""
    counts: Counter[str] = Counter()
    failures = 0
    for index in range(runs):
        name = f'{kind} {seed} {index}'
        text = dump(KINDS[kind](Random(name)))
        try:
            counts[outcome(text)] += 1
        except Exception as error:   # the very thing that is looked for
            failures += 1
            counts[f'FAILED: {type(error).__name__}'] += 1
            print(f'--- {name!r}', traceback.format_exc(limit=-4), sep='\n', flush=True)
    return dict(counts.most_common()), failures


def main() -> int:
    """Print the counts; 1 where there was a failure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--runs', type=int, default=10_000, help='files of each kind')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--kind', choices=[*KINDS], action='append', help='only this kind')
    parser.add_argument('--output', type=Path, help='JSON of the counts')
    options = parser.parse_args()
    report, failed = {}, 0
    for kind in options.kind or KINDS:
        started = time.perf_counter()
        report[kind], failures = run(kind, options.runs, options.seed)
        failed += failures
        print(f'{kind}: {report[kind]} in {time.perf_counter() - started:.0f} s', flush=True)
    if options.output:
        options.output.write_text(json.dumps(report, indent=2) + '\n', encoding='utf-8')
    return int(failed > 0)


if __name__ == '__main__':
    sys.exit(main())
