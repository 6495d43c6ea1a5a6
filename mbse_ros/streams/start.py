# SPDX-License-Identifier: Apache-2.0
"""Where a filter starts: on the branch of the file's start, at what the sensors of positions say; its state there,
where coordinates start again, and as that of another filter."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from ..dynamics.model import Model
from ..errors import MbseError
from ..filters.linkage_settings import LinkageSettings
from ..filters.parts.problem import Problem
from ..filters.parts.step import Filter
from ..monitor.mechanism import ObservedCoordinates

if TYPE_CHECKING:
    from ..monitor.mechanism import MechanismMonitor
    from ..monitor.state import Assessment

MEMORY = ('force_P', 'begun', 'expected', 'points', 'scale')      # kept where coordinates start again
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


def restart_pose(monitor: MechanismMonitor, assessment: Assessment, values: np.ndarray, stddev: np.ndarray,
                 before: Poses, t: float, longest: float) -> Poses:
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


def start_stddev(names: tuple[str, ...], settings: LinkageSettings, unknown: Collection[str]) -> np.ndarray:
    """Standard deviations (l,) of a mean at a start; ``unknown``: coordinates whose speed sensors will show."""
    given = {'position': settings.start_position, 'velocity': settings.start_unseen,
             'parameter': settings.start_parameter, 'bias': settings.start_bias}
    return np.array([settings.start_velocity if name.partition('/')[0] == 'velocity'
                     and name.partition('/')[2] in unknown else given.get(name.partition('/')[0], settings.start_other)
                     for name in names])


def begin_state(filter_: Filter, monitor: MechanismMonitor, values: np.ndarray, stddev: np.ndarray, last: Poses,
                t: float, settings: LinkageSettings, broken: Assessment | None = None) -> np.ndarray:
    """Flat state at a time, s, where the first samples (s,) of positions say, the rest as ``last``; the monitor begins
    with it, and says why nothing of the ``broken`` one before could be kept."""
    q, qd = last
    if settings.start_at == 'sensors':
        q = first_pose(monitor.observed, values, stddev, q)
    settling = max(settings.settle_time, settings.lost_after if broken else 0.0)
    monitor.begin(t, settling, *((f'started again: {broken.reason}', broken.faults) if broken else ()))
    monitor.bounds.know(t, q, qd)
    shown = monitor.observed.shown(q).tolist()
    unknown = [name for name, is_so in zip(filter_.problem.model.independent, shown) if is_so]
    return filter_.start(q, qd, start_stddev(filter_.names, settings, unknown))


def restarted_state(filter_: Filter, flat: np.ndarray, q: np.ndarray, qd: np.ndarray, again: Collection[str],
                    stddev: np.ndarray, t: float, tangents: ca.Function | None, keep_force: bool) -> np.ndarray:
    """A state in which the independent coordinates ``again`` start at ``q``, ``qd`` (n,) with ``stddev`` (l,), and
    without a covariance with the others; these keep what they have. ``keep_force``: forces that were found, which may
    hold a mechanism, stay, too. ``tangents`` as in ``converted_state``."""
    of, names, before = filter_.problem, filter_.names, filter_.state.arrays(flat)
    new = filter_.state.arrays(filter_.start(q, qd, stddev))
    keep = np.array([name.partition('/')[2] not in again or keep_force and name.startswith('force/') for name in names])
    if tangents is not None:
        places = [names.index(f'{kind}/{of.system.names[k]}') for kind in ('position', 'velocity') for k in of.z]
        common, kept = before['P'][np.ix_(places, places)], keep[places]
        common = np.where(np.outer(kept, kept), common, np.diag(stddev[places] ** 2))
        T = np.array(tangents(q, qd[of.z], t, of.model.parameters))
        new['P'] = T @ common @ T.T
        return filter_.state.flat(**new)
    P = np.where(np.outer(keep, keep), before['P'], new['P'])
    P[np.not_equal.outer(keep, keep)] = 0.0
    new['P'], new['x'] = P, np.where(keep, before['x'], new['x'])
    if 'force' in new:
        new['force'] = np.where([name in again and not keep_force for name in filter_.forces], 0.0, before['force'])
    new.update({name: before[name] for name in MEMORY if name in new})
    return filter_.state.flat(**new)


def converted_state(old: Filter, flat: np.ndarray, out: dict[str, np.ndarray], new: Filter, t: float,
                    settings: LinkageSettings, tangents: ca.Function | None) -> np.ndarray:
    """State of a filter, with its last outputs, as that of another one: what both have keeps mean and covariance, a
    force goes along, what only the new one has starts from its prior. ``tangents``: of the new one,
    where its mean is of all coordinates."""
    before, names = old.state.arrays(flat), new.names
    spreads = start_stddev(names, settings, new.problem.model.independent)
    parts = new.state.arrays(new.start(out['q'], out['qd'], spreads))
    was = {name: i for i, name in enumerate(old.names)}
    for i, name in enumerate(names):
        parts['P'][i, :] = [before['P'][was[name], was[other]] if name in was and other in was else
                            0.0 if name in was or other in was else parts['P'][i, j] for j, other in enumerate(names)]
        if name in was:
            parts['x'][i] = before['x'][was[name]]
    force = dict(zip((f'force/{name}' for name in old.forces), out['force']))
    for i, name in enumerate(names):
        parts['x'][i] = force.get(name, parts['x'][i])
    if 'force' in parts and old.forces == new.forces and parts['force'].shape == out['force'].shape:
        parts['force'] = out['force']
    if new.state.parts['x'] == old.state.parts['x'] and new.name == old.name:
        parts |= {name: before[name] for name in parts if new.state.parts[name] == old.state.parts.get(name)}
    if tangents is not None and old.name != new.name:
        parts['P'] = _dependent(new, parts, _common(old, before), t, tangents)
    return new.state.flat(**parts)


def _common(old: Filter, before: dict[str, np.ndarray]) -> np.ndarray:
    """Covariance (2g, 2g) of the independent positions and velocities; empty where the filter has none."""
    of, was = old.problem, {name: i for i, name in enumerate(old.names)}
    wanted = [f'{kind}/{of.system.names[k]}' for kind in ('position', 'velocity') for k in of.z]
    if any(name not in was for name in wanted):
        return np.zeros(0)
    places = [was[name] for name in wanted]
    return before['P'][np.ix_(places, places)]


def _dependent(new: Filter, parts: dict[str, np.ndarray], common: np.ndarray, t: float,
               tangents: ca.Function) -> np.ndarray:
    """Covariance (2n, 2n) in all coordinates of one of the independent ones, as the constraints allow it."""
    of = new.problem
    if common.size == 0:
        return parts['P']
    T = np.array(tangents(parts['q'], parts['x'][of.n:][of.z], t, of.model.parameters))
    return T @ common @ T.T
