# SPDX-License-Identifier: Apache-2.0
"""A motion through points, as trajectory_msgs/JointTrajectory has it: linear between positions alone, cubic where
velocities, quintic where accelerations are given too, as the joint_trajectory_controller of ros2_controllers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.interpolate import BPoly, PPoly

from ..errors import SettingError

Rows = Sequence[Sequence[float]] | np.ndarray
CLOSE = 1e-9        # s, m, m/s: what is no difference


class Setpoint(NamedTuple):
    """Position, velocity, acceleration (c,), m or rad and s."""

    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray


class Trajectory:
    """Motion of ``names`` (c,) through ``positions`` (k, c) at ``times`` (k,), s from its beginning, with
    ``velocities`` and ``accelerations`` (k, c) or none, ``()``. It rests before and after.

    Raises SettingError for times that do not rise, numbers that are not finite, shapes that do not fit, names that come
    twice, accelerations without velocities, and a last point that does not rest.
    """

    def __init__(self, names: Sequence[str], times: Sequence[float], positions: Rows,
                 velocities: Rows = (), accelerations: Rows = ()) -> None:
        self.names = tuple(names)
        if not self.names or len(set(self.names)) < len(self.names):
            raise SettingError('trajectory.joint_names', list(names), 'one name or more, each once')
        self.times = np.array(times, dtype=float)
        if not len(self.times) or not np.isfinite(self.times).all() or self.times[0] < 0.0 or (
                np.diff(self.times) <= 0.0).any():
            raise SettingError('trajectory.points.time_from_start', list(times),
                               'one point or more, at times that rise')
        if len(accelerations) and not len(velocities):
            raise SettingError('trajectory.points.accelerations', 'given', 'velocities, too')
        self._given = [self._rows(name, rows) for name, rows in (
            ('positions', positions), ('velocities', velocities), ('accelerations', accelerations))
            if len(rows) or name == 'positions']
        if len(self._given) > 1 and np.abs(self._given[1][-1]).max() > CLOSE:
            raise SettingError('trajectory.points.velocities', self._given[1][-1].tolist(), '0 at the last point')
        self._curves = _curves(self.times, self._given)

    def _rows(self, name: str, rows: Rows) -> np.ndarray:
        place, wanted = f'trajectory.points.{name}', (len(self.times), len(self.names))
        if len(rows) != wanted[0] or any(len(row) != wanted[1] for row in rows):
            raise SettingError(place, [len(row) for row in rows], f'{wanted[1]} at each of {wanted[0]} points')
        found = np.array(rows, dtype=float)
        if not np.isfinite(found).all():
            raise SettingError(place, found.tolist(), 'finite numbers')
        return found

    @property
    def duration(self) -> float:
        """s from its beginning to the last point."""
        return float(self.times[-1])

    @property
    def ends(self) -> np.ndarray:
        """Positions (c,) of the last point."""
        return np.asarray(self._given[0][-1])

    @property
    def begins(self) -> np.ndarray:
        """Positions (c,) of the first point."""
        return np.asarray(self._given[0][0])

    def at(self, time: float) -> Setpoint:
        """Where it is at a time, s from its beginning."""
        rest = np.zeros(len(self.names))
        if time < self.times[0] or self._curves is None:
            return Setpoint(self.begins, rest, rest)
        if time >= self.times[-1]:
            return Setpoint(self.ends, rest, rest)
        return Setpoint(*(curve(time) for curve in self._curves))

    def ranges(self) -> np.ndarray:
        """The least and the largest position (c, 2) on the way, between the points, too."""
        found = np.stack([self._given[0].min(axis=0), self._given[0].max(axis=0)], axis=1)
        if self._curves is None:
            return found
        for k in range(len(self.names)):
            curve = PPoly(self._curves[0].c[:, :, k], self._curves[0].x)
            turns = np.asarray(curve.derivative().roots(discontinuity=True, extrapolate=False))
            values = curve(turns[np.isfinite(turns)])
            if values.size:
                found[k] = min(found[k, 0], values.min()), max(found[k, 1], values.max())
        return found

    def continued(self, time: float, here: Setpoint) -> Trajectory:
        """The motion from ``here`` at a time, s from its beginning, through the points that are still to come; raises
        SettingError where there are none."""
        rest = self.times > time + CLOSE
        if not rest.any():
            raise SettingError('trajectory.header.stamp', f'{time - self.duration:.3f} s after the last point',
                               'a motion that is not over')
        rows = [np.vstack([now, given[rest]]) for now, given in zip(here, self._given)]
        return Trajectory(self.names, np.append(time, self.times[rest]).tolist(), *rows)


def _curves(times: np.ndarray, given: list[np.ndarray]) -> tuple[PPoly, ...] | None:
    """Position, velocity, acceleration as piecewise polynomials; None of a single point."""
    if len(times) < 2:
        return None
    curve = PPoly.from_bernstein_basis(BPoly.from_derivatives(times, np.stack(given, axis=1)))
    return curve, curve.derivative(1), curve.derivative(2)
