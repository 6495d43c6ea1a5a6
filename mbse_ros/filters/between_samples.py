# SPDX-License-Identifier: Apache-2.0
"""What happens between two samples, of sensors and of commands, and which values the observer takes.

By how much the lines between rare samples may be off: what a signal does between two samples, no sensor tells.

With gap h and second derivative y'' a line is off by up to h^2/8 |y''|, an eighth of the second difference of the
samples; of a sine at half the sampling rate, by a quarter of it. So a quarter of the second difference, less what the
sensor's noise makes of it, is a bound for all that the rate can show. The error is one and the same for the whole gap:
so the variance of each of the parts in which a sample is taken grows by its square (see ``SamplePlan``), and in the
force balance, which has a residual each step, that of a pressure counts as white noise of density variance times gap.

Commands that come, or change, more rarely than the sensors: they are held, while the valves move on.

With sensors every 10 ms and commands every 100 ms a valve that opens is up to 100 ms ahead of its model. The pressures
that the model predicts are then wrong, and so would be the mass, a sensor, or the oil's bulk modulus. Such commands
show in their steps: large ones, each a while after the one before, in the same direction. A valve that is switched
steps from closed, and back. Pressures then follow their samples, as with valves that are unknown, and what was weighed
before is forgotten.

Which of the interpolated values of a segment the observer takes, and how the states between them are made.

The values between two samples repeat these samples' noise: taken as measurements of their own they count it several
times, at whatever variance. So each sample corrects once, with its own variance, at its stamp; in between the model
predicts, and the states between two samples are put on a line. Where samples are rare the prediction gets too long for
a stiff fluid linearised: a sample is then taken in parts, and what its line may be off counts with its noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from ..machine import Machine

LONGEST_PREDICTION = 10e-3  # s; of samples that are rarer n parts are interpolated, each with n times the variance
MOST_PLANS = 256
SHARE = 1.0 / 16.0      # square of the line's error over that of the second difference
NOISE = 3.0 * 6.0       # of a sample's variance, left out of such a square: 6 on average, by chance 3 times that
KEPT = 0.5              # of such a square, for the next gap: a single one can be near 0 by chance
RARE = 3.0              # standard deviations of a sensor by which the line may be off before its samples are too rare
CHAMBERS = 4.0          # times that density: two chambers push a piston, and neighbouring gaps are alike
SELDOM, WHOLE = 2.5, 0.025      # times the sensors' usual interval, and s, between changes of a rare command
RAMP, ONE_WAY = 0.1, 0.5        # of its limit: changes that matter; s after one the same way, else a valve is switched
CLOSED = 0.02                   # of its limit, up to which a valve is closed
REMEMBERED = 30.0               # s for which commands are taken to be rare after such a change
DENSITY = 100.0     # MPa^2/s, of the pressures then: a valve off by a tenth changes one by 30 MPa/s for 0.1 s


@dataclass(frozen=True)
class SamplePlan:
    """``used`` (n, channels): the values to take; ``parts`` (channels,): how many make one sample; ``due`` afterwards;
    ``divided``: places of the channels that are taken in several.

    ``newest``: index of each channel's last value, ``since`` (channels,) steps before the end, where ``all_sampled``:
    each has one.
    A state of the steps ``inside`` is at the ``share`` (steps, 1) of the way from the state ``left`` to ``right``, both
    counted from the one before the segment. ``at_the_end``: each channel has one value, at the last step: one line.
    """

    used: np.ndarray
    parts: np.ndarray
    divided: np.ndarray
    due: np.ndarray
    newest: int | tuple[np.ndarray, np.ndarray]
    since: np.ndarray
    all_sampled: bool
    at_the_end: bool
    inside: np.ndarray
    left: np.ndarray
    right: np.ndarray
    share: np.ndarray

    def on_lines(self, before: np.ndarray, states: np.ndarray) -> np.ndarray:
        """States (n, nx) with those between samples on lines; ``before`` (nx,): the one before the segment."""
        if self.at_the_end:
            mean = np.empty(states.shape)
            mean[-1] = states[-1]
            line = np.multiply(self.share, states[-1] - before, out=mean[:-1])
            line += before
            return mean
        ends = np.empty((len(states) + 1, len(before)))
        ends[0], ends[1:] = before, states
        start, line = ends.take(self.left, axis=0), ends.take(self.right, axis=0)
        line -= start
        line *= self.share
        line += start
        mean = states.copy()
        mean[self.inside] = line
        return mean


class SamplePlans:
    """Plans of one observer, kept: segments repeat. What is due beyond whole samples is carried on, so that in the long
    run each sample counts once, also where sensors of several rates share a segment that does not end at a sample of
    each."""

    def __init__(self, channels: int) -> None:
        self._plans: dict[tuple[int, float, bytes, bytes], SamplePlan] = {}
        self._due = np.zeros(channels)

    def reset(self) -> None:
        """Nothing is due."""
        self._due = np.zeros_like(self._due)

    def next(self, n: int, repeats: np.ndarray, dt: float) -> SamplePlan:
        """For a segment of ``n`` steps ``dt``, s, with ``repeats`` (channels,) steps from sample to sample."""
        key = n, dt, repeats.tobytes(), self._due.tobytes()
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= MOST_PLANS:
                self._plans.clear()
            plan = self._plans[key] = _plan(n, repeats, dt, self._due)
        self._due = plan.due
        return plan


def _plan(n: int, repeats: np.ndarray, dt: float, due: np.ndarray) -> SamplePlan:
    parts = np.maximum(np.rint(repeats * (dt / LONGEST_PREDICTION)), 1.0)
    used, after = np.zeros((n, len(repeats)), dtype=bool), np.empty(len(repeats))
    for k, interval in enumerate((repeats / parts).tolist()):
        now = float(due[k]) + n / interval
        count = int(now + 0.5 + 1e-9)
        after[k] = now - count
        for j in range(count):
            used[max(0, n - 1 - round(j * interval)), k] = True
    since, sampled = np.argmax(used[::-1], axis=0), np.flatnonzero(used.any(axis=1))
    newest = (n - 1 - since, np.arange(len(repeats))) if since.any() else n - 1
    return SamplePlan(used, parts, np.flatnonzero(parts > 1.0), after, newest, since, bool(used.any(axis=0).all()),
                      bool(used[-1].all()) and len(sampled) == 1, *_lines(sampled))


def _lines(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Steps between samples, which are at the steps ``samples``; both ends of their lines; shares of the way."""
    ends = np.concatenate([[-1], samples])
    steps = np.setdiff1d(np.arange(ends[-1] + 1), samples)
    k = np.searchsorted(ends, steps)
    left, right = ends[k - 1], ends[k]
    return steps, left + 1, right + 1, ((steps - left) / (right - left))[:, None]


def pushes(machine: Machine) -> np.ndarray:
    """Which channels (channels, a) are pressures or efforts in each equation of the force balance."""
    needs = machine.push_needs
    return np.array([[name in needs[k] for k in machine.weighing]
                     for name in machine.channels], dtype=bool).reshape(len(machine.channels), len(machine.weighing))


def line_errors(samples: np.ndarray, variance: float) -> np.ndarray:
    """By how many standard deviations of a sensor of this ``variance`` the lines beside each but the first and last of
    its ``samples`` (n,) may be off (n - 2,), SI."""
    squares = np.maximum(np.diff(samples, 2) ** 2 - NOISE * variance, 0.0)
    return np.asarray(np.sqrt(SHARE * squares / variance))


class InterpolationError:
    """Of one observer; ``noise`` (channels,), variances of the samples, SI; ``pushes`` (channels, a): pressures in each
    equation of the force balance.

    ``variance`` (channels,), SI, of the lines of the last segment.
    """

    def __init__(self, noise: np.ndarray, pushes: np.ndarray) -> None:
        self._noise, self._pushes = noise, pushes
        self.reset()

    def reset(self) -> None:
        """As at rest: nothing bends."""
        self._square, self._slope = np.zeros_like(self._noise), np.zeros_like(self._noise)
        self._last: np.ndarray | None = None

    @property
    def variance(self) -> np.ndarray:
        """Of the lines (channels,), SI."""
        return SHARE * self._square

    def take(self, values: np.ndarray, repeats: np.ndarray, channels: np.ndarray) -> None:
        """A segment's ``values`` (n, channels), SI, on the grid, with ``repeats`` (channels,) steps from sample to
        sample, of those of the ``channels`` (places) whose samples are rare."""
        before = values[:1] if self._last is None else self._last
        slopes = np.diff(np.concatenate([before, values]), axis=0)
        self._last = values[-1:].copy()
        for k in channels.tolist():
            gap = max(1, round(float(repeats[k])))
            for slope in slopes[(len(values) - 1) % gap::gap, k].tolist():
                if slope == slope:
                    square = max((gap * (slope - self._slope[k])) ** 2 - NOISE * self._noise[k], 0.0)
                    self._square[k], self._slope[k] = max(square, KEPT * self._square[k]), slope

    def density(self, repeats: np.ndarray, dt: float, channels: np.ndarray) -> np.ndarray:
        """Of the noise in each equation of the force balance (a,), Pa^2 s: of the largest of its pressures among the
        ``channels``."""
        own = (self.variance * repeats)[channels, None] * self._pushes[channels]
        return CHAMBERS * dt * own.max(axis=0, initial=0.0)

    def rare(self, channels: np.ndarray) -> tuple[tuple[int, float], ...]:
        """Those of the ``channels`` whose samples are too rare, the worst first, and by how many standard deviations of
        the sensor their lines may be off."""
        off = np.sqrt(self.variance[channels] / self._noise[channels])
        return tuple((int(channels[k]), float(off[k])) for k in np.argsort(-off) if off[k] > RARE)


def moves_on(start: np.ndarray, step: np.ndarray, before: np.ndarray, gap: np.ndarray, limit: np.ndarray | float
             ) -> np.ndarray:
    """Whether (k,) a ``step`` of a command from ``start``, V, shows that its valve moved on while it was held:
    ``gap``, s, after the step ``before``; ``limit``, V, of the command."""
    return ((np.abs(step) > RAMP * limit) & (step * before > 0.0) & (gap < ONE_WAY)
            & (np.abs(start) > CLOSED * limit))


class RareCommands:
    """Of one observer: whether commands are too rare for the motion, by those that it gets with its segments."""

    def __init__(self, machine: Machine) -> None:
        limits = [machine.hydraulics.valves[name].command_limit for name in machine.modelled_valves]
        self._limits = np.array([limit.value if limit is not None else inf for limit in limits])
        self.reset()

    def reset(self) -> None:
        """As at rest."""
        self._now, self._until = 0, -inf        # ns, whole: the same however steps come in segments
        self._last: np.ndarray | None = None
        self._changed, self._step = np.full(len(self._limits), -inf), np.zeros(len(self._limits))

    def take(self, commands: np.ndarray, dt: float, repeats: np.ndarray) -> np.ndarray | None:
        """Whether (n, 1) they are, in each step ``dt``, s, of a segment's ``commands`` (n, valves), V, from the step on
        that shows it; None where they are in none. ``repeats`` (channels,): steps from sample to sample."""
        step_ns, begin, before = round(1e9 * dt), self._now, commands[0] if self._last is None else self._last
        self._now, self._last = begin + len(commands) * step_ns, commands[-1].copy()
        changed = not (commands == before).all()
        if not changed and begin >= self._until:
            return None     # nearly always
        stamps = begin + step_ns * np.arange(1, len(commands) + 1)
        rare = stamps <= self._until
        if changed:
            least = max(SELDOM * step_ns * float(np.median(repeats)), 1e9 * WHOLE)
            values = np.concatenate([before[None], commands])
            steps = np.diff(values, axis=0)
            for row in np.flatnonzero(steps.any(axis=1)).tolist():
                step, gap = steps[row], stamps[row] - self._changed
                if (moves_on(values[row], step, self._step, 1e-9 * gap, self._limits) & (gap > least)).any():
                    self._until = stamps[row] + 1e9 * REMEMBERED
                    rare |= (stamps >= stamps[row]) & (stamps <= self._until)
                moved = step != 0.0
                self._changed[moved], self._step[moved] = stamps[row], step[moved]
        return rare[:, None] if rare.any() else None
