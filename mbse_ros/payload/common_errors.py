# SPDX-License-Identifier: Apache-2.0
"""What masses weighed in many poses say of the errors that they have in common.

The uncertain numbers of a machine (offsets, gains, masses, the base's inclination) are the same in every pose, but what
they do to the mass is not: a base that is not level makes the boom's mass too large and the arm's too small. So masses
that should be equal tell of them. This is the generalised least squares estimate of the mass, all samples weighted by
their whole covariance (A. C. Aitken, On least squares and linear combination of observations, Proc. R. Soc. Edinburgh
55, 1935), as recursive least squares of the mass and of the numbers' errors, whose prior is what the file states.
Older samples are forgotten, all in the same proportion: were the errors to change of themselves, a pose that is held
for long would seem to tell of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import exp

import numpy as np

from ..compiled.of_scipy import exceeded
from .steps import WRONG, Block, Known, Steps
from .zeros import MARGIN, SOONEST, WIDE, Zero, free, gains, wrong_zero

BLOCK = 0.1         # s of samples that are taken as one
DELAY = 1.0         # s until a block counts: what turns out to be a load that changes, or a fault, is left out
MEMORY = 60.0       # s of samples after which a sample counts 1/e of what it did: machines drive, oil warms up
MOST = 0.5          # share of what counts still of the mass, down to which a small change corrects what was solved
FADES = 1.0         # s of samples after which that is done
VARYING = 0.1       # share of such an error that is not constant: no number tells all of its kind (hysteresis, wear)
STEADY = 0.02       # the same of a length or a mass
SAME = 2.0          # s for which this share stays the same
CHANGED = 2.0       # of the logarithm of what counts still of the mass: the load changes, and is not known meanwhile
FADED = 0.1         # of the mean square of the surprises: share of the last one
CREDIBLE = 1e-5     # chance of errors as large as those found, from which down something else is wrong
LEAST = 1e-3        # sum of the variances that masses have reduced so far, from which on the errors are judged
SAFE = 0.99         # of the mean of that sum: below it nothing is judged; the rest is for rounding
SURPRISED = 3.0     # mean square of the surprises, in their variance, from which the errors are found again
DOUBTED = 3.0       # times the stated deviations, with which they are found then, until what is found is credible
TICK = 1e-6         # s: rounding of times
NOTHING = 1e-12     # share of what is known of the mass that counts when the load is another
SUDDEN = 'sensors.', 'base.'       # numbers whose errors may take a step: machines drive, sensors break
EARLIER = round(DELAY / BLOCK)      # blocks before a load was found to change that say nothing of the errors: it may
                    # have begun then
OPENED = 3.0        # times the size of such a step, for which the number's deviation is taken then
LEARNING = 30       # blocks after a start in which that is not asked: what surprises then is an error that is large;
                    # and for which it is reported that the errors are found again


class CommonErrors:
    """Errors of the uncertain numbers ``names``, in their standard deviations; ``unknown``, kg: deviation of a mass of
    which nothing is known; ``least``, kg, by which two loads differ; ``zeros``: places (k,) of the zeros of position
    sensors."""

    def __init__(self, names: list[str], unknown: float, least: float = 0.0, zeros: Sequence[int] = ()) -> None:
        self._unknown, self._names = unknown ** 2, list(names)
        self._varying = np.array([STEADY if name.startswith('bodies.') else VARYING for name in names])
        self._prior = np.diag(np.append(1 / self._unknown, np.ones(len(names))))
        self._L, self._h = np.zeros_like(self._prior), np.zeros(1 + len(names))     # information of the samples
        self._outer = np.empty_like(self._prior)
        self._belief = 1.0      # of the prior's information, in that of the file
        self._x, self._P = np.zeros(1 + len(names)), np.linalg.inv(self._prior)
        self._surprise, self._blocks, self._opened = 1.0, 0, False
        self._incredible = ''
        sudden = [1 + k for k, name in enumerate(names) if name.startswith(SUDDEN)]
        self._masses = Steps(self._varying, SAME, sudden, least)
        self._broken: set[int] = set()      # places of errors that have taken a step
        self._zeros = np.array(zeros, dtype=int)
        self._off: set[int] = set()     # of these, the ones that are wrong
        self._waiting: deque[tuple[float, Block]] = deque()     # since when one is due
        self._now, self._fading = 0.0, 0.0
        self._begin()

    def _begin(self) -> None:
        """A block without samples."""
        self._sums, self._count, self._steps, self._kept = np.zeros(1 + len(self._x)), 0, 0, 0.0
        self._rare = False

    @property
    def mean(self) -> np.ndarray:
        """Errors (k,)."""
        return self._x[1:]

    @property
    def covariance(self) -> np.ndarray:
        """Of the errors (k, k)."""
        return self._P[1:, 1:]

    @property
    def stated(self) -> np.ndarray:
        """Information (k,) of each without any mass: 1, less of one that was found to be far off."""
        return self._prior.diagonal()[1:]

    @property
    def lean(self) -> float:
        """By how much, kg, the mass of the last second may be another, as long as that is not certain."""
        return self._masses.lean

    @property
    def settling(self) -> bool:
        """Whether a load that has just changed may still be changing."""
        return self._masses.settling

    @property
    def incredible(self) -> str:
        """The number that is farthest off, where errors as large as those found have almost no chance; '': they can be
        as found."""
        return self._incredible

    @property
    def suspects(self) -> tuple[str, ...]:
        """Numbers that explain such errors about equally well, if they alone may be as wrong as one likes: sensors
        first, then the most likely."""
        if not self._incredible or self.broken:
            return (self._incredible,) if self._incredible else ()
        gain = gains(self.mean, self.covariance.diagonal(), self._prior.diagonal()[1:])
        close = np.flatnonzero(gain >= gain.max() - MARGIN).tolist()
        return tuple(self._names[k] for k in sorted(close, key=lambda k: (
            not self._names[k].startswith('sensors.'), -gain[k])))

    @property
    def broken(self) -> bool:
        """Whether that number has taken a step: what was found then holds, with a wide deviation of that number."""
        return any(self._names[k - 1] == self._incredible for k in self._broken)

    @property
    def surprised(self) -> bool:
        """Whether masses have just contradicted what was found, so that it is found again."""
        return self._opened and self._blocks < LEARNING

    def _judge(self) -> None:
        """What was found has the covariance that the masses took away: the sum of its squares is about chi-squared
        (F. E. Satterthwaite, An approximate distribution of estimates of variance components, Biometrics Bulletin 2,
        1946)."""
        self._incredible = ''
        self._zeros_again()
        own = np.setdiff1d(np.arange(len(self._names)), [*self._off])       # of which the file's deviations hold
        mean, P = self.mean[own], self.covariance[np.ix_(own, own)]
        if not self._broken and mean @ mean <= SAFE * (1.0 - self._belief * P.diagonal()).sum():
            return      # no quantile so far out is below the mean
        learnt = np.eye(len(mean)) - P * self._belief
        first, second = float(np.trace(learnt)), float(np.sum(learnt * learnt))
        worst = max(self._broken, key=lambda k: abs(self._x[k]), default=0)
        if worst and abs(self._x[worst]) > WRONG:
            self._incredible = self._names[worst - 1]
            return
        well = [k for k in self._broken if self._P[k, k] < 1.0]
        if well:
            self._prior[well, well] = self._belief
            self._broken.difference_update(well)
            self._solve()
        mean = self.mean[own]
        if first > LEAST and mean @ mean > second / first * exceeded(first ** 2 / second, CREDIBLE):
            self._incredible = self._names[own[int(np.argmax(np.abs(mean)))]]

    @property
    def wrong_zeros(self) -> tuple[Zero, ...]:
        """Zeros that are not as the file states them, as they are known now."""
        return tuple(Zero(k, *free(self._x[1 + k], self._P[1 + k, 1 + k], self._prior[1 + k, 1 + k]))
                     for k in sorted(self._off))

    def _zeros_again(self) -> None:
        """Which zeros are wrong: these are estimated with a wide deviation from then on. One that is known, and agrees
        with the file after all, is not."""
        if not self._zeros.size:
            return
        prior, P = self._prior.diagonal()[1:].copy(), self.covariance.diagonal()
        changed = {zero.place for zero in self.wrong_zeros if zero.agrees(1 / self._belief)}
        for k in changed:
            self._off.remove(k)
            self._prior[1 + k, 1 + k] = self._belief
        if self._blocks >= SOONEST and not changed:
            left = np.setdiff1d(self._zeros, [*self._off, *(k - 1 for k in self._broken)])
            zero = wrong_zero(self.mean, P, prior, left, WRONG)
            if zero is None:
                return
            self._off.add(zero.place)
            self._prior[1 + zero.place, 1 + zero.place] = (WIDE * zero.size) ** -2
            self._surprise = 1.0
            self._masses.clear()
            changed.add(zero.place)
        if changed:
            self._solve()

    def take(self, rows: np.ndarray, counts: np.ndarray, forgotten: np.ndarray, dt: float,
             rare: bool = False) -> np.ndarray | None:
        """Take steps ``dt``, s, of the log: rows (n, 2 + k) of their information on the mass, 1/kg2, of that times the
        mass and times its derivatives by the numbers, for a standard deviation of each, where the step ``counts`` (n,);
        ``forgotten`` (n,): logarithm of the share of older information that still counts; ``rare``: see ``Block``.

        Blocks are closed by the step, so that it does not matter how the steps come in segments. Where the load turns
        out to be another than some seconds before: sums (2 + k,) of the rows since, else None.
        """
        full, longest, first, since = max(1, round(BLOCK / dt)), max(1, round(DELAY / dt)), 0, None
        while first < len(rows):
            missing = max(0, full - self._count)        # 0 where steps have become longer
            part = slice(first, first + max(0, longest - self._steps) * (missing > 0))
            count = int(np.count_nonzero(counts[part]))
            if 0 < missing <= count:        # the block is full before
                part, count = slice(first, first + int(counts[part].nonzero()[0][missing - 1]) + 1), missing
            own, steps = rows[part], len(rows[part])
            own = np.add.reduce(own if count == steps else own[counts[part]])
            self._sums = self._sums + own
            since = None if since is None else since + own
            self._count += count
            self._rare |= rare
            self._kept += float(np.add.reduce(forgotten[part]))
            self._steps += steps
            self._now += steps * dt
            if self._count >= full or self._steps >= longest:
                if self._close(dt):
                    found = self._changed()
                    since = since if found is None else found
            first += steps
        self._enter_due()
        return since

    def _close(self, dt: float) -> bool:
        """The block is complete; where the load changes, the samples of the last second count nothing. Whether it says
        something of the mass."""
        self._enter_due()
        weighs = False
        if self._count or self._kept < 0.0:
            block = Block(self._sums, self._count * dt, self._kept, rare=self._rare)
            self._waiting.append((self._now + DELAY, block))
            if self._kept < -CHANGED:
                self._masses.clear()
            elif block.weighs:
                self._masses.take(block)
                weighs = True
        self._begin()
        if sum(block.kept for _, block in self._waiting) < -CHANGED:
            self.doubt()
            return False
        return weighs

    def _changed(self) -> np.ndarray | None:
        """Where the masses say that the load is another, or a sensor wrong, forget what was known of it; sums since."""
        step = self._masses.found(self._known())
        if step is None:
            blocks = self._masses.settled(self._known())
            return sum((block.sums for block in blocks), np.zeros_like(self._sums)) if blocks else None
        blocks = list(self._masses.blocks)
        begin = len(blocks) - step.blocks
        first = begin if step.place else max(0, begin - EARLIER)
        for block in blocks[first:begin]:
            block.seconds = 0.0
        if (known := blocks[first].before) is not None:
            self._L, self._h = known.L, known.h
        blocks = blocks[begin:]
        if blocks[0].before is None:
            while self._waiting[0][1] is not blocks[0]:
                self._enter(self._waiting.popleft()[1])
        self._masses.clear()
        self._surprise = 1.0
        if step.place:
            self._broken.add(step.place)
            self._prior[step.place, step.place] = min(self._prior[step.place, step.place], (OPENED * step.size) ** -2)
        self._forget(NOTHING, step.place)
        self._solve()
        for block in blocks[:step.lasted]:      # the mass was neither of the two
            block.seconds = 0.0
        blocks = blocks[step.lasted:]
        for block in blocks:
            if block.before is not None:
                self._enter(block)
            self._masses.take(block)
        if not step.place:
            self._masses.settle(step.lasted)
        self._judge()
        return sum((block.sums for block in blocks), np.zeros_like(self._sums))

    def _known(self) -> Known:
        return Known(self._x, self._P, self._L, self._h)

    def _enter_due(self) -> None:
        """Correct by the blocks that have waited."""
        while self._waiting and self._waiting[0][0] <= self._now + TICK:
            self._enter(self._waiting.popleft()[1])

    def forget(self, kept: float) -> None:
        """Without samples: logarithm of the share of what is known of the mass that still counts."""
        self._kept += kept

    def doubt(self) -> None:
        """Leave out the samples of the last second."""
        for _, block in self._waiting:
            block.seconds = 0.0
        self._masses.leave_out()
        self._sums, self._count = np.zeros_like(self._sums), 0

    def _enter(self, block: Block) -> None:
        """Correct by a block."""
        block.before = self._known()
        self._forget(NOTHING if block.loose else exp(max(block.kept, -700.0)))
        if not block.weighs:
            return
        sums = block.sums
        self._fading += block.seconds
        if self._fading > FADES - TICK:
            kept, self._fading = exp(-self._fading / MEMORY), 0.0
            self._L, self._h = kept * self._L, kept * self._h
            self._solve()
        row = sums[1:] / sums[0]
        mass, row[0], noise = float(row[0]), 1.0, self._masses.noise_of(block)
        column = self._P @ row
        variance, error = float(row @ column) + noise, mass - float(row @ self._x)
        self._surprise += FADED * (error * error / variance - self._surprise)
        self._blocks += 1
        if self._surprise > SURPRISED and self._blocks > LEARNING and not self._masses.suspected:
            self._open()
            return
        self._L, self._h = self._L + self._square(row, 1.0, noise), self._h + row * (mass / noise)
        self._P, self._x = self._P - self._square(column, 1.0, variance), self._x + column * (error / variance)
        self._judge()
        if self._blocks == LEARNING and not self._incredible:
            self._believe(1.0)
            self._judge()

    def _solve(self) -> None:
        """Errors and mass from the information."""
        self._P = np.linalg.inv(self._prior + self._L)
        self._x = self._P @ self._h

    def _forget(self, share: float, place: int = 0) -> None:
        """Of what is known of the mass, or of the error at a place, only a share still counts."""
        if share >= 1.0 or not self._L[place, place] > 0.0:
            return
        own, lost = self._L[:, place].copy(), (1 - share) / self._L[place, place]
        self._L, self._h = self._L - self._square(own, lost), self._h - lost * self._h[place] * own
        if share < MOST:
            self._solve()
            return
        column = self._P @ own      # the inverse of information that is changed by one row (Sherman and Morrison)
        self._P = self._P + self._square(column, lost / (1 - lost * float(own @ column)))
        self._x = self._P @ self._h

    def _square(self, column: np.ndarray, factor: float, divisor: float = 1.0) -> np.ndarray:
        """``column column' factor / divisor``, valid until the next call."""
        np.dot(column[:, None], column[None, :], out=self._outer)
        if factor != 1.0:
            self._outer *= factor
        if divisor != 1.0:
            self._outer /= divisor
        return self._outer

    def _open(self) -> None:
        """Find the errors and the mass again: what was found does not agree with what comes, or with the file."""
        self._L, self._h = np.zeros_like(self._L), np.zeros_like(self._h)
        self._masses.clear()
        self._broken.clear()
        self._believe(DOUBTED)
        self._surprise, self._blocks, self._opened, self._incredible = 1.0, 0, True, ''

    def _believe(self, factor: float) -> None:
        """Take the stated deviations times a factor."""
        self._belief = factor ** -2
        stated = np.setdiff1d(np.arange(len(self._names)), [*self._off]) + 1
        self._prior[stated, stated] = self._belief
        self._solve()
