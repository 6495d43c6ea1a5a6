# SPDX-License-Identifier: Apache-2.0
"""How old a calibration is: zeros of sensors that drift are less certain day by day.

A drift is a random walk: after n days it adds ``rate sqrt(n)`` to a zero's deviation, as squares. Before the date of
the calibration the walk is as far off as after it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timezone

from ..errors import DescriptionError
from .model import MechanismDescription

EARLIEST = date(2000, 1, 1)     # stamps before it count from some start, as simulated ones: they have no date


def today() -> date:
    """By the clock of this computer, UTC, as the stamps of samples."""
    return datetime.now(timezone.utc).date()


def day_of(stamp_ns: int) -> date | None:
    """Day of a stamp; None where stamps do not count from 1970."""
    found = datetime.fromtimestamp(stamp_ns // 1_000_000_000, timezone.utc).date()
    return found if found >= EARLIEST else None


def drifting(machine: MechanismDescription) -> tuple[str, ...]:
    """Names of the sensors whose zeros drift."""
    return tuple(name for name, sensor in machine.sensors.items() if sensor.drift is not None)


def calibrated_on(machine: MechanismDescription) -> date:
    """Date of the calibration; raises DescriptionError where the file of a machine whose sensors drift has none."""
    written = machine.calibration.date if machine.calibration is not None else ''
    if not written:
        raise DescriptionError(machine.file, 'calibration.date', None, 'a date such as 2026-11-29, on which the stated '
                               f'deviations of the zeros held: sensors.{drifting(machine)[0]} has a `drift`')
    return date.fromisoformat(written)


def aged(machine: MechanismDescription, day: date) -> MechanismDescription:
    """The machine with the deviations that its sensors' zeros have on a day; one without `drift` as it is."""
    if not drifting(machine):
        return machine
    days = (day - calibrated_on(machine)).days
    return replace(machine, sensors={name: sensor.aged(days) for name, sensor in machine.sensors.items()})


def as_calibrated(machine: MechanismDescription) -> MechanismDescription:
    """On the date of its calibration: with the deviations that the file states."""
    return aged(machine, calibrated_on(machine)) if drifting(machine) else machine


def aged_today(machine: MechanismDescription) -> MechanismDescription:
    """On the day of today; raises DescriptionError for a date that is later, and for a drift of what has no zero."""
    for name in drifting(machine):
        if not machine.sensors[name].bias:
            key = 'offset' if machine.sensors[name].kind in ('pressure', 'effort', 'current') else 'bias'
            raise DescriptionError(machine.file, f'sensors.{name}.{key}', None, 'the zero that the `drift` is of, such '
                                   'as {value: 0, stddev: 0}')
    if drifting(machine) and calibrated_on(machine) > today():
        raise DescriptionError(machine.file, 'calibration.date', calibrated_on(machine).isoformat(),
                               f'a date that is not after today, {today()} by the clock of this computer (UTC)')
    return aged(machine, today())


def age_text(machine: MechanismDescription) -> str:
    """How old the zeros are that drift, in words; '' where none does."""
    names = drifting(machine)
    drift = machine.sensors[names[0]].drift if names else None
    if drift is None:
        return ''
    side = 'before' if drift.days < 0 else 'after'
    return f'{abs(drift.days)} day{"s" * (abs(drift.days) != 1)} {side} {calibrated_on(machine)}'
