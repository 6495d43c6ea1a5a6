# SPDX-License-Identifier: Apache-2.0
"""Samples that are too rare for the motion of a machine, in words: which, how often they come, how often they should.

What a machine does between two samples no estimate sees (see ``filters.between_samples``). Where that matters
the masses count less; what they then seem to say of the load, or of the machine's file, is the rate's fault.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from math import exp, hypot, sqrt

import numpy as np

from ..filters.between_samples import RARE as FEW
from ..filters.mass_information import MassInformation
from ..payload.mass import NORMAL, Mass
from .faults import Fault, reason_of

SHARE = FEW ** -2   # of the information of such samples that counts where masses are compared: line errors are alike
LASTS_NS = 2_000_000_000    # for which masses may be as wrong after such samples
LOOK_BACK = 1.0             # s before a load is found to change, up to which its mass may hold some of the next, then
REMEMBERED_NS = 10_000_000_000      # for which that is so, and a mass that wanders is no alarm
MOSTLY = 0.7        # share of the last LASTS_NS with such samples, beyond which no mass counts
SHOWN = 0.02        # of the range of the payload's limits: the last second must show the mass to it, or to its interval


class Lately:
    """What was weighed within ``LOOK_BACK``: whether it shows the load as it is; ``span``, kg, of the payload's limits.

    A mass is taken to be constant until samples contradict it. Where they are rare they may say so little that a
    load is dropped unseen; and where most of them are, the state itself follows the motion too badly to weigh.
    """

    def __init__(self, span: float) -> None:
        self._span, self._sums = span, deque[tuple[int, np.ndarray]]()
        self._last_ns, self._rare = 0, 0.0

    def take(self, now_ns: int, found: MassInformation[np.ndarray], mass: Mass, rare: bool) -> None:
        """What a segment up to ``now_ns`` has ``found`` of the mass; ``rare``: by samples that are."""
        passed, self._last_ns = max(0, now_ns - self._last_ns), now_ns
        self._rare += (rare - self._rare) * (1.0 - exp(-passed / LASTS_NS))
        if mass.taken:
            self._sums.append((now_ns, np.add.reduce(np.column_stack([found.information, found.weighted]))))
        while self._sums and not 0 <= now_ns - self._sums[0][0] < 1e9 * LOOK_BACK:
            self._sums.popleft()

    def shows(self, mass: Mass) -> bool:
        """Whether it determines the mass, and agrees with it."""
        information, weighted = sum((sums for _, sums in self._sums), np.zeros(2)).tolist()
        if self._rare > MOSTLY or not information > max(mass.half_width, SHOWN * self._span) ** -2:
            return False
        return abs(weighted / information - mass.weighed) <= hypot(mass.half_width, NORMAL / sqrt(information))


def too_rare(rare: Sequence[tuple[int, float]], channels: Sequence[str], repeats: Sequence[float], step_ns: int) -> str:
    """Why a segment says little of the mass: places of its channels whose lines between samples are off by so many
    standard deviations, the worst first, '' for none; ``repeats`` (channels,): steps of ``step_ns`` from sample to
    sample."""
    if not rare:
        return ''
    place, off = rare[0]
    rate = 1e9 / (float(repeats[place]) * step_ns)
    return (f'{reason_of(Fault.RARE)}: {channels[place]} comes at {rate:.2g} Hz and needs about '
            f'{needed_rate(rate, off)} Hz')


def needed_rate(rate: float, off: float) -> str:
    """Rate, Hz, with which lines that are off by so many standard deviations at ``rate``, Hz, would be good enough."""
    return _round(rate * sqrt(off / FEW))


def _round(rate: float) -> str:
    """A rate upwards, to one of few numbers, so that few reasons differ."""
    steps = (5, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 1000)
    return str(next((step for step in steps if step >= rate), steps[-1]))


def too_slow(intervals: Mapping[str, int], longest: int) -> str:
    """That channels with these usual ``intervals``, ns, are not interpolated up to ``longest``, ns; '' for none."""
    if not intervals:
        return ''
    found = ', '.join(f'{name} every {interval * 1e-9:.2f} s ({1e9 / interval:.2g} Hz)'
                      for name, interval in intervals.items())
    return (f'too rare: {found}; no value is interpolated over more than interpolation.max_gap ({longest * 1e-9:g} s): '
            'send it more often, 20 Hz or more, or raise max_gap above its interval')
