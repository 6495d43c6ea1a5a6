# SPDX-License-Identifier: Apache-2.0
"""How good a calibration is, as a colour: by the accuracy of a mass that is to be expected, and by motion that was left
out of the fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import SettingError
from .held_out import HeldOut, widening

GREEN, AMBER, RED = COLORS = 'green', 'amber', 'red'
LIMITS = 1.0, 3.0           # per cent of full scale, up to which a calibration is green, and amber
INSIDE = 0.9, 0.75          # share of forces left out within their 95 % intervals, from which it is green, and amber


@dataclass(frozen=True)
class Grade:
    """``color``; ``reasons`` why it is not green; ``half_width``, kg, of the 95 % interval of a mass to expect in the
    middle of the work area, with its ``share`` of full scale: what the file says, ``widened`` by as much as masses left
    out were farther off than stated; share ``inside`` of forces left out in their 95 % intervals. NaN where it is not
    known."""

    color: str
    reasons: tuple[str, ...]
    half_width: float
    share: float
    widened: float
    inside: float


def check_limits(limits: Sequence[float]) -> tuple[float, float]:
    """Green and amber, per cent; raises SettingError."""
    found = tuple(float(item) for item in limits)
    if len(found) != 2 or not 0.0 < found[0] <= found[1] <= 100.0:
        raise SettingError('limits', limits, 'two numbers of per cent of full scale, above 0 and up to 100, such as '
                           f'{LIMITS[0]:g} and {LIMITS[1]:g}: up to which it is green, and amber')
    return found[0], found[1]


def graded(trouble: str, blocks: Sequence[HeldOut], half_width: float, full_scale: float,
           limits: tuple[float, float] = LIMITS) -> Grade:
    """Of a calibration with a ``trouble``, '' for none; ``blocks`` that were left out; ``half_width``, kg, that its
    file states; ``full_scale``, kg; both NaN of a machine without a payload."""
    widened = widening(blocks)
    count = sum(item.count for item in blocks)
    inside = sum(item.inside * item.count for item in blocks) / count if count else math.nan
    half = widened * half_width
    share = half / full_scale if full_scale > 0.0 else math.nan
    found = [(RED, trouble)] if trouble else []
    if not blocks:
        found.append((AMBER, 'too little motion to leave a part of it out: nothing tests the numbers'))
    elif inside < INSIDE[0]:
        found.append((_at(inside < INSIDE[1]), f'{inside:.0%} of the forces left out are within their 95 % intervals, '
                      f'{INSIDE[0]:.0%} or more should be: the deviations are too small, or the machine has something '
                      'that its file does not have'))
    if widened > 1.0:
        found.append((AMBER, f'masses of motion left out are {widened:.1f} times as far off as stated: expect that of '
                      'new loads, too'))
    if math.isinf(half):
        found.append((RED, 'in most poses of the work area the mass does not show'))
    elif 100.0 * share > limits[0]:
        found.append((_at(100.0 * share > limits[1]), f'{100.0 * share:.1f} % of full scale, {limits[0]:g} % or less '
                      'is green'))
    worst = max((COLORS.index(color) for color, _ in found), default=0)
    return Grade(COLORS[worst], tuple(text for _, text in found), half, share, widened, inside)


def _at(bad: bool) -> str:
    return RED if bad else AMBER
