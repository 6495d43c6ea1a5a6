# SPDX-License-Identifier: Apache-2.0
"""What happens between two samples, of sensors and of commands.

By how much the lines between rare samples may be off: what a signal does between two samples, no sensor tells.

With gap h and second derivative y'' a line is off by up to h^2/8 |y''|, an eighth of the second difference of the
samples; of a sine at half the sampling rate, by a quarter of it. So a quarter of the second difference, less what the
sensor's noise makes of it, is a bound for all that the rate can show. The error is one and the same for the whole gap:
so the variance of each of the parts in which a sample is taken grows by its square (see ``sample_plan``), and in the
force balance, which has a residual each step, that of a pressure counts as white noise of density variance times gap.

Commands that come, or change, more rarely than the sensors: they are held, while the valves move on.

With sensors every 10 ms and commands every 100 ms a valve that opens is up to 100 ms ahead of its model. The pressures
that the model predicts are then wrong, and so would be the mass, a sensor, or the oil's bulk modulus. Such commands
show in their steps: large ones, each a while after the one before, in the same direction. A valve that is switched
steps from closed, and back. Pressures then follow their samples, as with valves that are unknown, and what was weighed
before is forgotten.
"""

from __future__ import annotations

from math import inf

import numpy as np

from ..machine import Machine

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


def pushes(machine: Machine) -> np.ndarray:
    """Which channels (channels, a) are pressures in each equation of the force balance."""
    needs = machine.pressure_needs
    return np.array([[name.removeprefix('pressure/') in needs[k] for k in machine.weighing]
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
