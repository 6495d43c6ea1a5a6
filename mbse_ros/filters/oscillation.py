# SPDX-License-Identifier: Apache-2.0
"""A mass that oscillates: a boom that bends, tyres or a frame that sway.

What the model takes for rigid swings at its own frequency, and the inertia of the load goes up and down with it. Single
steps then measure masses that are far apart, always in the same rhythm, and an observer that follows them says that the
load changes for as long as the machine moves. A load is not taken and put back twice a second: where one sine explains
most of what the masses of the last seconds differ by (least-squares periodogram: N. R. Lomb, Astrophysics and Space
Science 39, 1976; with weights and a line: M. Zechmeister and M. Kürster, Astronomy and Astrophysics 496, 2009), the
force balance has an error of that size. With it the steps say so much less that the sine is not significant any more.
"""

from __future__ import annotations

from cmath import exp
from collections import deque
from dataclasses import dataclass
from math import pi

import numpy as np

from .activity import STEP_TIME
from .mass_information import INFORMATION, MEMORY, SIGNIFICANT, WEIGHTED, MassInformation

BLOCK = 0.05            # s of masses that are added up
WINDOW = 3.0            # s that are looked at: three periods of the slowest
FULL = 0.5              # share of the blocks that must have masses
EVERY = 0.25            # s of weighing from one look to the next
FREQUENCIES = np.arange(0.6, 6.01, 0.1)     # Hz; faster modes average out in a block, and ...
SLOWEST = 1.0           # ... work moves a machine more slowly than that
SHARE = 0.4             # of the weighted variance about a line that one sine explains; noise never does
LEAST = 2.0             # times that variance over that of the steps, which is worth the while


@dataclass(frozen=True)
class Oscillation:
    """Of the masses of the steps: ``frequency``, Hz, ``amplitude``, kg, ``share`` of their variance that it is, and
    ``variance``, kg2, of the mass of a step of ``STEP_TIME`` from which it would not be significant."""

    frequency: float
    amplitude: float
    share: float
    variance: float

    def significance(self, reported: np.ndarray, dt: float) -> float:
        """That over the variance of ``reported`` (n, 4 + k) steps ``dt``, s; 0 where they say nothing."""
        information = MassInformation.of(reported).information
        some = information[information > 0.0]
        return float(np.median(some)) * STEP_TIME / dt * self.variance if some.size else 0.0


class MassOscillation:
    """Of what an observer that weighs reports, segment by segment."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """What was before belongs to another state, or to another error."""
        self._blocks: deque[tuple[float, float, float]] = deque(maxlen=round(WINDOW / BLOCK))
        self._since = 0.0
        self._clear()

    def _clear(self) -> None:
        self._information, self._weighted, self._steps, self._seconds = 0.0, 0.0, 0.0, 0.0

    def take(self, reported: np.ndarray, dt: float) -> Oscillation | None:
        """Of steps ``dt``, s, with ``reported`` (n, 4 + k), see MassInformation: the oscillation that is found, None
        where there is none, and between two looks."""
        information, weighted = np.add.reduce(reported[:, :WEIGHTED + 1]).tolist()
        self._information += information
        self._weighted += weighted
        self._steps += dt / STEP_TIME * np.count_nonzero(reported[:, INFORMATION])
        self._seconds += len(reported) * dt
        if self._seconds < BLOCK:
            return None
        self._blocks.append((self._information, self._weighted, self._steps))
        self._since += self._seconds
        self._clear()
        if self._since < EVERY or len(self._blocks) < WINDOW / BLOCK:
            return None
        self._since = 0.0
        return self._look()

    def _look(self) -> Oscillation | None:
        information, weighted, steps = np.array(self._blocks).T
        there = information > 0.0
        if np.count_nonzero(there) < FULL * len(there):
            return None
        information = information[there]
        masses, each = weighted[there] / information, float(np.median(information / steps[there]))
        mean = np.dot(information, masses) / np.add.reduce(information)
        spread = float(np.dot(information, (masses - mean) ** 2) / np.add.reduce(information))
        if each * _variance(FREQUENCIES[0], 2.0 * spread) < LEAST:
            return None     # nearly always: no sine could be significant
        frequency, amplitude, share, slope = sine_of(np.flatnonzero(there) * BLOCK, masses,
                                                     1.0 / (1.0 / information + spread))     # no block counts for all
        variance = _variance(frequency, amplitude ** 2)
        # a load that is shaken off goes to and fro on its way
        returns = 2.0 * amplitude > abs(slope) * WINDOW
        found = frequency > SLOWEST and share > SHARE and each * variance > LEAST and returns
        return Oscillation(frequency, amplitude, share, variance) if found else None


def _variance(frequency: float, square: float) -> float:
    """Variance, kg2, of a step's mass with which a sine of that ``square`` of its amplitude is just not significant:
    how far it takes the trend of ``mass_information``, in standard deviations."""
    kept = 1.0 - MEMORY
    return square * (1.0 - kept ** 2) / abs(1.0 - kept * exp(2j * pi * frequency * STEP_TIME)) ** 2 / SIGNIFICANT ** 2


def sine_of(t: np.ndarray, masses: np.ndarray, weights: np.ndarray) -> tuple[float, float, float, float]:
    """Frequency, Hz, and amplitude, kg, of the sine that explains most of how ``masses`` (n,), kg, at ``t`` (n,), s,
    differ from a line, the share of their squares, by their ``weights`` (n,), that it explains, and the slope of the
    line, kg/s."""
    root = np.sqrt(weights)
    line, (_, rise) = np.linalg.qr(np.column_stack((root, root * t)))
    along = line.T @ (root * masses)
    left = root * masses - line @ along
    angles = 2.0 * np.pi * FREQUENCIES[:, None] * t
    waves = root * np.stack((np.cos(angles), np.sin(angles)), axis=1)      # (frequencies, 2, n)
    waves = waves - (waves @ line) @ line.T
    by = waves @ left
    sizes = np.linalg.solve(waves @ waves.transpose(0, 2, 1), by[:, :, None])[:, :, 0]
    explained = np.add.reduce(by * sizes, axis=1)
    best = int(np.argmax(explained))
    return (float(FREQUENCIES[best]), float(np.hypot(*sizes[best])), float(explained[best] / max(left @ left, 1e-300)),
            float(along[1] / rise[1]))
