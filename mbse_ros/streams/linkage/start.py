# SPDX-License-Identifier: Apache-2.0
"""Where a filter starts: on the branch of the file's start, at what the sensors of positions say."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...dynamics.model import Model
from ...errors import MbseError
from ...estimators.filters.parts.problem import Problem
from ...monitor.mechanism import ObservedCoordinates

if TYPE_CHECKING:
    from ...monitor.mechanism import Assessment, StateMonitor

Poses = tuple[np.ndarray, np.ndarray]
STEP = 0.1          # rad or m of one step of the way: Newton's method must not end on another branch
FARTHEST = 4 * np.pi    # rad or m of the way
MOST_TURNS = 1000       # that a counter of turns has seen
STEPS = 60          # of the way to what sensors other than encoders say
CLOSE = 1e-7        # rad or m: the last step of that way
FITS = 5.0          # standard deviations within which a pose must explain each sample


def first_pose(observed: ObservedCoordinates, values: np.ndarray, stddev: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Coordinates (n,) of a start by the first samples (s,), the rest as in the file's start, or at ``last`` where
    these lead nowhere."""
    model, channels = observed.problem.model, observed.problem.channels
    places = encoded(model, channels, values)
    found = moved_to(model, places)
    q = last if found is None else found
    rest = [k for k, place in enumerate(model.z) if found is None or place not in places]
    better = located(observed, values, stddev, rest, q)
    return q if better is None else better


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


def moved_to(model: Model, places: Mapping[int, float], near: np.ndarray | None = None) -> np.ndarray | None:
    """Coordinates (n,) with independent ones at given values, by small steps from ``near``, default the file's start;
    None where the way is too far or blocked. Of angles the way is shorter by whole turns."""
    q = (model.start.q if near is None else near).copy()
    start = q[model.z]
    target = np.array([places.get(place, value) for place, value in zip(model.z, start)])
    turns = np.where(turning(model), np.round((target - start) / (2 * np.pi)), 0.0)
    several = np.abs(turns) <= MOST_TURNS
    near_by = target - np.where(several & (np.abs(target - start) > FARTHEST), turns * 2 * np.pi, 0.0)
    far = float(np.max(np.abs(near_by - start), initial=0.0))
    if not far <= FARTHEST:
        return None
    steps = max(1, int(np.ceil(far / STEP)))
    try:
        for step in range(1, steps + 1):
            q = model.position(start + (near_by - start) * (step / steps), q)
        return q if np.array_equal(near_by, target) else model.position(target, q)
    except MbseError:
        return None


def turning(model: Model) -> np.ndarray:
    """Which independent coordinates (g,) are angles that may go round."""
    known, found = model.description.coordinates, []
    for name in model.independent:
        coordinate = known.get(name)
        joint = model.description.joints.get(coordinate.joint) if coordinate is not None else None
        found.append(coordinate is not None and (coordinate.kind == 'angle' or joint is not None
                                                 and joint.type == 'revolute'))
    return np.array(found, dtype=bool)


def located(observed: ObservedCoordinates, values: np.ndarray, stddev: np.ndarray, places: Collection[int],
            near: np.ndarray) -> np.ndarray | None:
    """Coordinates (n,) at which sensors of positions say what they do, by small steps from ``near``: least squares
    over the independent ones at ``places`` of them. ``values`` (s,), NaN where missing, ``stddev`` (s,) of the sensors.
    None where they cannot."""
    of, free = observed.problem, sorted(places)
    model, q = of.model, near.copy()
    here = [k for k, value in enumerate(values) if observed.places[k] and np.isfinite(value)]
    if not here or not free:
        return None
    try:
        for _ in range(STEPS):
            error, slope = _misfit(observed, values, stddev, here, q)
            step = np.linalg.lstsq(slope[:, free], error, rcond=None)[0]
            step = step * min(1.0, STEP / max(float(np.abs(step).max()), 1e-300))
            z = q[model.z]
            z[free] += step
            q = model.position(z, q)
            if np.abs(step).max() < CLOSE:
                return q if np.abs(_misfit(observed, values, stddev, here, q)[0]).max() < FITS else None
    except (MbseError, np.linalg.LinAlgError):
        pass
    return None


def _misfit(observed: ObservedCoordinates, values: np.ndarray, stddev: np.ndarray, here: Sequence[int], q: np.ndarray
            ) -> tuple[np.ndarray, np.ndarray]:
    """What samples (k,) at ``here`` differ from a pose's, and the derivatives (k, g), in standard deviations."""
    of: Problem = observed.problem
    h, slope = observed.poses(q)
    error = np.array([(values[k] - h[k] + np.pi) % (2 * np.pi) - np.pi if of.angular[k] else values[k] - h[k]
                      for k in here])
    return error / stddev[here], slope[here] / stddev[here][:, None]


def restart_pose(monitor: StateMonitor, assessment: Assessment, values: np.ndarray, stddev: np.ndarray, before: Poses,
                 t: float, longest: float) -> Poses:
    """Coordinates and velocities (n,) after coordinates started again: where the samples (s,) of the channels say that
    see them, as fast as those changed in the last ``longest`` s before ``t``; the others stay as ``before``."""
    observed, (q, qd) = monitor.observed, before
    model, again = observed.problem.model, list(assessment.again)
    chosen = np.where([i in assessment.by for i in range(len(values))], values, np.nan)
    places = encoded(model, observed.problem.channels, chosen)
    moved = moved_to(model, places, q) if places else q
    if moved is None:       # from the file's start, where the last pose is no place to start from
        moved = moved_to(model, places)
    q = q if moved is None else moved
    rest = [k for k in again if model.z[k] not in places or moved is None]
    better = located(observed, chosen, stddev, rest, q)
    q = q if better is None else better
    zd, slope = qd[model.z], observed.poses(q)[1]
    rates = np.array([monitor.watch.speed(i, t, longest) if observed.places[i] else np.nan for i in assessment.by])
    here = np.isfinite(rates)
    zd[again] = 0.0
    if here.any() and (moved is not None or better is not None):        # speeds of places that can be
        zd[again] = np.linalg.lstsq(slope[np.array(assessment.by)[here]][:, again], rates[here], rcond=None)[0]
    try:
        return q, model.partition().velocity(q, zd, 0.0)
    except MbseError:       # at a dead point
        return q, model.start.qd
