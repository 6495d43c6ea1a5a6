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

from collections import deque
from dataclasses import dataclass

import numpy as np

from .mass_information import MEMORY, SIGNIFICANT, STEP_TIME, MassInformation

BLOCK = 0.05            # s of masses that are added up
WINDOW = 3.0            # s that are looked at: three periods of the slowest
FULL = 0.5              # share of the blocks that must have masses
EVERY = 0.25            # s of weighing from one look to the next
FREQUENCIES = np.arange(1.0, 6.01, 0.1)     # Hz: work moves a machine more slowly, faster modes average out in a block
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
        self._blocks: deque[tuple[float, float, int]] = deque(maxlen=round(WINDOW / BLOCK))
        self._block, self._seconds, self._since = np.zeros(3), 0.0, 0.0

    def take(self, reported: np.ndarray, dt: float) -> Oscillation | None:
        """Of steps ``dt``, s, with ``reported`` (n, 4 + k), see MassInformation: the oscillation that is found, None
        where there is none, and between two looks."""
        found = MassInformation.of(reported)
        informative = found.information > 0.0
        self._block += (np.add.reduce(found.information), np.add.reduce(found.weighted),
                        dt / STEP_TIME * np.count_nonzero(informative))
        self._seconds += len(reported) * dt
        if self._seconds < BLOCK:
            return None
        self._blocks.append((float(self._block[0]), float(self._block[1]), float(self._block[2])))
        self._since += self._seconds
        self._block, self._seconds = np.zeros(3), 0.0
        if self._since < EVERY or len(self._blocks) < WINDOW / BLOCK:
            return None
        self._since = 0.0
        return self._look()

    def _look(self) -> Oscillation | None:
        information, weighted, steps = np.array(self._blocks).T
        there = information > 0.0
        if np.count_nonzero(there) < FULL * len(there):
            return None
        t, information, steps = np.flatnonzero(there) * BLOCK, information[there], steps[there]
        found = sine_of(t, weighted[there] / information, information)
        # how far a sine takes the trend of ``mass_information``, in standard deviations, for one of a step's mass
        gain = np.sqrt(1.0 - (1.0 - MEMORY) ** 2) / abs(
            1.0 - (1.0 - MEMORY) * np.exp(2j * np.pi * found[0] * STEP_TIME))
        variance = float(found[1] * gain / SIGNIFICANT) ** 2
        significant = np.median(information / steps) * variance > LEAST
        # a load that is shaken off goes to and fro on its way
        returns = 2.0 * found[1] > abs(found[3]) * WINDOW
        return Oscillation(*found[:3], variance) if found[2] > SHARE and significant and returns else None


def sine_of(t: np.ndarray, masses: np.ndarray, information: np.ndarray) -> tuple[float, float, float, float]:
    """Frequency, Hz, and amplitude, kg, of the sine that explains most of how ``masses`` (n,), kg, at ``t`` (n,), s,
    differ from a line, the share of their weighted squares that it explains, and the slope of the line, kg/s;
    ``information`` (n,), 1/kg2."""
    spread = np.average((masses - np.average(masses, weights=information)) ** 2, weights=information)
    root = np.sqrt(1.0 / (1.0 / information + spread))      # no block counts for all
    line = np.linalg.qr(np.column_stack((root, root * t)))[0]
    left = root * masses - line @ (line.T @ (root * masses))
    angles = 2.0 * np.pi * FREQUENCIES[:, None] * t
    waves = root * np.stack((np.cos(angles), np.sin(angles)), axis=1)      # (frequencies, 2, n)
    waves = waves - (waves @ line) @ line.T
    products, by = waves @ waves.transpose(0, 2, 1), waves @ left
    sizes = np.linalg.solve(products, by[:, :, None])[:, :, 0]
    explained = np.einsum('fi,fi->f', by, sizes)
    best = int(np.argmax(explained))
    return (float(FREQUENCIES[best]), float(np.hypot(*sizes[best])), float(explained[best] / max(left @ left, 1e-300)),
            float(np.polyfit(t, masses, 1, w=root)[0]))
