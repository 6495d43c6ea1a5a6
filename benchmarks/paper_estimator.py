# SPDX-License-Identifier: Apache-2.0
"""The estimator of Pyrhönen et al., mass estimation: preset ``paper`` against NumPy from the print, errors and cost.

    tools/environment.sh python benchmarks/paper_estimator.py --seeds 20 --page docs/papers/mass_estimation_pyrhonen.md

Logs of 5 s of patu655_lift (lift, hold, lower) with 0, 50 and 200 kg. First table: largest differences, over all steps
of all seeds, of the package with the preset and ``payload.min_speed`` at the file's transition velocity from
``test/support/crane_by_hand.py``. Second: errors of both and of other settings, RMS over the seeds, and processor time
of observer and payload by a step of 1 ms. ``--page F`` writes the tables between the two marks in a page. One or two
minutes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ('', 'test/support')]

from crane_by_hand import masses_of  # noqa: E402
from crane_runs import (  # noqa: E402
    OBSERVER,
    PAYLOAD,
    crane_of,
    estimated,
    log_of,
    machine_of,
    printed,
    smooth,
    tuning_of,
)

from mbse_ros.filters.observer_settings import ObserverSettings  # noqa: E402
from mbse_ros.payload.mass import PayloadSettings  # noqa: E402
from mbse_ros.report.files import check_file, write_between, write_json  # noqa: E402
from mbse_ros.report.text import number  # noqa: E402
from mbse_ros.streams.stages import ObserverStage, PayloadStage  # noqa: E402
from mbse_ros.studies.many import add_workers, machine_name, many  # noqa: E402

NAME, LOADS = 'patu655_lift', (0.0, 50.0, 200.0)
LARGEST = ('states, standard deviations', 'covariances, relative', 'mass of a step, kg', 'low-passed, kg',
           'mass of the window, kg')
PRINT, PRESET = 'from the print, NumPy', '`preset: paper`'
WAYS = {PRESET: (OBSERVER, PAYLOAD),
        'the same, `measurements: samples`, `low_pass: information`': (
            replace(OBSERVER, measurements='samples'), replace(PAYLOAD, low_pass='information')),
        '`weighing: apart`, defaults': (ObserverSettings(weighing='apart'), PayloadSettings()),
        '`weighing: joint`, defaults': (ObserverSettings(), PayloadSettings())}
MASS, SPEED, COST = 'mass, kg', 'speed, mm/s', 'us a step'


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor time, s, and what a function gives."""
    begin = time.process_time()
    found = work()
    return time.process_time() - begin, found


def row(job: tuple[float, int]) -> dict[str, Any]:
    """Of one log: largest differences; error of the mass at the end, of the speed, and cost, by estimator."""
    load, seed = job
    crane, log, tuning = crane_of(NAME)[0], log_of(NAME, load, seed), tuning_of(NAME)
    seconds, (states, covariances) = timed(lambda: printed(NAME, load, seed))
    more, by_hand = timed(lambda: masses_of(crane, states, replace(tuning, sign=smooth(crane))))
    ours = estimated(NAME, load, seed)
    stddev = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
    last, there = stddev[9::10], ~np.isnan(by_hand['mass'][9::10])

    def apart(key: str) -> float:
        return float(np.abs(np.array([getattr(item, key) for item in ours.payloads])
                            - by_hand[key][9::10])[there].max())
    largest = (np.abs((ours.states - states) / stddev).max(),
               np.abs((ours.covariances - covariances[9::10]) / (last[:, :, None] * last[:, None, :])).max(),
               np.abs(ours.rows[:, 1] / ours.rows[:, 0] - by_hand['raw']).max(), apart('low_passed'), apart('mass'))

    def errors(mass: float, speeds: np.ndarray, took: float) -> dict[str, float]:
        return {MASS: mass - load, SPEED: 1e3 * float(np.sqrt(np.mean((speeds - log.truth[1:, 1]) ** 2))),
                COST: 1e6 * took / len(states)}
    ways = {PRINT: errors(by_hand['mass'][-1], states[9::10, 1], seconds + more)}
    for way, settings in WAYS.items():
        observer, payload = ObserverStage(machine_of(NAME)[0], settings[0]), PayloadStage(machine_of(NAME)[0],
                                                                                         settings[1])
        took, found = timed(lambda: [(state := observer.process(segment), payload.process(state))  # noqa: B023
                                     for _, segment in ours.segments])
        ways[way] = errors(found[-1][1].mass, np.array([state.mean[-1, 1] for state, _ in found]), took)
    return {'load': load, 'seed': seed, 'largest': dict(zip(LARGEST, map(float, largest))), 'ways': ways}


def tables(rows: list[dict[str, Any]], seeds: int) -> str:
    """As they stand in the page."""
    lines = [f'`benchmarks/paper_estimator.py --seeds {seeds}`, {date.today():%d %B %Y}, {machine_name()}. Largest '
             'difference of the preset from the print:', '', '| | 0 kg | 50 kg | 200 kg |', '|---|---|---|---|']
    by_load = {load: [item for item in rows if item['load'] == load] for load in LOADS}
    lines += [f'| {name} | ' + ' | '.join(f'{max(item["largest"][name] for item in by_load[load]):.1e}'
                                          for load in LOADS) + ' |' for name in LARGEST]
    lines += ['', 'Error of the mass at the end, of the speed (RMS), and processor time of observer and payload, '
              'median:', '', '| estimator | 0 kg | 50 kg | 200 kg | speed | a step of 1 ms |', '|---' * 6 + '|']

    def rms(values: list[float]) -> str:
        return number(float(np.sqrt(np.mean(np.square(values)))), 2)
    for way in (PRINT, *WAYS):
        masses = [rms([item['ways'][way][MASS] for item in by_load[load]]) + ' kg' for load in LOADS]
        lines.append(f'| {way} | {" | ".join(masses)} | {rms([item["ways"][way][SPEED] for item in rows])} mm/s | '
                     f'{number(float(np.median([item["ways"][way][COST] for item in rows])), 2)} us |')
    return '\n'.join(lines)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seeds', type=int, default=20)
    parser.add_argument('--json', type=Path)
    parser.add_argument('--page', type=Path, help='page with the two marks')
    add_workers(parser)
    args = parser.parse_args()
    check_file(args.json)
    rows = many(row, list(product(LOADS, range(1, args.seeds + 1))), args.jobs, args.cluster)
    write_json(args.json, {'machine': machine_name(), 'seeds': args.seeds, 'rows': rows})
    text = tables(rows, args.seeds)
    print(text)
    if args.page:
        write_between(args.page, 'paper_estimator.py', text)


if __name__ == '__main__':
    main()
