# SPDX-License-Identifier: Apache-2.0
"""Random mechanism files through reader, assembly and equations of motion: an error of the package or a sound model.

    python benchmarks/mechanism_fuzz.py --runs 10000 [--seed 0] [--output counts.json]

Three kinds: good files with random changes, random linkages, random documents. A sound model has finite accelerations
that fulfil its equations of motion and are the same in natural and in reference-point coordinates. A fourth, grammar:
a joint with all forces, springs and sensors, in some coordinates, through a filter, the smoother, the factor graph or
exported C. Whatever else happens is a failure; it is printed with its seed, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))
from grammar_runs import TOOLS, model_of
from grammar_runs import run as run_tool
from linkage_mutations import dump, mutated, random_document, random_mechanism
from linkage_soundness import outcome
from mechanism_grammar import JOINTS

from mbse_ros.errors import MbseError

COORDINATES = {2: ('natural', 'reference_point', 'relative'), 3: ('reference_point', 'relative')}


def of_text(make: Callable[[Random], object]) -> Callable[[Random], str]:
    """Outcome of a file that a generator makes."""
    return lambda rng: outcome(dump(make(rng)))


def of_grammar(rng: Random) -> str:
    """Outcome of a tool on a model of the grammar."""
    dimension = rng.choice(list(JOINTS))
    case = dimension, rng.choice(list(JOINTS[dimension])), rng.choice(COORDINATES[dimension]), rng.choice(TOOLS)
    try:
        with tempfile.TemporaryDirectory() as folder:
            run_tool(model_of(*case), case[-1], Path(folder) / 'c')
    except MbseError as error:
        return type(error).__name__
    except Exception as error:
        raise RuntimeError(', '.join(map(str, case))) from error
    return 'ok'


KINDS = {'mutated': of_text(mutated), 'linkage': of_text(random_mechanism), 'document': of_text(random_document),
         'grammar': of_grammar}


def run(kind: str, runs: int, seed: int) -> tuple[dict[str, int], int]:
    """Counts by outcome, and the number of failures."""
    counts: Counter[str] = Counter()
    failures = 0
    for index in range(runs):
        name = f'{kind} {seed} {index}'
        try:
            counts[KINDS[kind](Random(name))] += 1
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
