# SPDX-License-Identifier: Apache-2.0
"""A mechanism that a table moves: the model in the table's coordinates, and the instants."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from ..dynamics.model import Model, load_model
from ..dynamics.motion_table import MotionTable, read_motion_table
from ..errors import BagError, DescriptionError, SettingError
from .mechanism_units import unit_of


def moved_by_table(name: str, path: Path, coordinates: str | None = None) -> tuple[Model, MotionTable]:
    """Model whose independent coordinates are the table's columns, and the table.

    Raises DescriptionError where the file's drivers leave nothing free, BagError for the table.
    """
    model = load_model(name, coordinates)
    d = model.description
    if not model.degrees_of_freedom:
        raise DescriptionError(d.file, 'drivers', list(d.drivers),
                               'a degree of freedom that no driver moves, for the table to move')
    units = free_units(model)
    table = read_motion_table(path, units, _impossible(model, units))
    chosen, g = tuple(table.position), model.degrees_of_freedom
    if len(chosen) != g:
        usual = [name for name in model.independent if name in units]
        raise BagError(str(path), f'line 1: got {len(chosen)} coordinates ({", ".join(chosen) or "none"}), expected '
                       f'{g}, the degrees of freedom' + (f': such as {", ".join(usual)}' if usual else ''))
    if set(chosen) != set(model.independent):
        model = load_model(d, coordinates, chosen)
    return model, table


def free_units(model: Model) -> dict[str, str]:
    """Coordinates that a table may move, with their SI units: those that the file names and no driver moves."""
    d = model.description
    driven = {driver.coordinate for driver in d.drivers.values()}
    return {name: unit_of(d, name) or '1' for name in model.names
            if (name in d.coordinates or name in d.joints) and name not in driven}


def _impossible(model: Model, units: dict[str, str]) -> dict[str, str]:
    """The other coordinates, and why a table cannot move them."""
    d = model.description
    reasons = {name: f'{d.file} does not name it (named: ...), so the body is unknown on which its force acts'
               for name in model.names if name not in units}
    return reasons | {driver.coordinate: f'driver {driver.name} of {d.file} moves it already'
                      for driver in d.drivers.values()}


def instants(table: MotionTable, duration: float | None, dt: float | None) -> np.ndarray:
    """Times (k,), s: the table's, or even ones in steps of ``dt`` from its first; the first ``duration`` of them."""
    first, last = table.t[0], table.t[-1]
    length = last - first
    if duration is not None and duration > length * (1 + 1e-9):
        raise SettingError('--duration', duration, f'at most {length:.9g} s, the length of {table.file}')
    end = last if duration is None else first + duration
    if dt is None:
        return table.t[table.t <= end + 1e-9 * length]
    return np.minimum(first + dt * np.arange(math.floor((end - first) / dt * (1 + 1e-12)) + 1), last)
