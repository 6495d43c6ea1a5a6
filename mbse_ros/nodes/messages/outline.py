# SPDX-License-Identifier: Apache-2.0
"""What is drawn: lines of a mechanism, how large it is, for heights of letters and the camera, and the
measured position of a machine, out of the same message as the estimated one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import casadi as ca
import numpy as np

from ...compiled import Kernel
from ...dynamics.model import Model
from ...errors import MbseError
from ...filters.hydraulic_state import direct
from ...machine import Machine
from ...report.solids import Solids, spatial
from ...streams.records import StateEstimate

TURN = np.array([-0.6, 0.6])      # rad, of a joint that is an independent coordinate
LETTER, ASIDE = 1 / 26, 0.24      # of the size
MARGIN = 0.2        # of the size, around a mechanism whose motion is not known
SMALLEST = 1e-3     # m


class Box(NamedTuple):
    """Corners (3,), m, and the height of the lowest point at the start, or of the origin where that is lower; whether
    what is in it moves in a plane, ``flat``, as if drawn on paper."""

    low: np.ndarray
    high: np.ndarray
    ground: float
    flat: bool = False

    @property
    def above(self) -> np.ndarray:
        """Where texts begin (3,), m: in the upper corner far from the foot, where no tool comes: it turns about it."""
        return np.array([self.high[0] - ASIDE * self.size, (self.low[1] + self.high[1]) / 2, self.high[2]])

    @property
    def size(self) -> float:
        """Its longest side, m."""
        return max(float((self.high - self.low).max()), SMALLEST)


def machine_box(machine: Machine) -> Box:
    """All poses with one cylinder at an end of its stroke, or one joint turned from the start, the rest as there.

    Across only as it starts: one that swings would be small.
    """
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
    points = np.vstack([*(_points(lines) for lines in found), machine.solids.still])
    start = np.vstack([_points(first), machine.solids.still])
    points[:, 1] = points[:, 1].clip(start[:, 1].min(), start[:, 1].max())
    return Box(points.min(axis=0), points.max(axis=0), min(0.0, float(_points(first)[:, 2].min())))


def mechanism_box(lines: Mapping[str, np.ndarray], swings: bool = False) -> Box:
    """Of lines at the start, with room to move; ``swings``: all the way round the origin, as what no loop holds."""
    points = np.vstack([_points(lines), np.zeros(3)])
    low, high, ground = points.min(axis=0), points.max(axis=0), min(0.0, float(points[:, 2].min()))
    room = MARGIN * max(float((high - low).max()), SMALLEST)
    flat = all(row.shape[1] == 2 for row in lines.values())
    if swings:
        high = float(np.linalg.norm(points, axis=1).max()) * np.array([1.0, float(not flat), 1.0])
        low = -high
    rooms = room * np.array([1.0, float(not flat), 1.0])
    return Box(low - rooms, high + rooms, ground, flat)


def or_by_size(given: float, share: float, size: float) -> float:
    """A length that a setting gives, else, where that is 0, a share of the size, m."""
    return given if given > 0.0 else share * size


def _points(lines: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.vstack([spatial(row) for row in lines.values()])


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

    def solids(self, model: Model) -> Solids:
        """Shapes for these lines, as they are at the start."""
        pins = [spatial(np.array([item.value for item in point])) for point in model.description.ground.values()]
        return Solids(self.at(model.start.q), pins=np.reshape(pins, (-1, 3)), convex=True)


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
