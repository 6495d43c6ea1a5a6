# SPDX-License-Identifier: Apache-2.0
"""Named series over time with units, and as panels of a figure: those of one panel share its axes, 95 % intervals are
bands, the truth is dashed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...description.coordinate_units import unit_of
from ...description.model import MechanismDescription
from ...machine import Machine
from ...payload.mass import NORMAL
from ...report.chart import COLORS, PALETTE, Band, Curve, Panel

Known = Mapping[str, tuple[np.ndarray, np.ndarray]]
OTHERS = {'pressure': 'Pa', 'supply': 'Pa', 'spool': 'V', 'flow': 'm^3/s', 'inclination': 'rad', 'payload': 'kg',
          'moment': 'kg m', 'command': 'V', 'swing_rate': '1/s'}
RATES = {'position': '', 'velocity': '/s', 'acceleration': '/s^2'}


@dataclass(frozen=True)
class ResultSeries:
    """One column (k,) over time, SI; ``stddev`` (k,), or ``lower`` and ``upper`` ends (k,) of its 95 % interval, where
    they are known; ``panel``: what it is drawn with, default alone."""

    name: str
    unit: str
    values: np.ndarray
    stddev: np.ndarray | None = None
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None
    panel: str = ''

    @property
    def interval(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Ends (k,) of the 95 % interval."""
        if self.lower is not None and self.upper is not None:
            return self.lower, self.upper
        if self.stddev is None:
            return None
        return self.values - NORMAL * self.stddev, self.values + NORMAL * self.stddev


def panels_of(t: np.ndarray, series: Sequence[ResultSeries], truth: Known) -> list[Panel]:
    """Panels over times (k,), s; ``truth``: times and values by the name of a series."""
    groups: dict[str, list[ResultSeries]] = {}
    for item in series:
        groups.setdefault(item.panel or item.name, []).append(item)
    return [_panel(title, t, members, truth) for title, members in groups.items()]


def _panel(title: str, t: np.ndarray, members: Sequence[ResultSeries], truth: Known) -> Panel:
    alone = len(members) == 1
    curves, bands = [], []
    for k, item in enumerate(members):
        color = COLORS['estimated'] if alone else PALETTE[k % len(PALETTE)]
        samples = bool(np.isnan(item.values).any()) and item.interval is None
        shown = alone and (item.name in truth or item.interval is not None)
        curves.append(Curve('estimate' if shown else '' if alone else item.name, t, item.values, color,
                            'samples' if samples else 'line'))
        if item.interval is not None:
            bands.append(Band('95 %' if alone else '', t, *item.interval, color))
        if item.name in truth:
            curves.append(Curve('truth' if alone else '', *truth[item.name],
                                COLORS['true'] if alone else color, 'dashes'))
    unit = '' if members[0].unit == '1' else members[0].unit
    return Panel(title, unit, curves, tuple(bands), limits=_limits(members))


def _limits(members: Sequence[ResultSeries]) -> tuple[float, float] | None:
    """Limits of y that the widest intervals, such as those of a start, do not stretch; None: as all fits."""
    ends = [item.interval for item in members if item.interval is not None]
    values = np.concatenate([item.values[np.isfinite(item.values)] for item in members])
    if not ends or not values.size:
        return None
    low = min([values.min(), *(_quantile(lower, 0.05) for lower, _ in ends)])
    high = max([values.max(), *(_quantile(upper, 0.95) for _, upper in ends)])
    margin = 0.05 * (high - low) or 1.0
    return float(low - margin), float(high + margin)


def _quantile(values: np.ndarray, share: float) -> float:
    finite = values[np.isfinite(values)]
    return float(np.quantile(finite, share)) if finite.size else 0.0


def with_entries(found: Mapping[str, ResultSeries], names: Sequence[str], mean: np.ndarray, stddev: np.ndarray,
                 unit: Callable[[str], str]) -> dict[str, ResultSeries]:
    """Series by name, and after them the entries ``names`` (l,) of a state that have no series of that name, from its
    ``mean`` and ``stddev`` (k, l)."""
    return {**found, **{name: ResultSeries(name, unit(name), mean[:, k], stddev[:, k])
                        for k, name in enumerate(names) if name not in found}}


def entry_unit(machine: Machine, name: str) -> str:
    """Unit of an entry of the state such as 'position/lift', SI; '1' of one that has none."""
    kind, _, owner = name.partition('/')
    return rate_unit(machine.description, owner, kind) if kind in RATES else OTHERS.get(kind, '1')


def rate_unit(description: MechanismDescription, name: str, kind: str) -> str:
    """Unit of a coordinate or its rate, SI; '1' where it has none."""
    return (unit_of(description, name) or '1') + RATES[kind]
