# SPDX-License-Identifier: Apache-2.0
"""When equations of the force balance weigh nothing, and what is known of the load then: three reasons.

Pressures whose sensor has fallen silent: their equations of the force balance carry no information until it is back.
Between two samples a pressure follows from the valve's model or from a random walk. That is good for a sample or a few;
for longer neither is a measurement, and nothing bounds where it leads.

Motion that no equation weighs: while only cylinders without pressure sensors move, a load changes unseen.
A scale with the boom's pressures alone learns of it when the boom moves again. Until then the mass may be that of
another load: its variance grows with the way of the others, up to that of a mass of which nothing is known.

A force on the machine that its force balance does not know: contact with soil, a load that drops.
Then the balance pulls the motion away from what the sensors of the positions show, and their samples are refused one
after the other. As long as that lasts, and a little longer, the balance counts for nothing: the observer is that of the
motion alone.
"""

from __future__ import annotations

from math import exp, log

import numpy as np

from ..machine import Machine
from .between_samples import SamplePlan
from .hydraulic_model import HydraulicModel, largest_pressure
from .mass_information import LOG_KEPT
from .observer_settings import ObserverSettings

UNKNOWN_FLOW = 1e-4         # m3/s, of an unknown valve at the start
FLOW_AGAIN = 1e-3           # m3/s, where it was not watched
UNSEEN = 0.03       # of the range of a coordinate, moved while nothing weighs, from which the load may be another ...
ANOTHER = 0.3       # ... and from which it may be any
ANY = 0.5           # of the range of the payload's limits: standard deviation of any load
AGAIN = 1e5         # activity of the mass when an equation weighs again: the first moments of a motion are its worst
STREAK = 3          # samples of a position that are refused one after the other
SHOCKS = 6.0        # recent ones
LATE = 0.2          # s
RECENT = 0.2        # recent shocks from which the next is no surprise
LASTS = 0.3         # s after the last sign of it
OPENED = 10.0       # times the uncertainty of speeds and accelerations at a start


class SilentPressures:
    """Of one observer: for how long each measured pressure or effort has had no sample; ``full`` (nx, nx) and
    ``slopes`` (nx, k): places of its covariance and derivatives in its packed state."""

    def __init__(self, machine: Machine, model: HydraulicModel, full: np.ndarray, slopes: np.ndarray) -> None:
        self._machine, self._model, self._full, self._slopes = machine, model, full, slopes
        self.pushes, needs = machine.measured_pushes, machine.push_needs
        self._columns = np.array([machine.channels.index(name) for name in self.pushes], dtype=int)
        self._needs = np.array([[name in needs[k] for k in machine.weighing] for name in self.pushes],
                               dtype=bool).reshape(len(self.pushes), len(machine.weighing))
        self.reset()

    def reset(self) -> None:
        """All have just had a sample."""
        self._age, self._oldest = np.zeros(len(self.pushes)), 0.0

    def over(self, u: np.ndarray, dt: float, plan: SamplePlan, whole: bool, settings: ObserverSettings
             ) -> np.ndarray | None:
        """Whether (n, pressures) each is silent in the steps ``dt``, s, of a segment with the inputs ``u`` (n, channels
        or more), NaN without a sample; None where none is, nor was, or the observer does not weigh. A sample counts
        from its own step on. ``whole``: whether each channel has one where the ``plan`` takes the last."""
        after = settings.silent_after
        if not self._model.weighs:
            return None
        if whole and self._oldest + len(u) * dt <= after:
            self.reset()
            if not plan.at_the_end:
                self._age = plan.since[self._columns] * dt
                self._oldest = max(self._age.tolist(), default=0.0)
            return None
        before, silent = self._oldest, self._take(u, dt, after)
        return silent if before > after or silent.any() else None

    def _take(self, u: np.ndarray, dt: float, after: float) -> np.ndarray:
        there, steps = ~np.isnan(u[:, self._columns]), np.arange(len(u))[:, None]
        last = np.maximum.accumulate(np.where(there, steps, -1), axis=0)
        age = np.where(last < 0, self._age + (steps + 1) * dt, (steps - last) * dt)
        if len(age):
            self._age = age[-1]
            self._oldest = float(age[-1].max(initial=0.0))
        return age > after

    def released(self, packed: np.ndarray, silent: np.ndarray) -> np.ndarray:
        """The packed state with those ``silent`` (pressures,), and unknown flows to them, of which nothing is known but
        their bounds: 0 and the largest supply."""
        x, names, valves = packed.copy(), self._model.names, self._machine.hydraulics.valves
        found = [name for name, is_silent in zip(self.pushes, silent) if is_silent]
        flows = [f'flow/{valve}.{port}' for valve in self._machine.unknown_valves for port in 'ab'
                 if f'pressure/{getattr(valves[valve], port)}' in found]
        for name in [*sorted(found), *flows]:
            i = names.index(name)
            x[self._full[i]] = x[self._slopes[i]] = 0.0
            x[i], stddev = unknown(self._machine, name)
            x[self._full[i, i]] = (stddev / self._model.scale[i]) ** 2
        return x

    def closed(self, silent: np.ndarray) -> np.ndarray:
        """Whether (a,) an equation needs one of the pressures that are ``silent`` (pressures,)."""
        return (self._needs & silent[:, None]).any(axis=0)


def unknown(machine: Machine, name: str) -> tuple[float, float]:
    """What an entry of the state is taken for while its sensor is silent, and its deviation, SI: of a pressure, an
    effort or a flow."""
    kind, _, owner = name.partition('/')
    if kind == 'effort':
        return 0.0, machine.description.drives[owner].largest
    middle = largest_pressure(machine) / 2
    return (0.0, FLOW_AGAIN) if kind == 'flow' else (middle, middle)


class UnweighedMotion:
    """Of one machine; ``whole``: whether each coordinate that cylinders move has an equation that weighs. ``moved``,
    ``activity``, ``mass``: where the packed state of an observer says in which equations pistons move, how lively the
    mass is, and its variance."""

    def __init__(self, machine: Machine, moved: slice = slice(0), activity: int = 0, mass: int = 0) -> None:
        self._coordinates, self._moved, self._activity, self._mass = len(machine.coordinates), moved, activity, mass
        self._actuated, limits = machine.actuated, machine.range[machine.actuated]
        self._range = limits[:, 1] - limits[:, 0]
        self._weighed = np.array([machine.actuated.index(k) for k in machine.weighed], dtype=int)
        self.whole = len(self._weighed) == len(self._actuated)
        self.reset()

    def reset(self) -> None:
        """Nothing has moved."""
        self._since: np.ndarray | None = None       # where they were when an equation weighed last
        self.variance = 0.0     # of what the load may have changed by since then, in ranges of the payload's limits

    def forget(self, packed: np.ndarray, reported: np.ndarray, open: np.ndarray | None) -> None:
        """Of an observer: change the ``packed`` state after a segment, and what is ``reported`` of its last step, see
        MassInformation; ``open``: as below."""
        if self.whole and open is None and self._since is None:
            return      # nearly always
        share, variance = self.take(packed[:self._coordinates], packed[self._moved] > 0.5, packed[self._mass], open)
        reported[LOG_KEPT] += share
        if variance:
            packed[self._mass] += variance
            packed[self._activity] = max(packed[self._activity], AGAIN)

    def take(self, position: np.ndarray, moved: np.ndarray, known: float, open: np.ndarray | None = None
             ) -> tuple[float, float]:
        """After a segment that ends at a ``position`` (g,), SI: logarithm of the share of what was known of the mass
        that still counts, and, where an equation weighs again, the variance by which the load may have changed.

        ``moved`` (a,): in which equations pistons move; ``known``: variance of the mass; both variances in ranges of
        the payload's limits; ``open`` (a,): equations whose pressures all have samples, None: all."""
        whole = self.whole and (open is None or bool(open.all()))
        if whole and self._since is None:
            return 0.0, 0.0
        place, before = position[self._actuated], self.variance
        if (moved if open is None else moved & open).any():
            self.reset()
            self._since = None if whole else place
            return 0.0, before
        self._since = place if self._since is None else self._since
        ways = np.abs(place - self._since) / self._range
        ways[self._weighed if open is None else self._weighed[open]] = 0.0
        way = float(ways.max(initial=0.0))
        if way > UNSEEN:
            self.variance = max(before, (ANY * min(way / ANOTHER, 1.0)) ** 2)
        return log((known + before) / (known + self.variance)), 0.0


class OutsideForce:
    """``shows`` (channels,): whether a channel shows the motion, not a pressure; ``steps`` for which the balance is
    not used."""

    def __init__(self, shows: np.ndarray) -> None:
        self.shows = shows
        self.reset()

    def reset(self) -> None:
        """No force."""
        self.steps, self._shocks = 0, 0.0
        self._streak = np.zeros(len(self.shows), dtype=int)

    @property
    def acts(self) -> bool:
        """Whether there is such a force."""
        return self.steps > 0

    def possible(self, refused: list[int]) -> bool:
        """Whether samples of these channels may be refused because of a force: not only pressures out of the blue."""
        return self._shocks > RECENT or any(self.shows[channel] for channel in refused)

    def calm(self, count: int, sampled: bool, dt: float) -> None:
        """``count`` steps of ``dt``, s, without surprise."""
        if not self._shocks:
            return      # nearly always: there has been none
        self.steps = max(0, self.steps - count)
        self._shocks *= exp(-count * dt / LATE)
        if sampled:
            self._streak[:] = 0

    def shock(self, there: np.ndarray, refused: list[int], dt: float) -> bool:
        """A sample interval with a shock, in which the channels ``there`` (channels,) had samples and some were
        ``refused``; whether the motion is to be found again from nothing."""
        self._shocks += 1.0
        left_out = np.isin(np.arange(len(there)), refused)
        self._streak[there] = np.where(left_out, self._streak + 1, 0)[there]
        lost = bool((self._streak[self.shows] >= STREAK).any())
        if lost or self._shocks >= SHOCKS:
            self.steps = max(1, round(LASTS / dt))
        if lost:
            self._streak[:] = 0
        return lost
