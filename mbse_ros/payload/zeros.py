# SPDX-License-Identifier: Apache-2.0
"""Which position sensor has another zero than the file says, where that explains masses of different poses that
contradict each other.

A wrong zero makes another mass of each pose. So do the other uncertain numbers, but a zero of which the file states
nothing is the one that is likely to be far off: it was not measured. A generalised likelihood ratio test (A. S.
Willsky and H. L. Jones, IEEE Trans. Automatic Control 21, 1976) with a hypothesis for each number: it alone is not
what the file says, but anything, all others are as stated. What that gains, the decrease of the sum of squares of the
generalised least squares of ``common_errors``, follows from the estimate with all as stated: no fit is done again.
"""

from __future__ import annotations

from math import degrees, sqrt
from typing import NamedTuple

import numpy as np

from ..description.coordinate_units import unit_of
from ..machine import Machine
from ..machine.channels import Channel
from .mass import NORMAL

SIGNIFICANT = 4.0       # standard deviations of a zero that is free, from which it is another: a chance of 6e-5
AGREES = 2.0            # ... up to which one that was found agrees with the file after all
SOONEST = 20            # blocks of masses from which on zeros are looked for: the first masses know little
MARGIN = 6.0            # twice the logarithm of how much more likely one cause has to be than another, 20 times
WIDE = 3.0              # times its size, with which a zero that was found is estimated from then on
DEGREES = degrees(1.0)
UNLEARNT = 1e-6         # of a variance: less has been taken from that of a number of which the masses say nothing


class Zero(NamedTuple):
    """Of the number at a ``place``: its ``size`` and ``stddev`` if nothing was known of it, in its standard
    deviations."""

    place: int
    size: float
    stddev: float

    def agrees(self, stated: float) -> bool:
        """Whether it is known as well as the file states it, and agrees with that, a variance of ``stated``."""
        return self.stddev ** 2 < stated and self.size ** 2 < AGREES ** 2 * (stated + self.stddev ** 2)


def position_zeros(machine: Machine) -> dict[int, Channel]:
    """Zeros of position sensors by their places among the consider parameters; none where the load hangs, whose swing
    makes masses contradict each other, too."""
    if machine.swings:
        return {}
    names = machine.parameters.consider_names
    keys = {f'sensors.{item.sensor.name}.bias': item for item in machine.all_channels
            if item.name.startswith('position/') and item.sensor.coordinate}
    return {k: keys[name] for k, name in enumerate(names) if name in keys}


def in_words(machine: Machine, channel: Channel, zero: Zero) -> str:
    """By how much more or less a channel reads than it should, with its 95 % interval."""
    factor, unit = (1e3, 'mm') if unit_of(machine.description, channel.sensor.coordinate) == 'm' else (DEGREES, 'deg')
    scale = channel.sensor.bias[0].stddev * factor
    much, room, more = abs(zero.size) * scale, NORMAL * zero.stddev * scale, zero.size < 0.0
    return (f'{channel.name} reads {much:.3g} {unit} too {"much" if more else "little"} (95 %: {much - room:.3g} to '
            f'{much + room:.3g} {unit})')


def gains(mean: np.ndarray, variance: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """By how much the sum of squares falls (k,), if one number alone may be anything: of their estimates (k,),
    variances and ``prior`` information (k,); twice the logarithm of how much more likely that makes the masses."""
    return mean ** 2 / np.maximum(1.0 / prior - variance, UNLEARNT / prior)


def free(mean: float, variance: float, prior: float) -> tuple[float, float]:
    """What a number and its standard deviation were without its ``prior`` information."""
    learnt = max(1.0 - prior * variance, UNLEARNT)
    return float(mean / learnt), sqrt(variance / learnt)


def wrong_zero(mean: np.ndarray, variance: np.ndarray, prior: np.ndarray, zeros: np.ndarray, far: float) -> Zero | None:
    """The zero, of those at the places ``zeros``, that alone explains the masses, see ``gains``; None where none does,
    or another number does so better. ``far``: standard deviations of the file by which it is off at least."""
    if not zeros.size:
        return None
    found = gains(mean, variance, prior)
    place = int(zeros[np.argmax(found[zeros])])
    if found[place] < max(SIGNIFICANT ** 2, float(found.max()) - MARGIN):
        return None
    size, stddev = free(mean[place], variance[place], prior[place])
    return Zero(place, size, stddev) if abs(size) > far else None
