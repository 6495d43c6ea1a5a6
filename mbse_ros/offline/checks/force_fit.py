# SPDX-License-Identifier: Apache-2.0
"""How well the forces of a log balance: pressures against the weight of the known machine, its motion and a load.

In each window of the log the load is one mass within its limits; what the balance then lacks is counted in what such
a model may lack anyway: shares of weight, friction and inertia, and the sensors' noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import casadi as ca
import numpy as np

from ...description.sections.load_payload import MASS
from ...errors import PositionProblemError, SingularConfigurationError
from ...filters.force_balance import force_balance
from ...filters.hydraulic_state import PUSHED, direct, state_names
from ...machine import Machine
from ..log_samples import STEP, Means

NEEDED = ('position/', *PUSHED)
REACH = 2               # steps of the grid to each side over which speeds are differences
WEIGHT_SHARE = 0.05     # of the weight of the known bodies, and of the load
FRICTION_SHARE = 0.3    # of the friction of a moving piston
INERTIA_SHARE = 0.5     # of what the acceleration takes, which two differences give roughly
EVERY = 2               # steps of the grid from one instant of the balance to the next
LEAST = 20              # instants
FEWEST = 0.7            # share of the instants in which the cylinders must reach
SLACK = 0.02            # of the range of the payload's limits
LEFT_OUT = 0.25         # of the windows, those that fit worst: there the load changed, or touched something
KEPT = 16               # motions of which the coordinates are kept: those of one log, as it is and with remedies


@dataclass(frozen=True)
class Fit:
    """``misfit`` (a,): root mean square of what each equation lacks, 1 where it is as large as it may be; ``mass`` (w,)
    of each window, kg, as the balance asks for it, whatever the limits."""

    misfit: np.ndarray
    mass: np.ndarray

    @property
    def worst(self) -> float:
        """Of the equations."""
        return float(self.misfit.max())


@lru_cache(maxsize=2)
def fit_of(machine: Machine) -> ForceFit:
    """Of a machine, made once: its equations are those of every log."""
    return ForceFit(machine)


class ForceFit:
    """The balance of forces of one machine over means of its channels."""

    def __init__(self, machine: Machine) -> None:
        self.machine, (self.names, _) = machine, state_names(machine)
        self._channels = direct(machine)
        self._known: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """What no channel measures directly and the balance needs: positions, and pressures where no equation has all
        of its own, and several masses: one is fitted."""
        if self.machine.description.payloads:
            return ('each of several masses',)
        needed = ('position/',) if self.machine.weighing else NEEDED
        found = tuple(name for name in self.names if name.startswith(needed) and name not in self._channels)
        return found if found or self.machine.weighing else ('a pressure or an effort',)

    def fit(self, means: Means) -> Fit | None:
        """None where the cylinders do not reach, or nothing is left to look at."""
        states = self._states(means)
        q, reached = self._solved(states)
        usable = np.isfinite(states[:, reached]).all(axis=0)
        q, reached = q[usable], reached[usable]
        if len(reached) < max(LEAST, FEWEST * np.isfinite(states).all(axis=0).sum() / EVERY):
            return None
        X, window = states[:, reached], means.window[reached]
        found = [np.asarray(item) for item in self._terms(q.T, X, self.machine.parameters.mean)]
        g0, G1, slack, own = found
        masses, lacks = [], []
        low, high = self._limits
        for k in np.unique(window):
            rows = window == k
            g, G, s, w = (item[:, rows] for item in (g0, G1, slack, own))
            mass, lack = _load(g, G, s, w, low, high)
            masses.append(mass)
            lacks.append(np.mean(lack ** 2, axis=1))
        kept = np.sort(np.array(lacks), axis=0)[:max(1, round((1 - LEFT_OUT) * len(lacks)))]
        return Fit(np.sqrt(kept.mean(axis=0)), np.array(masses))

    def pistons(self, means: Means) -> np.ndarray:
        """Positions of the pistons (k, cylinders), m; NaN where they are not known."""
        states = self._states(means)
        found = np.full((len(means.t), len(self.machine.actuators)), np.nan)
        q, reached = self._solved(states)
        if len(reached):
            found[reached] = q[:, self.machine.pistons]
        return found

    @property
    def _limits(self) -> tuple[float, float]:
        payload = self.machine.description.payload
        return payload.limits if payload is not None else (0.0, 0.0)

    def _states(self, means: Means) -> np.ndarray:
        """State (nx, k) of the observer at the instants, NaN where a window begins or ends."""
        X = np.zeros((len(self.names), len(means.t)))
        for i, name in enumerate(self.names):
            channel = self._channels.get(name)
            if channel is not None and channel.name in means.values:
                gain, offset, zero = channel.nominal
                X[i] = (means.values[channel.name] - offset) / gain + zero
            elif channel is not None and name.startswith(NEEDED):
                X[i] = np.nan
        same = np.zeros(len(means.t), dtype=bool)
        same[REACH:-REACH] = means.window[2 * REACH:] == means.window[:-2 * REACH]
        ahead, behind = np.roll(X, -REACH, axis=1), np.roll(X, REACH, axis=1)
        g, h = len(self.machine.coordinates), REACH * STEP
        X[g:2 * g] = (ahead - behind)[:g] / (2 * h)
        X[2 * g:3 * g] = (ahead - 2 * X + behind)[:g] / h ** 2
        X[g:, ~same] = np.nan
        return X

    def _solved(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates (r, n) and places (r,) of every other instant, as far as the mechanism reaches."""
        count = len(self.machine.coordinates)
        wanted = np.flatnonzero(np.isfinite(states[:count]).all(axis=0))[::EVERY]
        key = states[:count, wanted].tobytes()       # pressures alone change nothing of it
        if key in self._known:
            return self._known[key]
        found, places, q = [], [], None
        for i in wanted:
            try:
                q = self.machine.position(states[:count, i], q)
            except (PositionProblemError, SingularConfigurationError):
                q = None
                continue
            found.append(q)
            places.append(i)
        solved = np.array(found).reshape(len(places), self.machine.system.n), np.array(places, dtype=int)
        self._known[key] = solved
        for old in list(self._known)[:-KEPT]:
            self._known.pop(old, None)
        return solved

    @cached_property
    def _terms(self) -> ca.Function:
        """``(q, X, p)`` -> balance without a load (a,), its slope by the load, slack without a load, weight (a,)."""
        machine, balance = self.machine, force_balance(self.machine, self.names, open_loops=True)
        X, g, states = balance.X, balance.g, machine.parameters.states
        load = ca.vertcat(*(symbol for key, symbol in states.items() if key == MASS))
        if load.numel():
            slope, g = ca.jacobian(g, load), ca.substitute(g, load, ca.SX.zeros(load.numel()))
        else:
            slope = ca.SX.zeros(g.numel())
        count = len(machine.coordinates)
        motion = list(range(count, 3 * count))
        pressures = [i for i, name in enumerate(self.names) if name.startswith(PUSHED)]
        accelerations, zero = X[2 * count:3 * count], ca.SX.zeros
        slow = ca.substitute(g, accelerations, zero(count))
        empty = X[motion + pressures]
        weight = ca.substitute(g, empty, zero(empty.numel()))
        moving = ca.fabs(balance.speeds) > ca.DM(machine.actuators.transitions)      # below, friction is anything
        friction = ca.fabs(balance.levers) @ (balance.bounds * ca.if_else(moving, FRICTION_SHARE, 1.0))
        noise = ca.vertcat(*(self._noise(name) for name in self.names))
        slopes = ca.jacobian(g, X[pressures])
        noisy = ca.sqrt((slopes ** 2) @ noise[pressures] ** 2)
        slack = friction + INERTIA_SHARE * ca.fabs(g - slow) + noisy
        return ca.Function('mbse_force_fit', [balance.near, X, machine.parameters.symbol],
                           [ca.densify(item) for item in (g, slope, slack, ca.fabs(weight))], {'cse': True})

    def _noise(self, name: str) -> float:
        channel = self._channels.get(name)
        return channel.sensor.noise / abs(channel.nominal[0]) if channel is not None else 0.0


def _load(g: np.ndarray, G: np.ndarray, slack: np.ndarray, weight: np.ndarray, low: float, high: float
          ) -> tuple[float, np.ndarray]:
    """Mass, kg, that fits equations (a, k) best, and what they lack (a, k) at it, or at the nearest limit.

    What an equation may lack has a floor, the mean of its own over the window: weights cross zero.
    """
    def spread(mass: float) -> np.ndarray:
        own = WEIGHT_SHARE * (weight + np.abs(G) * mass)
        return slack + np.maximum(own, own.mean(axis=1, keepdims=True)) + 1e-9

    mass = 0.5 * (low + high)
    for _ in range(3):
        s = spread(min(max(mass, low), high))
        mass = -float(np.sum(G * g / s ** 2)) / max(float(np.sum(G ** 2 / s ** 2)), 1e-30)
    room = SLACK * (high - low)
    within = min(max(mass, low - room), high + room)
    return mass, (g + G * within) / spread(min(max(within, low), high))
