# SPDX-License-Identifier: Apache-2.0
"""What is drawn: lines of a mechanism, how large it is, for widths of lines, heights of letters and the camera, and the
measured position of a machine, out of the same message as the estimated one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import casadi as ca
import numpy as np

from ...compiled import Kernel
from ...dynamics.model import Model
from ...errors import MbseError
from ...filters.hydraulic_state import direct
from ...machine import Machine
from ...streams.records import StateEstimate

TURN = np.array([-0.6, 0.6])      # rad, of a joint that is an independent coordinate
LINE, LETTER = 1 / 60, 1 / 30           # of the size
MARGIN = 0.3        # of the size, around a mechanism whose motion is not known
SMALLEST = 1e-3     # m


class Box(NamedTuple):
    """Corners (3,), m, and the height of the lowest point at the start, or of the origin where that is lower."""

    low: np.ndarray
    high: np.ndarray
    ground: float

    @property
    def size(self) -> float:
        """Its longest side, m."""
        return max(float((self.high - self.low).max()), SMALLEST)


def machine_box(machine: Machine) -> Box:
    """All poses with one cylinder at an end of its stroke, or one joint turned from the start, the rest as there."""
    start = machine.model.start.q[machine.model.z]
    ends, first = dict(zip(machine.cylinders, machine.stroke)), machine.outline(start)
    found = [first]
    for k, name in enumerate(machine.coordinates):
        for end in ends.get(name, start[k] + TURN):
            z = start.copy()
            z[k] = end
            try:
                found.append(machine.outline(z))
            except MbseError:       # out of reach while the others stand so
                continue
    points = np.vstack([_points(lines) for lines in found])
    return Box(points.min(axis=0), points.max(axis=0), min(0.0, float(_points(first)[:, 2].min())))


def mechanism_box(lines: Mapping[str, np.ndarray], swings: bool = False) -> Box:
    """Of lines at the start, with room to move; ``swings``: all the way round the origin, as what no loop holds."""
    points = np.vstack([_points(lines), np.zeros(3)])
    low, high, ground = points.min(axis=0), points.max(axis=0), min(0.0, float(points[:, 2].min()))
    room = MARGIN * max(float((high - low).max()), SMALLEST)
    if swings:
        across = float(any(row.shape[1] == 3 for row in lines.values()))
        high = float(np.linalg.norm(points, axis=1).max()) * np.array([1.0, across, 1.0])
        low = -high
    return Box(low - room, high + room, ground)


def or_by_size(given: float, share: float, size: float) -> float:
    """A length that a setting gives, else, where that is 0, a share of the size, m."""
    return given if given > 0.0 else share * size


def _points(lines: Mapping[str, np.ndarray]) -> np.ndarray:
    rows: Iterable[np.ndarray] = lines.values()
    return np.vstack([row if row.shape[1] == 3 else np.column_stack([row[:, 0], np.zeros(len(row)), row[:, 1]])
                      for row in rows])


class Outline:
    """``at (q)``: points (k, d), m, of each body that has two or more, closed where there are more than two."""

    def __init__(self, model: Model) -> None:
        system = model.system
        bodies = model.description.bodies
        self._bodies = {name: [place for point in body.points if (place := f'{name}.{point}') in system.points]
                        for name, body in bodies.items()}
        self._places = [place for places in self._bodies.values() for place in places]
        self._parameters = np.asarray(model.parameters)
        self._kernel = Kernel(ca.Function('outline', [system.q, system.values.symbol], [
            ca.horzcat(*(system.points[place] for place in self._places))]), model.backend)

    def at(self, q: np.ndarray) -> dict[str, np.ndarray]:
        """Lines at coordinates (n,)."""
        points = dict(zip(self._places, self._kernel(q, self._parameters)[0].T))
        lines = {name: np.array([points[place] for place in places]) for name, places in self._bodies.items()
                 if len(places) > 1}
        return {name: np.vstack([line, line[:1]]) if len(line) > 2 else line for name, line in lines.items()}


class MeasuredPosition:
    """The measured value of each independent coordinate.

    ``possible``: whether a sensor measures each of them itself, none only through others.
    """

    def __init__(self, machine: Machine) -> None:
        channels = direct(machine)
        found = [channels.get(f'position/{name}') for name in machine.coordinates]
        self.possible = all(channel is not None for channel in found)
        self._names = tuple(channel.name for channel in found if channel is not None)
        self._nominal = np.array([channel.nominal for channel in found if channel is not None]).reshape(-1, 3)

    def of(self, state: StateEstimate) -> np.ndarray | None:
        """Independent coordinates (g,), m or rad, as the samples of the last step have them; None where one is
        missing."""
        return self.at(dict(zip(state.channels, state.measured)))

    def at(self, samples: Mapping[str, float]) -> np.ndarray | None:
        """The same of samples by channel, SI."""
        if not self.possible or not set(self._names) <= set(samples):
            return None
        values, (gain, offset, zero) = np.array([samples[name] for name in self._names]), self._nominal.T
        return (values - offset) / gain + zero if np.isfinite(values).all() else None
