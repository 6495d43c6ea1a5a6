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

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test'))
from linkage_mutations import dump, mutated, random_document, random_mechanism  # noqa: E402

from mbse_ros.dynamics.model import Model  # noqa: E402
from mbse_ros.errors import DescriptionError, MbseError  # noqa: E402
from mbse_ros.mechanism.linkage.load import parse_mechanism  # noqa: E402
from mbse_ros.mechanism.linkage.model import MechanismDescription  # noqa: E402

KINDS = {'mutated': mutated, 'linkage': random_mechanism, 'document': random_document}
TOLERANCE = 1e-6     # relative; lengths from 1e-3 to 1e3 m meet in one file


class Unsound(Exception):
    """A model that was built but is wrong."""


def outcome(text: str) -> str:
    """What became of one file; raises what must not happen."""
    try:
        description = parse_mechanism(text)
    except DescriptionError:
        return 'refused by the reader'
    try:
        model = Model(description, backend='vm')
        accelerations = check(model)
    except MbseError as error:
        return f'refused: {type(error).__name__}'
    return 'sound, compared' if compared(description, model, accelerations) else 'sound'


def check(model: Model) -> np.ndarray:
    """Accelerations at the start, (n,), which fulfil ``M qdd + J' lam = Q`` and ``J qdd = c``."""
    start = model.start
    qdd = model.accelerations(start.q, start.qd)
    terms = model.terms(start.q, start.qd)
    if not np.all(np.isfinite(qdd)):
        raise Unsound('accelerations that are not finite')
    scale = max(1.0, float(np.abs(terms.J).max(initial=0.0)) * float(np.abs(qdd).max(initial=0.0)),
                float(np.abs(terms.c).max(initial=0.0)))
    if float(np.abs(terms.J @ qdd - terms.c).max(initial=0.0)) > TOLERANCE * scale:
        raise Unsound('accelerations that break the constraints')
    force = terms.Q - terms.M @ qdd
    rest = force - terms.J.T @ np.linalg.lstsq(terms.J.T, force, rcond=None)[0] if len(terms.J) else force
    if float(np.abs(rest).max(initial=0.0)) > TOLERANCE * max(1.0, float(np.abs(terms.M).max() * np.abs(qdd).max()),
                                                             float(np.abs(terms.Q).max())):
        raise Unsound('accelerations that break the equations of motion')
    return qdd


def compared(description: MechanismDescription, model: Model, accelerations: np.ndarray) -> bool:
    """Whether the named coordinates could be compared with those in other coordinates; raises where they differ."""
    other_type = 'reference_point' if description.coordinate_type == 'natural' else 'natural'
    names = list(description.coordinates)
    if description.dimension == 3 or not names:
        return False
    try:
        other = Model(description, other_type, backend='vm')
        there = other.accelerations(other.start.q, other.start.qd)
    except MbseError:
        return False
    here, at = model.system.indices(names), other.system.indices(names)
    if not np.allclose(model.start.q[here], other.start.q[at], rtol=0.0, atol=1e-8):
        return False         # another branch of the linkage
    if other.degrees_of_freedom != model.degrees_of_freedom:
        raise Unsound(f'{model.degrees_of_freedom} and {other.degrees_of_freedom} degrees of freedom')
    energy, energy_there = (item.energy(item.start.q, item.start.qd) for item in (model, other))
    if abs(energy.kinetic - energy_there.kinetic) > 1e-9 * max(1.0, energy.kinetic):
        return False         # velocities that the file leaves open were chosen in another way
    if abs(energy.potential - energy_there.potential) > 1e-6 * max(1.0, abs(energy.potential)):
        return False         # as above, of bodies that are not named
    scale = max(1.0, float(np.abs(accelerations).max()), float(np.abs(there).max()))
    if float(np.abs(accelerations[here] - there[at]).max()) > 1e-5 * scale:
        raise Unsound(f'accelerations {accelerations[here]} and {there[at]} of {names}')
    return True


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
