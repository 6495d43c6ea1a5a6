# SPDX-License-Identifier: Apache-2.0
"""The day of a log: zeros of sensors that drift are as old as they were then."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from statistics import median_low

from ..bags.channel_samples import Sample
from ..description.age import age_text, aged, day_of, drifting
from ..machine import Machine

FIRST = 100     # samples by which the day is told: a single stamp may be wrong


def on_its_day(machine: Machine, samples: Callable[[], Iterable[Sample]]) -> tuple[Machine, tuple[str, ...]]:
    """The machine on the day on which a log begins, by its first ``samples``, and what is odd about that day.

    Itself where nothing drifts or no stamp says the day: it is as old as it was when it was loaded, which is later.
    """
    names = drifting(machine.description)
    if not names:
        return machine, ()
    stamps = [sample.stamp_ns for sample in islice(samples(), FIRST)]
    day, key = day_of(median_low(stamps)) if stamps else None, f'sensors.{names[0]}.drift'
    if day is None:
        return machine, (f'{key}: the stamps of this log have no date: its zeros count as those of today, '
                         f'{age_text(machine.description)}',) * bool(stamps)
    found = aged(machine.description, day)
    if found.sensors[names[0]].drift != machine.description.sensors[names[0]].drift:
        machine = Machine(found)
    drift = found.sensors[names[0]].drift
    early = drift is not None and drift.days < 0
    return machine, (f'{key}: this log begins {age_text(found)}, the date of the calibration (calibration.date): its '
                     'zeros count as uncertain as so many days after it',) * early
