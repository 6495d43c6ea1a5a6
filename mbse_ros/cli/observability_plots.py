# SPDX-License-Identifier: Apache-2.0
"""Pictures of what sensors see along a motion."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..estimators.filters.sight import Sight
from ..estimators.observability import BLIND
from ..report.plots import Line, Plot, write_plots

STEP = 5e-3


def write_observability_plots(found: Sequence[Sight], window: float, folder: Path) -> None:
    """Information of each direction over the windows, and the condition, one column a transition model."""
    folder.mkdir(parents=True, exist_ok=True)
    write_plots([plot(sight, window) for sight in found], folder / 'observability.png')


def plot(sight: Sight, window: float) -> Plot:
    """Information of the best and the worst seen directions; what is not seen lies on the lower edge."""
    t = np.array([item.start * STEP + window / 2 for item in sight.windows])
    information = np.maximum([item.information for item in sight.windows], BLIND)
    lines = [Line(f'direction {k + 1}', t, information[:, k], 'o-') for k in range(len(sight.names))]
    return Plot(f"model '{sight.model}': information of {window:g} s, {sight.verdict}", 'time [s]',
                'in units of the prior', lines, y_scale='log', note=f'rank {sight.rank} of {len(sight.names)}')
