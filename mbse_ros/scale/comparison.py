# SPDX-License-Identifier: Apache-2.0
"""Loads against masses that are known from elsewhere: errors, intervals that hold, drift, repeatability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import hypot, isfinite, sqrt
from typing import Any

import numpy as np

from ..payload.mass import NORMAL
from .load import UncertainMass

FEWEST = 3              # masses, before a drift or a repeatability is stated
LIMIT = 2.8             # ISO 5725-6: two results differ by less than this times s_r in 95 % of cases
HOUR = 3.6e12           # ns
OWN, UNNAMED = 'noise, in each load another', 'common to all loads, of unknown cause'


@dataclass(frozen=True)
class KnownMass:
    """A mass, kg, and its standard deviation."""

    value: float
    stddev: float = 0.0


@dataclass(frozen=True)
class Compared:
    """What was ``weighed`` (``name``: a load or a truck) against what is ``known``, at ``stamp_ns``."""

    name: str
    stamp_ns: int
    weighed: UncertainMass
    known: KnownMass

    @property
    def error(self) -> float:
        """Weighed minus known, kg."""
        return self.weighed.value - self.known.value

    @property
    def half_width(self) -> float:
        """Of the 95 % interval of the error, kg: of both masses."""
        return NORMAL * hypot(self.weighed.stddev, self.known.stddev)

    @property
    def holds(self) -> bool:
        """Whether the interval holds the known mass."""
        return abs(self.error) <= self.half_width


@dataclass(frozen=True)
class Drift:
    """Errors as a line over time: at the first, kg, its ``slope``, kg/h, and the ends of its 95 % interval."""

    start: float
    slope: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Repeatability:
    """Of masses that are known to be equal: ``stddev``, s_r, kg, pooled over groups (ISO 5725-2, 7.4), of so many
    degrees of freedom; ``limit``: two weighings of the same load differ by less in 95 % of cases, kg."""

    stddev: float
    freedom: int

    @property
    def limit(self) -> float:
        """r = 2.8 s_r of ISO 5725-6."""
        return LIMIT * self.stddev


@dataclass(frozen=True)
class Comparison:
    """All of it; figures that too few masses do not give are None."""

    rows: tuple[Compared, ...]
    mean: float
    rms: float
    inside: float
    drift: Drift | None
    repeatability: Repeatability | None

    @property
    def facts(self) -> dict[str, str]:
        """The figures in words, by their names."""
        facts = {'Mean error': f'{self.mean:+.2f} kg', 'RMS error': f'{self.rms:.2f} kg', 'Intervals that hold':
                 f'{sum(row.holds for row in self.rows)} of {len(self.rows)}'}
        if self.drift is not None:
            lower, upper = self.drift.interval
            facts['Drift of the error'] = (f'{self.drift.slope:+.2g} kg/h, 95 % interval {lower:+.2g} to {upper:+.2g}'
                                           + (', not significant' if lower <= 0.0 <= upper else ''))
        if self.repeatability is not None:
            same = self.repeatability
            facts['Repeatability of equal loads'] = (f's_r = {same.stddev:.2f} kg, r = {same.limit:.2f} kg (ISO 5725), '
                                                     f'{same.freedom} degrees of freedom')
        return facts

    @property
    def values(self) -> dict[str, Any]:
        """The same for JSON, kg, kg/h."""
        return {'rows': [{'name': row.name, 'weighed': row.weighed.value, 'known': row.known.value, 'error': row.error,
                          'half_width': row.half_width, 'holds': row.holds} for row in self.rows],
                'mean_error': self.mean, 'rms_error': self.rms, 'inside': self.inside,
                'drift': None if self.drift is None else {'slope': self.drift.slope, 'interval': self.drift.interval},
                'repeatability': None if self.repeatability is None else {
                    'stddev': self.repeatability.stddev, 'limit': self.repeatability.limit,
                    'freedom': self.repeatability.freedom}}


def compare(rows: Sequence[Compared]) -> Comparison:
    """Figures of one row or more; kg."""
    errors = np.array([row.error for row in rows])
    return Comparison(tuple(rows), float(errors.mean()), sqrt(float(errors @ errors) / len(rows)),
                      sum(row.holds for row in rows) / len(rows), drift_of(rows), repeatability_of(rows))


def drift_of(rows: Sequence[Compared]) -> Drift | None:
    """Straight line through the errors by least squares, interval by Student's t; None for fewer than three, or where
    time does not increase from row to row."""
    t = np.array([row.stamp_ns - rows[0].stamp_ns for row in rows]) / HOUR
    if len(rows) < FEWEST or not (np.diff(t) > 0.0).all():
        return None
    from scipy.special import stdtrit
    errors, off = np.array([row.error for row in rows]), t - t.mean()
    slope = float(off @ errors / (off @ off))
    rest = errors - errors.mean() - slope * off
    width = float(stdtrit(len(rows) - 2, 0.975) * np.sqrt(rest @ rest / (len(rows) - 2) / (off @ off)))
    return Drift(float(errors.mean() - slope * t.mean()), slope, (slope - width, slope + width))


def repeatability_of(rows: Sequence[Compared]) -> Repeatability | None:
    """Pooled over groups of the same known mass; None below two degrees of freedom."""
    groups: dict[float, list[float]] = {}
    for row in rows:
        groups.setdefault(row.known.value, []).append(row.weighed.value)
    squares = sum(len(group) * float(np.var(group)) for group in groups.values())
    freedom = len(rows) - len(groups)
    return Repeatability(sqrt(squares / freedom), freedom) if freedom >= FEWEST - 1 else None


def largest_causes(mass: UncertainMass, count: int) -> list[tuple[str, float]]:
    """Causes of a mass's standard deviation, in words, and kg, from the largest on."""
    causes: Mapping[str, float] = {**{cause or UNNAMED: kg for cause, kg in mass.common.items()}, OWN: mass.own}
    found = [(cause, abs(kg)) for cause, kg in causes.items() if isfinite(kg) and kg]
    return sorted(found, key=lambda item: -item[1])[:count]
