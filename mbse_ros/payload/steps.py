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

import numpy as np

WINDOWS = 5, 10, 20, 40, 80     # blocks, each window in parts of a tenth
PARTS = 10
LEARNT = 10                 # blocks before, without which there is nothing to compare with
SHORTEST = 3                # blocks that a change is ago at least
SIGNIFICANT = 4.5           # standard deviations of a step, from which it is one
CONSISTENT = 3.0            # mean square of what the step leaves over, in its variance: beyond it there is no step
LOAD = 4.0                  # loads change and sensors seldom do: it is the load, unless the squares of a number's
NUMBER = 9.0                # deviations are more by the first; and a number, where they are by the second
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
    known before the block was entered, None until then."""

    sums: np.ndarray
    seconds: float
    kept: float
    before: Known | None = None

    @property
    def weighs(self) -> bool:
        """Whether it says something of the mass."""
        return bool(self.seconds > 0.0 and self.sums[0] > 0.0 and np.isfinite(self.sums).all())


@dataclass(frozen=True)
class Step:
    """Since so many blocks the mass, place 0, or an error, places 1 to k, is another, by ``size``, in kg or in standard
    deviations of the error."""

    blocks: int
    place: int
    size: float


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
    ``sudden``: places of what may take a step besides the mass."""

    def __init__(self, varying: np.ndarray, same: float, sudden: list[int]) -> None:
        self._varying, self._same, self._places = varying, same, np.array([0, *sudden])
        self.blocks: deque[Block] = deque(maxlen=WINDOWS[-1])
        self._count, self._said = 0, 0

    @property
    def suspected(self) -> bool:
        """Whether the last blocks speak of a number's step, which more have to confirm."""
        return self._said > 0

    def clear(self) -> None:
        """What was before is not to be compared with any more."""
        self.blocks.clear()
        self._count, self._said = 0, 0

    def leave_out(self) -> None:
        """Blocks that have not been entered are not to be trusted, nor what they spoke of."""
        self._said = 0
        while self.blocks and self.blocks[-1].before is None:
            self.blocks.pop()

    def take(self, block: Block) -> None:
        """A block more."""
        self.blocks.append(block)
        self._count += 1    # of all since there is something to compare with

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
            known = blocks[0].before or now
            masses = self._masses(blocks, known, max(1, round(len(blocks) / PARTS)))
            place = self._place(*_fit(*self._parts(masses, known))) if masses.may_step else None
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
        """Which of the places has taken a step, the mass first; None: no one, or that is not clear yet."""
        squares = np.where((np.abs(z) > SIGNIFICANT) & (left < CONSISTENT), z ** 2, 0.0)
        best = squares[1:].max(initial=0.0)
        if squares[0] and squares[0] > best - LOAD:
            return 0
        if best > z[0] ** 2 + NUMBER:
            return int(np.argmin(np.where(squares < best - ALIKE, np.inf, np.abs(size))[1:])) + 1
        return None

    def _begun(self, blocks: list[Block], known: Known, place: int) -> Step | None:
        """The step with the block at which it explains most; None of a number, where the step is credible, or the load
        may have begun to change within the window."""
        off, rows, inverse = self._parts(self._masses(blocks, known, 1), known)
        begins = np.tri(len(blocks))[:, :max(1, len(blocks) - SHORTEST + 1)]
        z, size, _ = _fit(off, begins * rows[:, place:place + 1], inverse)
        first = int(np.argmax(np.abs(z)))
        if place:
            load = np.max(_fit(off, begins, inverse)[0] ** 2)
            if not WRONG < abs(size[first]) < ABSURD or z[first] ** 2 < NUMBER + load:
                return None
        return Step(len(blocks) - first, int(self._places[place]), float(size[first]))


def _fit(off: np.ndarray, shapes: np.ndarray, inverse: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each step that a column (n,) of ``shapes`` makes: its size over its standard deviation, its size, and the mean
    square of what it leaves over of ``off`` (n,), whose covariance has this ``inverse``."""
    weighted = inverse @ off
    information = np.maximum(np.einsum('ij,ij->j', shapes, inverse @ shapes), 1e-300)
    by = shapes.T @ weighted
    z = by / np.sqrt(information)
    return z, by / information, (off @ weighted - z ** 2) / max(len(off) - 1, 1)
