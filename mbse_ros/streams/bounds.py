# SPDX-License-Identifier: Apache-2.0
"""Where a mechanism can be: within the limits of its joints, and no further than it can travel since it was known."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np

from ..dynamics.model import Model

ROOM = 0.1          # of the range between two limits, by which an estimate or a sample may lie beyond them
DEEPEST = 6.0       # standard deviations of a sample, by which noise may
ANYWHERE = 5.0      # rad or m, from where a coordinate was last known
FASTER = 3.0        # times the speed it had, or may have at a start


class Bounds:
    """Of a model whose sensors' ``channels`` (s,) have deviations ``stddev`` (s,)."""

    def __init__(self, model: Model, channels: tuple[str, ...]) -> None:
        self._names, self._z = model.names, model.z
        self._limits = _limits(model)
        self._ends: list[tuple[str, float, float] | None] = []
        for channel in channels:
            sensor = model.description.sensors.get(channel)
            known = sensor is not None and sensor.kind == 'encoder' and not sensor.wraps
            self._ends.append(self._limits.get(sensor.coordinate) if sensor is not None and known else None)
        self._channels = channels
        self.reset()

    @property
    def limited(self) -> bool:
        """Whether any sensor is at a joint with limits."""
        return any(ends is not None for ends in self._ends)

    def reset(self) -> None:
        """Forget where it was, and what the sensors read."""
        self._known: tuple[float, list[float], list[float]] | None = None
        self.beyond: dict[str, str] = {}        # channels whose last sample lies beyond the limits, and what it is

    def refuses(self, place: int, value: float, stddev: float) -> bool:
        """Whether a sample lies where the joint cannot be; it is remembered in ``beyond``."""
        ends = self._ends[place]
        if ends is None or value != value:
            return False
        name, low, high = ends
        if within(value, low, high, DEEPEST * stddev):
            self.beyond.pop(self._channels[place], None)
            return False
        self.beyond[self._channels[place]] = f'reads {value:.4g}, beyond the limits of {name}, {low:.4g} to {high:.4g}'
        return True

    def know(self, t: float, q: np.ndarray, qd: np.ndarray) -> None:
        """Remember a state that can be trusted."""
        self._known = t, q.tolist(), qd.tolist()

    def unknown(self, names: Sequence[str], fast: float) -> np.ndarray:
        """Standard deviations (l,) of the entries of a mean of which nothing is known but where its coordinates can be;
        0 of all but positions and velocities."""
        found = []
        for name in names:
            kind, _, of = name.partition('/')
            _, low, high = self._limits.get(of, (of, -ANYWHERE, ANYWHERE))
            width = min(high - low, 2.0 * ANYWHERE)     # a joint may have one limit
            found.append(width if kind == 'position' else FASTER * fast if kind == 'velocity' else 0.0)
        return np.array(found)

    def broken(self, t: float, q: list[float], qd: list[float], fast: float) -> str:
        """What is where it cannot be, '' for nothing; ``fast``: speed that a coordinate may have at a start."""
        for name, low, high in self._limits.values():
            at = q[self._names.index(name)]
            if not within(at, low, high, 0.0):
                return f'{name} at {at:.4g}, beyond its limits, {low:.4g} to {high:.4g}'
        if self._known is None:
            return ''
        since, q_known, qd_known = self._known
        for k in self._z:
            speed = FASTER * max(fast, abs(qd_known[k]))
            at, was = q[k], q_known[k]
            if not abs(at - was) <= ANYWHERE + speed * (t - since):
                return f'{self._names[k]} at {at:.4g}, which it cannot have reached since it was at {was:.4g}'
            if not abs(qd[k]) <= 10.0 * FASTER * (speed + ANYWHERE):
                return f'{self._names[k]} moves at {qd[k]:.4g} per s, and moved at {qd_known[k]:.4g}'
        return ''


def within(value: float, low: float, high: float, more: float) -> bool:
    """Whether a value lies between two limits, or beyond them by no more than ``ROOM`` and by ``more``."""
    room = more + (ROOM * (high - low) if isfinite(high - low) else 0.0)
    return low - room <= value <= high + room


def _limits(model: Model) -> dict[str, tuple[str, float, float]]:
    """By its name, each coordinate of a joint with limits."""
    found = {}
    for name, coordinate in model.description.coordinates.items():
        joint = model.description.joints.get(coordinate.joint) if coordinate.joint else None
        if joint is not None and joint.limits is not None and name in model.names:
            found[name] = (name, *joint.limits)
    for name, joint in model.description.joints.items():
        if joint.limits is not None and name in model.names and name not in found:
            found[name] = (name, *joint.limits)
    return found
