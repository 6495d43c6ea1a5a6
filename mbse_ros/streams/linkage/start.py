# SPDX-License-Identifier: Apache-2.0
"""Where a filter starts: on the branch of the file's start, at what the encoders say."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...dynamics.model import Model
from ...errors import MbseError

STEP = 0.1          # rad or m of one step of the way: Newton's method must not end on another branch
FARTHEST = 4 * np.pi


def encoded(model: Model, channels: tuple[str, ...], values: np.ndarray) -> dict[int, float]:
    """Independent coordinates, by their place in q, measured by encoders among the channels (s,); NaN: no sample."""
    found = {}
    for channel, value in zip(channels, values):
        sensor = model.description.sensors.get(channel)
        if sensor is not None and sensor.kind == 'encoder' and np.isfinite(value):
            place = model.names.index(sensor.coordinate)
            if place in model.z:
                found[place] = float(value)
    return found


def moved_to(model: Model, places: Mapping[int, float]) -> np.ndarray | None:
    """Coordinates (n,) with independent ones at given values, by small steps from the file's start; None where the way
    is too far or blocked."""
    q = model.start.q.copy()
    start = q[model.z]
    target = np.array([places.get(place, value) for place, value in zip(model.z, start)])
    far = float(np.max(np.abs(target - start), initial=0.0))
    if not far <= FARTHEST:
        return None
    steps = max(1, int(np.ceil(far / STEP)))
    try:
        for step in range(1, steps + 1):
            q = model.position(start + (target - start) * (step / steps), q)
    except MbseError:
        return None
    return q
