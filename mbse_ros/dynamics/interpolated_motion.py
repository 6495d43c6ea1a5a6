# SPDX-License-Identifier: Apache-2.0
"""A smooth motion through the rows of a table.

Every row gets a position, a velocity and an acceleration: those of the table, or the rate of a spline through the next
lower ones (degree 5, not-a-knot; degree 3 below 6 rows). Between two rows the motion is the one polynomial of degree 5
that has these at both ends. With positions alone that is the spline itself, whose acceleration is smooth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy.interpolate import BSpline, PPoly, make_interp_spline

from .motion_table import MotionTable

APART = 0.25    # of the range of a column, from the integral of its given rate: more is worth a warning


def interpolated(table: MotionTable, names: Sequence[str]) -> Callable[[float], tuple[np.ndarray, ...]]:
    """Function ``t -> (z, zd, zdd)``, each (g,), SI, of the named columns (g,); NaN outside the table's times."""
    rows = np.array([row_motion(table, name) for name in names])       # (g, 3, k)
    parts = [polynomials(table.t, *rows.transpose(1, 2, 0))]
    parts += [parts[0].derivative(), parts[0].derivative(2)]
    return lambda t: tuple(part(t) for part in parts)


def row_motion(table: MotionTable, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Position, velocity and acceleration (k,) of a column at the rows."""
    t, position = table.t, table.position[name]
    velocity = table.velocity.get(name)
    given = velocity is not None
    if not given:
        velocity = spline(t, position).derivative()(t)
    acceleration = table.acceleration.get(name)
    if acceleration is None:
        acceleration = spline(t, velocity).derivative()(t) if given else spline(t, position).derivative(2)(t)
    return position, velocity, acceleration


def spline(t: np.ndarray, values: np.ndarray) -> BSpline:
    """Spline through values (k,) at ascending times (k,), k >= 4."""
    return make_interp_spline(t, values, 5 if len(t) >= 6 else 3)


def polynomials(t: np.ndarray, p: np.ndarray, v: np.ndarray, a: np.ndarray) -> PPoly:
    """Polynomials of degree 5 between times (k,) with positions, velocities, accelerations (k, g) at both ends."""
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
                         'rad; an angle must go on past 360 deg')
        lower, label = position, name
        for kind, rates in (('velocity', table.velocity), ('acceleration', table.acceleration)):
            if name not in rates:
                break
            apart = spline(table.t, rates[name]).antiderivative()(table.t) - (lower - lower[0])
            if np.max(np.abs(apart - apart[0])) > APART * np.ptp(lower):
                lines.append(f'{table.file}: {name}.{kind} is not the rate of {label}; are their units right?')
            lower, label = rates[name], f'{name}.{kind}'
    return lines
