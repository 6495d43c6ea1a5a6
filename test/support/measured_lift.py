# SPDX-License-Identifier: Apache-2.0
"""The measured lift as samples of the machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest


def measured_samples(folder: Path) -> list[tuple[str, int, float]]:
    """The measured lift as samples: piston position from the pin-to-pin length."""
    file = folder / 'patu655' / 'lift_measured_100hz.csv'
    if not file.is_file():
        pytest.skip('no measured lift: ../shared/data/patu655 is not there')
    table = np.genfromtxt(file, delimiter=',', names=True)
    rows = zip(table['t'], table['s1_mm'] * 1e-3 - 0.820, table['p1_pa'], table['p2_pa'])
    names = ('position/lift', 'pressure/lift_piston', 'pressure/lift_rod')
    return [(name, round(t * 1e9), float(v)) for t, *values in rows for name, v in zip(names, values)]
