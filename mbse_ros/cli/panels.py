# SPDX-License-Identifier: Apache-2.0
"""Pictures of a smoothed log: filter, smoother and truth."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..report.chart import COLORS, Band, Chart, Curve, Panel
from ..report.png import write_png
from ..report.series import Z95
from .logs import LogRequest

LOOKS = {'filter': COLORS['estimated'], 'smoother': COLORS['low_passed'], 'truth': COLORS['true']}
Interval = tuple[np.ndarray, np.ndarray]


def how(request: LogRequest) -> str:
    """Lag or whole log, in words."""
    return 'all at once' if request.lag is None else f'{request.lag:g} s of lag'


def interval(middle: np.ndarray, stddev: np.ndarray) -> Interval:
    """Ends (n,) of a 95 % interval."""
    return middle - Z95 * stddev, middle + Z95 * stddev


def panel(title: str, unit: str, t: np.ndarray, curves: Mapping[str, np.ndarray], intervals: Mapping[str, Interval],
          limits: tuple[float, float] | None = None) -> Panel:
    """Curves (n,) of filter, smoother and truth, by these names, and 95 % intervals of them."""
    return Panel(title, unit, tuple(Curve(name, t, y, LOOKS[name], 'dashes' if name == 'truth' else 'line')
                                    for name, y in curves.items()),
                 tuple(Band(f'{name}, 95 %', t, *ends, LOOKS[name]) for name, ends in intervals.items()), limits=limits)


def write_panels(panels: list[Panel], folder: Path) -> None:
    """The picture of a smoothed log."""
    t = panels[0].curves[0].t
    write_png(Chart('Filter and smoother', 'smoothed', tuple(panels)), (float(t[0]), float(t[-1])),
              folder / 'smoothed.png')
