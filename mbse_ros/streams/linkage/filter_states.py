# SPDX-License-Identifier: Apache-2.0
"""States of a filter at a start, where coordinates start again, and of another filter."""

from __future__ import annotations

from collections.abc import Collection

import casadi as ca
import numpy as np

from ...estimators.filters.parts.step import Filter
from ...estimators.linkage_settings import LinkageSettings

MEMORY = ('force_P', 'begun', 'expected', 'points', 'scale')      # kept where coordinates start again


def start_stddev(names: tuple[str, ...], settings: LinkageSettings, unknown: Collection[str]) -> np.ndarray:
    """Standard deviations (l,) of a mean at a start; ``unknown``: coordinates whose speed sensors will show."""
    given = {'position': settings.start_position, 'velocity': settings.start_unseen,
             'parameter': settings.start_parameter, 'bias': settings.start_bias}
    return np.array([settings.start_velocity if name.partition('/')[0] == 'velocity'
                     and name.partition('/')[2] in unknown else given.get(name.partition('/')[0], settings.start_other)
                     for name in names])


def initial_state(filter_: Filter, q: np.ndarray, qd: np.ndarray, settings: LinkageSettings,
                  unknown: Collection[str] = ()) -> np.ndarray:
    """Flat state at coordinates and velocities (n,) with the uncertainty of a start."""
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
