# SPDX-License-Identifier: Apache-2.0
"""Cost of a filter's step with the size of the mechanism: N-four-bar linkages, one degree of freedom, an encoder.

    python benchmarks/filter_growth.py [--loops 1 2 4 8 16] [--filters DEKF ...] [--output F]
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from mbse_ros.description.generate import n_four_bar
from mbse_ros.description.load import parse_mechanism
from mbse_ros.dynamics.model import load_model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.filters.filters import OF_MECHANISMS, default_noises
from mbse_ros.filters.observer import LinkageObserver

ENCODER = 'sensors:\n  encoder: {kind: encoder, coordinate: theta, stddev: 1 deg}\n'
DT, STEPS, ROUNDS = 1e-3, 200, 20


def step_us(loops: int, estimator: str) -> tuple[float, float]:
    """Processor time of a step, the least of the rounds, and the largest error of the angle at the end, rad."""
    model = load_model(parse_mechanism(n_four_bar(loops) + ENCODER))
    motion = simulate(model, STEPS * DT, DT, 'trapezoid')
    place = model.z[0]
    samples = motion.q[1:, [place]] + np.random.default_rng(0).normal(size=(STEPS, 1)) * np.radians(1.0)
    observer = LinkageObserver(model, estimator, ['encoder'], default_noises(estimator, 'four_bar'))
    found = []
    for _ in range(ROUNDS):
        observer.start(stddev=0.1)
        begin = time.process_time()
        run = observer.run(motion.t[1:], samples)
        found.append(time.process_time() - begin)
    return 1e6 * min(found) / STEPS, abs(float(run.q[-1, place] - motion.q[-1, place]))


def main() -> None:
    """Print a row for each filter."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--loops', nargs='+', type=int, default=[1, 2, 4, 8, 16])
    parser.add_argument('--filters', nargs='+', choices=[*OF_MECHANISMS],
                        default=['DEKF', 'errorEKF_EJ', 'errorEKF_FE', 'CEKF', 'SSUKF', 'UKF'])
    parser.add_argument('--output', type=Path)
    options = parser.parse_args()
    rows = []
    print('us a step with N loops:', *options.loops)
    for estimator in options.filters:
        cells = [step_us(loops, estimator) for loops in options.loops]
        rows += [{'estimator': estimator, 'loops': loops, 'step_us': us, 'error': error}
                 for loops, (us, error) in zip(options.loops, cells)]
        print(f'{estimator:14s}', *(f'{us:8.1f}' for us, _ in cells),
              f'  error up to {max(e for _, e in cells):.2g} rad', flush=True)
    if options.output:
        options.output.write_text(json.dumps(rows, indent=2) + '\n', encoding='utf-8')


if __name__ == '__main__':
    main()
