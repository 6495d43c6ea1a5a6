# SPDX-License-Identifier: Apache-2.0
"""Does the interval of a truck's total hold over many made-up shifts, and is each load of a long one counted once?

    tools/environment.sh python benchmarks/scale_shifts.py --shifts 200 --loads 8 --day 300

Friction (1 % of the mass) and an offset (8 kg) are drawn once a shift, noise for each instant. Beside the interval that
takes the first two as common: the one of loads that are taken as independent. The day has three types of loads with
spills, aborted digs and loads that are shaken off; its machine is calibrated (0.2 %, 2 kg).
"""

from __future__ import annotations

import argparse
from math import sqrt

import numpy as np

from mbse_ros.scale.book import Tally
from mbse_ros.scale.detection import Detector
from mbse_ros.scale.load import Load
from mbse_ros.studies.many import add_workers, many
from studies.shifts import NAMES, Bucket, Shift, working_day

SPAN = 2500.0       # kg
NORMAL = 1.96


def weigh(shift: Shift) -> list[Load]:
    """Loads of a shift that count."""
    detector, found = Detector(NAMES, SPAN), []
    for reading in shift.readings():
        for load in detector.process(reading):
            detector.truck = load.dropped
            found += [load] if load.counts else []
    return found


def total(loads: list[Load]) -> Tally:
    tally = Tally()
    for load in loads:
        tally.add(load.mass)
    return tally


def one_shift(item: tuple[int, int]) -> tuple[bool, bool, int]:
    """Of a seed with so many loads: whether the interval of the total holds, and that of independent loads; loads
    counted."""
    seed, count = item
    rng = np.random.default_rng([seed, 7])
    shift = Shift([Bucket(float(rng.uniform(600.0, 1800.0))) for _ in range(count)], seed=seed, rate=3.0)
    loads = weigh(shift)
    tally = total(loads)
    lower, upper = tally.mass.interval
    error = abs(tally.mass.value - shift.delivered)
    return (lower < shift.delivered < upper, error < NORMAL * sqrt(sum(load.mass.stddev ** 2 for load in loads)),
            len(loads))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (('shifts', 200), ('loads', 8), ('day', 300)):
        parser.add_argument(f'--{name}', type=int, default=default)
    add_workers(parser)
    options = parser.parse_args()
    runs = many(one_shift, [(seed, options.loads) for seed in range(options.shifts)], options.jobs, options.cluster)
    held, apart, counted = (sum(column) for column in zip(*runs))
    print(f'{options.shifts} shifts, {counted} of {options.shifts * options.loads} loads counted')
    print(f'interval of the total holds in {100 * held / options.shifts:.1f} %, '
          f'that of independent loads in {100 * apart / options.shifts:.1f} %')
    day = Shift(working_day(options.day), stddev=(0.002, 2.0), seed=3)
    loads = weigh(day)
    tally = total(loads)
    lower, upper = tally.mass.interval
    print(f'a day: {len(loads)} of {options.day} loads, {tally.mass.value:.0f} kg ({lower:.0f} to {upper:.0f}), '
          f'true {day.delivered:.0f} kg, error {100 * (tally.mass.value / day.delivered - 1):.2f} %')


if __name__ == '__main__':
    main()
