# SPDX-License-Identifier: Apache-2.0
"""A motion given as a table (CSV): a column of time and columns of coordinates, read to SI; a smooth motion through it.

Every row gets a position, a velocity and an acceleration: those of the table, or the rate of a spline through the next
lower ones (degree 5, not-a-knot; degree 3 below 6 rows). Between two rows the motion is the one polynomial of degree 5
that has these at both ends. With positions alone that is the spline itself, whose acceleration is smooth.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...description.coordinate_units import unit_of
from ...description.language.units import unit_factor
from ...errors import BagError, DescriptionError, did_you_mean
from ...resources import regular, said_of
from ..model import Model, load_model

if TYPE_CHECKING:
    from scipy.interpolate import BSpline, PPoly

FEWEST = 4      # rows, of a cubic spline
RATES = {'velocity': '/s', 'acceleration': '/s^2'}
_HEADING = re.compile(r'\s*([^\[\]]*?)\s*(?:\[([^\[\]]*)\])?\s*')
APART = 0.25    # of the range of a column, from the integral of its given rate: more is worth a warning


@dataclass(frozen=True)
class MotionTable:
    """A table of motion in SI.

    ``t`` (k,), s, ascending; ``lines`` (k,) of the file; by coordinate the columns ``position`` (k,), m or rad, and
    ``velocity``, ``acceleration`` (k,) of those coordinates for which the table has them.
    """

    file: str
    t: np.ndarray
    lines: np.ndarray
    position: dict[str, np.ndarray] = field(default_factory=dict)
    velocity: dict[str, np.ndarray] = field(default_factory=dict)
    acceleration: dict[str, np.ndarray] = field(default_factory=dict)


class _Column(NamedTuple):
    """Heading as it is in the file, kind of the column (a field of MotionTable), coordinate, factor to SI."""

    heading: str
    kind: str
    coordinate: str
    factor: float


def read_motion_table(path: str | Path, units: Mapping[str, str],
                      impossible: Mapping[str, str] | None = None) -> MotionTable:
    """Read a table whose first line names the columns: ``t``, then coordinates such as ``theta`` or ``theta [deg]``,
    and if wanted ``theta.velocity [deg/s]``, ``theta.acceleration``; SI where no unit is given.

    ``units``: 'rad', 'm' or '1' of each coordinate that may be a column; ``impossible``: coordinates that may not, and
    why. Raises BagError with the file, line, column, value and what was expected: not readable, empty, a column that
    is unknown, double or has a wrong unit, a cell that is not finite, a time that does not increase, fewer than
    4 rows.
    """
    file = str(path)
    try:
        with open(regular(path), encoding='utf-8-sig', newline='') as stream:
            rows = _rows(file, stream)
            columns = _columns(file, next(rows, (1, []))[1], units, impossible or {})
            found = [(line, _numbers(file, line, row, columns)) for line, row in rows]
    except (OSError, UnicodeDecodeError) as error:
        raise BagError(file, f'cannot be read: {said_of(error)}') from error
    if len(found) < FEWEST:
        raise BagError(file, f'{len(found)} rows below the names of the columns, expected at least {FEWEST}')
    lines = np.array([line for line, _ in found])
    values = np.array([row for _, row in found]) * [column.factor for column in columns]
    _check_ascending(file, lines, values[:, 0], columns[0])
    table = MotionTable(file, values[:, 0], lines)
    for column, series in zip(columns[1:], values.T[1:]):
        getattr(table, column.kind)[column.coordinate] = series
    return table


def _rows(file: str, stream: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and cells of the rows that are not empty."""
    reader = csv.reader(stream, strict=True)
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield reader.line_num, row
    except csv.Error as error:
        raise BagError(file, f'line {reader.line_num}: {error}') from error


def _columns(file: str, headings: list[str], units: Mapping[str, str], impossible: Mapping[str, str]) -> list[_Column]:
    """The columns of a heading, the time first."""
    choices = ', '.join(units)
    if not headings:
        raise BagError(file, f'is empty, expected the names of the columns in line 1: t and {choices}')
    columns: list[_Column] = []
    for place, heading in enumerate(headings):
        match = _HEADING.fullmatch(heading)
        name, unit = match.groups() if match else (heading.strip(), None)
        if place == 0:
            if name != 't':
                raise _error(file, 1, heading, name, 'the time t in the first column')
            columns.append(_Column(heading.strip(), 't', '', _factor(file, heading, unit, 's')))
            continue
        coordinate, kind = _kind(name, {*units, *impossible})
        if coordinate in impossible:
            raise _error(file, 1, heading, name, f'one of {choices}: {impossible[coordinate]}')
        if coordinate not in units:
            raise _error(file, 1, heading, name, f'one of {choices}{_meant(name, units)}')
        if any((column.kind, column.coordinate) == (kind, coordinate) for column in columns):
            raise _error(file, 1, heading, name, 'each column once')
        factor = _factor(file, heading, unit, units[coordinate] + RATES.get(kind, ''))
        columns.append(_Column(heading.strip(), kind, coordinate, factor))
    positions = [column.coordinate for column in columns if column.kind == 'position']
    for column in columns[1:]:
        if column.coordinate not in positions:
            raise _error(file, 1, column.heading, column.heading, f'a column {column.coordinate} of positions too')
    return columns


def _kind(name: str, known: set[str]) -> tuple[str, str]:
    """Coordinate and kind of a heading without its unit."""
    coordinate, _, kind = name.rpartition('.')
    return (coordinate, kind) if kind in RATES and name not in known else (name, 'position')


def _meant(name: str, units: Mapping[str, str]) -> str:
    known = [*units, *(f'{coordinate}.{kind}' for coordinate in units for kind in RATES)]
    return did_you_mean(name, known)


def _factor(file: str, heading: str, unit: str | None, wanted: str) -> float:
    """Factor to SI; 1 where the heading has no unit."""
    try:
        return 1.0 if unit is None else unit_factor(unit, wanted)
    except ValueError as error:
        raise _error(file, 1, heading, unit, f'a unit of {wanted} ({error})') from error


def _numbers(file: str, line: int, row: list[str], columns: list[_Column]) -> list[float]:
    """The cells of a row as numbers."""
    if len(row) != len(columns):
        raise BagError(file, f'line {line}: {len(row)} cells, expected {len(columns)} as in line 1')
    values = []
    for cell, column in zip(row, columns):
        try:
            value = float(cell)
        except ValueError:
            raise _error(file, line, column.heading, cell, 'a number') from None
        if not math.isfinite(value):
            raise _error(file, line, column.heading, cell, 'a finite number')
        values.append(value)
    return values


def _check_ascending(file: str, lines: np.ndarray, t: np.ndarray, column: _Column) -> None:
    wrong = np.flatnonzero(np.diff(t) <= 0)
    if wrong.size:
        place = wrong[0] + 1
        raise _error(file, lines[place], column.heading, float(t[place] / column.factor),
                     f'a later time than in the row before, {t[place - 1] / column.factor:.12g}')


def _error(file: str, line: int, heading: str, value: object, expected: str) -> BagError:
    return BagError(file, f'line {line}: column {heading.strip()}: got {value!r}, expected {expected}')


def interpolated(table: MotionTable, names: Sequence[str]) -> Callable[[float], tuple[np.ndarray, ...]]:
    """Function ``t -> (z, zd, zdd)``, each (g,), SI, of the named columns (g,); NaN outside the table's times."""
    rows = np.array([row_motion(table, name) for name in names])       # (g, 3, k)
    parts = [polynomials(table.t, *rows.transpose(1, 2, 0))]
    parts += [parts[0].derivative(), parts[0].derivative(2)]
    return lambda t: tuple(part(t) for part in parts)


def row_motion(table: MotionTable, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Position, velocity and acceleration (k,) of a column at the rows."""
    t, position = table.t, table.position[name]
    given = table.velocity.get(name)
    velocity = spline(table, position).derivative()(t) if given is None else given
    acceleration = table.acceleration.get(name)
    if acceleration is None:
        curve = spline(table, position).derivative(2) if given is None else spline(table, given).derivative()
        acceleration = curve(t)
    return position, velocity, acceleration


def spline(table: MotionTable, values: np.ndarray) -> BSpline:
    """Spline through values (k,) at the table's times (k,), k >= 4; raises BagError where these are too uneven."""
    from scipy.interpolate import make_interp_spline  # here: slow to import
    try:
        return make_interp_spline(table.t, values, 5 if len(table.t) >= 6 else 3)
    except (np.linalg.LinAlgError, ValueError):
        steps = np.diff(table.t)
        raise BagError(table.file, f'got rows {steps.min():.3g} to {steps.max():.3g} s apart, expected times that are '
                                   'less uneven: no smooth motion goes through them') from None


def polynomials(t: np.ndarray, p: np.ndarray, v: np.ndarray, a: np.ndarray) -> PPoly:
    """Polynomials of degree 5 between times (k,) with positions, velocities, accelerations (k, g) at both ends."""
    from scipy.interpolate import PPoly  # here: slow to import
    h = np.diff(t)[:, None]
    d = p[1:] - p[:-1] - h * v[:-1] - h ** 2 / 2 * a[:-1]     # what the end has beyond a constant acceleration
    e = h * (v[1:] - v[:-1] - h * a[:-1])
    f = h ** 2 * (a[1:] - a[:-1])
    return PPoly(np.array([(6 * d - 3 * e + f / 2) / h ** 5, (-15 * d + 7 * e - f) / h ** 4,
                           (10 * d - 4 * e + f / 2) / h ** 3, a[:-1] / 2, v[:-1], p[:-1]]), t, extrapolate=False)


def oddities(table: MotionTable, units: Mapping[str, str]) -> list[str]:
    """What is probably wrong in a table, one line each: an angle that jumps, a rate that does not fit."""
    lines = []
    for name, position in table.position.items():
        steps = np.abs(np.diff(position))
        if units[name] == 'rad' and steps.max() > np.pi:
            lines.append(f'{table.file}: line {table.lines[np.argmax(steps) + 1]}: {name} jumps by {steps.max():.3g} '
                         'rad; an angle must continue beyond 360 deg')
        lower, label = position, name
        for kind, rates in (('velocity', table.velocity), ('acceleration', table.acceleration)):
            if name not in rates:
                break
            apart = spline(table, rates[name]).antiderivative()(table.t) - (lower - lower[0])
            if np.max(np.abs(apart - apart[0])) > APART * np.ptp(lower):
                lines.append(f'{table.file}: {name}.{kind} is not the rate of {label}; are their units right?')
            lower, label = rates[name], f'{name}.{kind}'
    return lines


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
