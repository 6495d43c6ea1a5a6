# SPDX-License-Identifier: Apache-2.0
"""Masses whose errors are partly their own and partly common to all that the machine weighs.

Own errors (noise) average out over many loads, errors of the machine's numbers do not: friction that is 20 % off makes
each load wrong in the same direction. So the sum of many masses is as uncertain as the squares of what is their own,
and the sums, with their signs, of what each common cause does to all of them (the law of propagation of uncertainty
with correlations, JCGM 100:2008, 5.2.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import hypot, isfinite, nan, sqrt

from ..payload.mass import NORMAL

ANY = ''        # a common cause of which nothing is known: it is taken to be the same as any other


@dataclass(frozen=True)
class UncertainMass:
    """``value``, kg; ``own``: standard deviation of errors that no other mass shares, kg; ``common``: by cause, what
    one standard deviation of it does to this mass, kg, with its sign."""

    value: float
    own: float = 0.0
    common: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def stddev(self) -> float:
        """Standard deviation of all errors together, kg. What is common without a name adds to the named ones."""
        named = sqrt(sum(kg * kg for cause, kg in self.common.items() if cause != ANY))
        return hypot(self.own, named + abs(self.common.get(ANY, 0.0)))

    @property
    def interval(self) -> tuple[float, float]:
        """Ends of the 95 % interval, kg."""
        return self.value - NORMAL * self.stddev, self.value + NORMAL * self.stddev

    @property
    def known(self) -> bool:
        """Whether there is a mass with an interval."""
        return isfinite(self.value) and isfinite(self.stddev)

    def __add__(self, other: UncertainMass) -> UncertainMass:
        return combined(((1.0, self), (1.0, other)))

    def __sub__(self, other: UncertainMass) -> UncertainMass:
        return combined(((1.0, self), (-1.0, other)))


NOTHING = UncertainMass(0.0)
UNKNOWN = UncertainMass(nan, nan)


def combined(parts: Iterable[tuple[float, UncertainMass]]) -> UncertainMass:
    """Sum of masses, each by its factor; each is another one: what is their own is independent."""
    value, variance = 0.0, 0.0
    common: dict[str, float] = {}
    for factor, mass in parts:
        value += factor * mass.value
        variance += (factor * mass.own) ** 2
        for cause, kg in mass.common.items():
            common[cause] = common.get(cause, 0.0) + factor * kg
    return UncertainMass(value, sqrt(variance), common)
