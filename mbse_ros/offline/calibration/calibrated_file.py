# SPDX-License-Identifier: Apache-2.0
"""The file of a machine before and after its calibration."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...calibration.balance_error import FoundError
from ...calibration.free import freed
from ...calibration.identifiability import LEARNT
from ...description.age import as_calibrated
from ...description.basics import scalars
from ...description.edit import Number, in_file, with_numbers, with_part, with_section
from ...description.load import every_machine, parse_mechanism
from ...description.sections.load_calibration import checksum
from ...description.typical import TYPICAL
from ...errors import DescriptionError
from ...machine import Machine, load_machine
from ...resources import read_text
from ...scale.scale_file import BARE, equipped

UNTOUCHED = 1e-6        # share of a deviation that has changed, below which the number stays as the file has it
SAME = 1e-6             # of a number, read back from the text
REMARK = '# By mbse calibrate: the error of a number is its stddev times the sum of its row times independent errors.'


@dataclass(frozen=True)
class Parameter:
    """One number of the file, SI: before and after, with standard deviations, and the numbers with which its error is
    correlated by more than 0.9 in size."""

    key: str
    before: float
    stddev_before: float
    after: float
    stddev_after: float
    correlated_with: tuple[str, ...] = ()

    @property
    def learnt(self) -> bool:
        """Whether the bags say something of it."""
        return self.stddev_after <= LEARNT * self.stddev_before


def prior_machine(machine: str | Path, free: Sequence[str] = (), attachment: str = BARE, scale: str | Path = ''
                  ) -> tuple[str, Machine]:
    """Text of a machine's file with the deviations that count before, and its machine, with an attachment by its name
    in the file of the ``scale``; raises DescriptionError, SettingError, ScaleError."""
    path = Path(machine)
    if path.suffix not in ('.yaml', '.yml'):
        path = every_machine().get(str(machine)) or Path(load_machine(machine).description.file)
    text = read_text(path)
    text = freed(text, str(path), free) if free else text
    return text, Machine(equipped(parse_mechanism(text, str(path)), attachment, scale))


def check_written(machine: Machine, text: str, date: str, bags: Sequence[str]) -> None:
    """Raise DescriptionError where a file has its numbers in a form that cannot be written again, before the work."""
    p = machine.parameters
    calibrated_text(machine, text, [Parameter(key, mean, stddev, mean, 0.5 * stddev) for key, mean, stddev in zip(
        p.names, p.mean.tolist(), p.stddev.tolist())], np.eye(len(p.names)), date, bags)


def calibrated_text(machine: Machine, text: str, parameters: Sequence[Parameter], correlation: np.ndarray,
                    date: str, bags: Sequence[str], errors: Sequence[FoundError] = ()) -> str:
    """The file with the new numbers, and the ``errors`` of its force balance; what the bags do not determine stays,
    except zeros that have drifted since the date in the file: it becomes ``date``. The load's place is not the
    machine's, and of a body with an attachment the numbers are those of both.

    Raises DescriptionError where the text does not give them back.
    """
    known = scalars(machine.description)
    circuit = {key for key, number in known.items()     # typical oil and hoses: no force depends on them
               if key.startswith('hydraulics.') and number.source == TYPICAL}
    stated = {number.key: deviation for sensor in machine.description.sensors.values() if sensor.drift is not None
              for number, deviation in zip(sensor.bias, sensor.drift.stated)}
    changed = [k for k, item in enumerate(parameters)
               if not item.key.startswith(others(machine)) and item.key not in circuit
               and (item.stddev_after < (1 - UNTOUCHED) * item.stddev_before
                    or item.stddev_after > (1 + UNTOUCHED) * stated.get(item.key, item.stddev_after))]
    text = _with_errors(text, machine, errors)
    if not changed:
        return text
    keys = {k: in_file(machine.description, parameters[k].key) for k in changed}
    new = with_numbers(text, machine.description.file, {
        keys[k]: Number(parameters[k].after, parameters[k].stddev_after, f'calibrated {date}') for k in changed}, known)
    rows = np.linalg.cholesky(correlation[np.ix_(changed, changed)])
    new = with_section(new, 'calibration', _section([keys[k] for k in changed], rows, date, bags))
    _check(new, machine, {parameters[k].key: parameters[k] for k in changed})
    return new


def others(machine: Machine) -> tuple[str, ...]:
    """How keys begin of numbers that are not those of the machine without load and attachment."""
    payload, tool = machine.description.payload, machine.description.attachment
    return ('payload.',) if tool is None or payload is None else ('payload.', f'bodies.{payload.body}.')


def _with_errors(text: str, machine: Machine, errors: Sequence[FoundError]) -> str:
    """Of one cylinder each, of which several may be side by side; where nothing is left a file says so only if it has
    said otherwise."""
    cylinders = machine.description.cylinders
    for name, (key, old, _) in zip(machine.actuators.names, machine.actuators.errors):
        own = [item for item in errors if name in item.actuators]
        stddev = max((item.stddev for item in own), default=0.0) / (cylinders[name].count if name in cylinders else 1)
        part, unit = key.rpartition('.')[0], 'N' if name in cylinders else machine.description.drives[name].effort
        if stddev > 0.0:
            time = max(item.time for item in own if item.stddev > 0.0)
            text = with_part(text, machine.description.file, part, 'force_error',
                             f'{{stddev: {stddev:.3g} {unit.replace(" ", "*")}, time: {time:.2g} s}}')
        elif own and old is not None and old.stddev > 0.0:
            text = with_part(text, machine.description.file, part, 'force_error', '{stddev: 0}')
    return text


def _section(keys: Sequence[str], rows: np.ndarray, date: str, bags: Sequence[str]) -> str:
    lines = [REMARK, 'calibration:', f'  date: "{date}"', '  bags: [' + ', '.join(f'"{name}"' for name in bags) + ']',
             '  keys:', *(f'    - {key}' for key in keys), '  rows:']
    short = [row[:k + 1].tolist() for k, row in enumerate(rows)]
    return '\n'.join([*lines, *(f'    - [{", ".join(f"{x:.9g}" for x in row)}]' for row in short),
                      f'  checksum: "{checksum(keys, short)}"'])


def _check(text: str, machine: Machine, wanted: Mapping[str, Parameter]) -> None:
    """The text must give the numbers back."""
    file = machine.description.file
    found = Machine(as_calibrated(parse_mechanism(text, file))).parameters
    places = {key: k for k, key in enumerate(found.names)}
    for key, item in wanted.items():
        k = places.get(key)
        if k is None or not (math.isclose(found.stddev[k], item.stddev_after, rel_tol=SAME)
                             and abs(found.mean[k] - item.after) <= SAME * (abs(item.after) + item.stddev_after)):
            raise DescriptionError(file, key, None if k is None else found.mean[k],
                                   f'{item.after} +- {item.stddev_after}, as it was written into this file')
