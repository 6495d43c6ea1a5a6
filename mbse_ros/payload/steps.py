# SPDX-License-Identifier: Apache-2.0
"""Steps that masses take: is the load of the last seconds another than before, has a sensor become wrong, or does
another pose explain it?

A generalised likelihood ratio test (A. S. Willsky and H. L. Jones, A generalized likelihood ratio approach to the
detection and estimation of jumps in linear systems, IEEE Trans. Automatic Control 21, 1976) of the blocks of masses
that ``common_errors`` solves for. What was found before a window foretells its masses; these are off by their noise, by
what is not known of the common errors and of the mass before, and by a step: of the mass, or of one of the numbers.
Each is judged by its own deviation. What no one step explains is left to others.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cache
from math import inf, sqrt

import numpy as np

WINDOWS = 5, 10, 20, 40, 80     # blocks, each window in parts of a tenth
PARTS = 10
LEARNT = 10                 # blocks before, without which there is nothing to compare with
SHORTEST = 3                # blocks that a change is ago at least
SIGNIFICANT = 4.5           # standard deviations of a step, from which it is one
LEANS = 2.5                 # ... from which it may be one, so that the interval has to hold both masses
CONSISTENT = 3.0            # mean square of what the step leaves over, in its variance: beyond it there is no step
LOAD = 4.0                  # loads change and sensors seldom do: it is the load, unless the squares of a number's
NUMBER = 9.0                # deviations are more by the first; and a number, or a load that changes for a while
                            # and not at once, where they are by the second
WRONG = 4.4                 # deviations of the file by which a number must be off then: a chance of 1e-5
ABSURD = 50.0               # ... and no more than that: it would not be left to masses to see it
AGAIN = 2                   # blocks in a row that say so of numbers, since a load may only have begun to change
ALIKE = 4.0                 # of these squares, by which numbers cannot be distinguished: the smallest is likeliest


@dataclass(frozen=True)
class Known:
    """Mass and errors ``x`` (1 + k,), their covariance ``P``, and information ``L`` and ``h`` of the samples."""

    x: np.ndarray
    P: np.ndarray
    L: np.ndarray
    h: np.ndarray


@dataclass
class Block:
    """Sums (2 + k,) of the information on the mass, of that times the mass and times its derivatives by the errors;
    ``seconds`` of samples; ``kept``: logarithm of the share of older information that counts; ``before``: what was
    known before the block was entered, None until then; ``loose``: the load may be another in each of them; ``rare``:
    of samples so rare that their errors are alike."""

    sums: np.ndarray
    seconds: float
    kept: float
    before: Known | None = None
    loose: bool = False
    rare: bool = False

    @property
    def weighs(self) -> bool:
        """Whether it says something of the mass."""
        return bool(self.seconds > 0.0 and self.sums[0] > 0.0 and np.isfinite(self.sums).all())


@dataclass(frozen=True)
class Step:
    """Since so many blocks the mass, place 0, or an error, places 1 to k, is another, by ``size``, in kg or in standard
    deviations of the error; in the first ``lasted`` of these blocks it changed."""

    blocks: int
    place: int
    size: float
    lasted: int = 0


@dataclass(frozen=True)
class _Masses:
    """By how much masses are ``off`` (n,), kg, of what is known before, their derivatives ``rows`` (n, 1 + k) by the
    mass and the errors, and the variances of their own ``noise`` (n,)."""

    off: np.ndarray
    rows: np.ndarray
    noise: np.ndarray

    @property
    def may_step(self) -> bool:
        """Whether any step can be significant: no squared deviation of one is more than the sum of their squares over
        the noise (Cauchy and Schwarz), as what is not known of mass and errors only adds to their covariance. A
        hundredth is left for rounding."""
        return not float((self.off / self.noise) @ self.off) < 0.99 * SIGNIFICANT ** 2


class Steps:
    """The last blocks of one machine; ``varying`` (k,): share of each error that is not constant, for ``same``, s;
    ``sudden``: places of what may take a step besides the mass; ``least``, kg, by which two loads differ."""

    def __init__(self, varying: np.ndarray, same: float, sudden: list[int], least: float = 0.0) -> None:
        self._varying, self._same, self._places, self._least = varying, same, np.array([0, *sudden]), least
        self.blocks: deque[Block] = deque(maxlen=WINDOWS[-1])
        self.clear()

    @property
    def suspected(self) -> bool:
        """Whether the last blocks speak of a number's step, which more have to confirm."""
        return self._said > 0

    def clear(self) -> None:
        """What was before is not to be compared with any more."""
        self.blocks.clear()
        self._count, self._said = 0, 0
        self._leans = deque([0.0], maxlen=SHORTEST)
        self._since, self._lasted = inf, 0      # blocks since a change of the load was found, and that it lasted before
        self._unsettled = False     # whether what was weighed since still counts

    def leave_out(self) -> None:
        """Blocks that have not been entered are not to be trusted, nor what they spoke of."""
        self._said = 0
        while self.blocks and self.blocks[-1].before is None:
            self.blocks.pop()

    def take(self, block: Block) -> None:
        """A block more."""
        self.blocks.append(block)
        self._count += 1    # of all since there is something to compare with
        block.loose = self._since < LEARNT
        self._since += 1

    def settle(self, lasted: int) -> None:
        """The load has changed for so many blocks, and may continue to."""
        self._since, self._lasted, self._unsettled = 0, min(lasted, LEARNT), True

    @property
    def lean(self) -> float:
        """By how much, kg, the masses of the last second may be others, as long as that is not certain."""
        return max(self._leans, key=abs)

    @property
    def settling(self) -> bool:
        """Whether the load has changed for as long as the time since, up to a second, and so may still."""
        return self._since < self._lasted

    def settled(self, known: Known) -> list[Block]:
        """The blocks since the load has settled, where their masses are others than those of the time in which it might
        still change: from then on only they count, once after each change. By the errors ``known`` so far."""
        last = max((k for k, block in enumerate(self.blocks) if block.loose), default=-1)
        since = list(self.blocks)[last + 1:]
        if not self._unsettled or last < 0 or len(since) < SHORTEST or any(block.rare for block in self.blocks):
            return []
        sums = np.array([sum(block.sums for block in part) for part in (list(self.blocks)[:last + 1], since)])
        seconds = np.array([sum(block.seconds for block in part) for part in (list(self.blocks)[:last + 1], since)])
        (before, after), noise = sums[:, 1:] / sums[:, :1], self.noise(sums, seconds)
        slopes = (after - before)[1:]
        off = float(after[0] - before[0] - slopes @ known.x[1:])
        deviation = sqrt(float(noise.sum() + slopes @ known.P[1:, 1:] @ slopes))
        another = abs(off) > (SIGNIFICANT if len(since) < LEARNT else LEANS) * deviation    # at last, if it may be
        self._leans.extend([0.0] * SHORTEST if another else [off * (abs(off) > LEANS * deviation)])
        self._unsettled = not another and len(since) < LEARNT
        return since if another else []

    def noise(self, sums: np.ndarray, seconds: np.ndarray) -> np.ndarray:
        """Variances (n,), kg2, of the masses of blocks by their sums (n, 2 + k) and s of samples (n,)."""
        varied = sums[:, 2:] * self._varying
        return 1 / sums[:, 0] + np.einsum('ij,ij->i', varied, varied) / sums[:, 0] ** 2 * self._same / seconds

    def noise_of(self, block: Block) -> float:
        """The same of one block."""
        varied, information = block.sums[2:] * self._varying, float(block.sums[0])
        square = float(np.einsum('i,i->', varied, varied))
        return 1 / information + square / (information * information) * self._same / block.seconds

    def found(self, now: Known) -> Step | None:
        """The step, if there is one; ``now``: what is known before the first block that has not been entered. Of the
        windows, those that have moved on by a part are looked at."""
        entered = next((k for k, block in enumerate(self.blocks) if block.before is None), len(self.blocks))
        starts = {min(len(self.blocks) - window, entered) for window in WINDOWS
                  if len(self.blocks) >= window and not self._count % max(1, window // PARTS)}
        for start in sorted(starts, reverse=True):
            blocks = list(self.blocks)[start:]
            if self._count - len(blocks) < LEARNT:
                break       # longer windows even more so
            known, place = blocks[0].before or now, None
            masses = self._masses(blocks, known, max(1, round(len(blocks) / PARTS)))
            if masses.may_step or start == max(starts):
                off, shapes, inverse = self._parts(masses, known)
                ramp = np.arange(1, len(off) + 1) / len(off)
                fit = _fit(off, np.column_stack((shapes, shapes[:, 0] * ramp)), inverse)
                place = self._place(*fit) if masses.may_step else None
                if start == max(starts):
                    self._leans.append(_lean(*fit))
            step = None if place is None else self._begun(blocks, known, place)
            if step is not None:
                self._said += 1
                return step if not step.place or self._said >= AGAIN else None
        self._said = 0
        return None

    def _masses(self, blocks: list[Block], known: Known, size: int) -> _Masses:
        """The masses of parts of ``size`` blocks."""
        sums, seconds = np.array([block.sums for block in blocks]), np.array([block.seconds for block in blocks])
        if size > 1:
            first = np.arange(0, len(blocks), size)
            sums, seconds = np.add.reduceat(sums, first), np.add.reduceat(seconds, first)
        rows = sums[:, 1:] / sums[:, :1]
        masses, rows[:, 0] = rows[:, 0].copy(), 1.0
        return _Masses(masses - rows @ known.x, rows, self.noise(sums, seconds))

    def _parts(self, masses: _Masses, known: Known) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """By how much masses are off (n,), their derivatives by what may take a step (n, places), and the inverse of
        their covariance (n, n)."""
        covariance = masses.rows @ known.P @ masses.rows.T
        covariance.flat[::len(covariance) + 1] += masses.noise
        return masses.off, masses.rows[:, self._places], np.linalg.inv(covariance)

    def _place(self, z: np.ndarray, size: np.ndarray, left: np.ndarray) -> int | None:
        """Which of the places has taken a step, the mass first; None: no one, or that is not clear yet. The last fit is
        that of a mass that changes through the whole window."""
        squares = np.where((np.abs(z) > SIGNIFICANT) & (left < CONSISTENT), z ** 2, 0.0)
        numbers, load = squares[1:-1], max(squares[0], squares[-1])
        best = numbers.max(initial=0.0)
        if load and load > best - LOAD:
            return 0
        if best > max(z[0] ** 2, z[-1] ** 2) + NUMBER:
            return int(np.argmin(np.where(numbers < best - ALIKE, np.inf, np.abs(size[1:-1])))) + 1
        return None

    def _begun(self, blocks: list[Block], known: Known, place: int) -> Step | None:
        """The step with the block at which it explains most, of a load that is taken or dropped over a while with how
        long that lasted; None of a load that is hardly another, and of a number, where the step is credible, or it is
        not clear yet whether the load has changed within the window."""
        off, rows, inverse = self._parts(self._masses(blocks, known, 1), known)
        count = len(blocks)
        shapes, begins, lasted = _changes(count)
        z, size, _ = _fit(off, shapes * rows[:, :1], inverse)
        best = int(np.argmax(z ** 2 - NUMBER * (lasted > 0)))
        load, mass = float(z[best]) ** 2, Step(count - int(begins[best]), 0, float(size[best]), int(lasted[best]))
        if not place:
            return mass if abs(mass.size) >= self._least else None
        steps = max(1, count - SHORTEST + 1)
        z, size, _ = _fit(off, shapes[:, :steps] * rows[:, place:place + 1], inverse)
        first = int(np.argmax(np.abs(z)))
        if load > max(z[first] ** 2, SIGNIFICANT ** 2):
            return mass if abs(mass.size) >= self._least else None
        if not WRONG < abs(size[first]) < ABSURD or z[first] ** 2 < NUMBER + load:
            return None
        return Step(count - first, int(self._places[place]), float(size[first]))


@cache
def _changes(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shapes (count, m) of a load that changes from 0 to 1 within so many blocks, the blocks (m,) at which each begins
    and those (m,) that it lasts: first steps, then ramps between two parts of the window; what has only begun to change
    could be any of them."""
    steps = np.arange(max(1, count - SHORTEST + 1))
    parts = np.arange(0, count + 1, max(1, round(count / PARTS)))
    begins, ends = (parts[k] for k in np.triu_indices(len(parts), 1))
    long = (ends - begins >= SHORTEST) & (count - begins >= 2 * SHORTEST)
    begins, ends = begins[long], ends[long]
    ramps = np.clip((np.arange(1, count + 1)[:, None] - begins) / (ends - begins), 0.0, 1.0)
    return (np.hstack((np.tri(count)[:, :len(steps)], ramps)), np.append(steps, begins),
            np.append(np.zeros(len(steps), int), np.minimum(ends, count - SHORTEST) - begins))


def _lean(z: np.ndarray, size: np.ndarray, left: np.ndarray) -> float:
    """By how much, kg, the last mass may be another by the first or the last fit of a window; 0 where neither change is
    likely."""
    return max((float(size[k]) for k in (0, -1) if abs(z[k]) > LEANS), key=abs, default=0.0)


def _fit(off: np.ndarray, shapes: np.ndarray, inverse: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each step that a column (n,) of ``shapes`` makes: its size over its standard deviation, its size, and the mean
    square of what it leaves over of ``off`` (n,), whose covariance has this ``inverse``."""
    weighted = inverse @ off
    information = np.maximum(np.einsum('ij,ij->j', shapes, inverse @ shapes), 1e-300)
    by = shapes.T @ weighted
    z = by / np.sqrt(information)
    return z, by / information, (off @ weighted - z ** 2) / max(len(off) - 1, 1)
