# SPDX-License-Identifier: Apache-2.0
"""The filter ``kinematic`` by its motions and its models of the acceleration (Naya et al., review, section 8).

    tools/environment.sh python benchmarks/kinematic_models.py --seeds 10 5 --page docs/estimators.md

Errors (RMS over the coordinates, after the first second) and NEES by entry of a motion of 6 s at 200 Hz, with the wrong
model and start of the benchmark of that paper; means over the seeds of the four-bar and of the five-bar. ``--page F``
writes the table between the two marks in a page. A minute.
"""

from __future__ import annotations

import argparse
from datetime import date
from pathlib import Path

import numpy as np

from mbse_ros.dynamics.model import load_model
from mbse_ros.filters.filters import noises_of
from mbse_ros.filters.observer import LinkageObserver
from mbse_ros.report.files import write_between
from mbse_ros.report.text import number
from mbse_ros.simulation.three_simulations import noisy, true_motion, wrong_model, wrong_start

STEP, DURATION, SETTLED = 5e-3, 6.0, 200        # s, s, steps
SENSORS = {'four_bar': ('encoder', 'crank_tip'), 'five_bar': ('encoder_1', 'encoder_2', 'tip_1', 'tip_2')}
JERK = {'four_bar': 20.0, 'five_bar': 400.0}    # rad2/s5
WAYS: tuple[dict[str, str], ...] = (
    {}, *({'motion': name} for name in ('forward_euler', 'midpoint', 'heun', 'trapezoid', 'rk4')),
    *({'acceleration': name} for name in ('random_walk', 'differences', 'derivative')))


def figures(mechanism: str, options: dict[str, str], seeds: int) -> list[float]:
    """Errors of position, velocity and acceleration, NEES by entry of position and velocity."""
    model = load_model(mechanism)
    truth, wrong, found = true_motion(model, DURATION, STEP), wrong_model(model), []
    observer = LinkageObserver(wrong, 'kinematic', SENSORS[mechanism], None, history=True, **options)
    if 'acceleration' in options:
        observer.tune(noises_of(observer.filter) | {'jerk': JERK[mechanism]})
    for seed in range(seeds):
        observer.start(wrong_start(wrong))
        log = observer.run(truth.motion.t[1:], noisy(truth.sensors(SENSORS[mechanism]), observer.stddev, seed))
        off = [(one - other[1:])[SETTLED:, truth.z] for one, other in (
            (log.q, truth.motion.q), (log.qd, truth.motion.qd), (log.qdd, truth.motion.qdd))]
        x = np.hstack(off[:2])
        P = log.covariances[SETTLED:, :x.shape[1], :x.shape[1]]
        found.append([*(np.sqrt(np.mean(item ** 2)) for item in off),
                      np.mean(np.einsum('ki,ki->k', x, np.linalg.solve(P, x[:, :, None])[:, :, 0])) / x.shape[1]])
    return [float(value) for value in np.mean(found, axis=0)]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seeds', type=int, nargs=2, default=(10, 5), help='of ' + ' and '.join(SENSORS))
    parser.add_argument('--page', type=Path, help='page with the two marks')
    args = parser.parse_args()
    seeds = ' '.join(map(str, args.seeds))
    lines = [f'`benchmarks/kinematic_models.py --seeds {seeds}`, {date.today():%d %B %Y}. Errors '
             'after 1 s: position, velocity, acceleration; NEES (expected 1).', '',
             '| | four-bar, encoder and crank tip | five-bar, encoders and tips |', '|---|---|---|']
    for options in WAYS:
        cells = [', '.join(number(value, 2) for value in figures(name, options, seeds))
                 for name, seeds in zip(SENSORS, args.seeds)]
        words = ' '.join(f'`{key}={value}`' for key, value in options.items())
        lines.append(f'| {words or "default"} | {" | ".join(cells)} |')
    text = '\n'.join(lines)
    print(text)
    if args.page:
        write_between(args.page, 'kinematic_models.py', text)


if __name__ == '__main__':
    main()
