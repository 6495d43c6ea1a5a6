# SPDX-License-Identifier: Apache-2.0
"""Named parts of flat vectors: expressions, arrays and places say the same; those of the hydraulic observer's step."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from mbse_ros.estimators.filters.parts.layout import SYMMETRIC, Layout
from mbse_ros.estimators.hydraulic_observer import HydraulicObserver
from mbse_ros.estimators.observer_settings import ObserverSettings
from mbse_ros.machine import load_machine

MIXED = Layout({'x': (3, 1), 'P': (3, SYMMETRIC), 'none': (0, 1), 'T': (2, 3), 'near': (1, 1)})


@pytest.mark.parametrize('name', MIXED.parts)
def test_expressions_arrays_and_indices_of_a_part_agree(name: str) -> None:
    flat, symbol = np.random.default_rng(1).normal(size=MIXED.size), ca.SX.sym('flat', MIXED.size)
    part = MIXED.arrays(flat)[name]
    np.testing.assert_array_equal(flat[MIXED.indices[name]], part)
    written = np.array(ca.Function('part', [symbol], [MIXED.unpack(symbol)[name]])(flat)).reshape(part.shape)
    np.testing.assert_array_equal(written, part)
    assert len(flat[MIXED.span((name,))]) == len(np.unique(MIXED.indices[name]))


def test_all_parts_fill_the_vector() -> None:
    flat = np.arange(float(MIXED.size))
    np.testing.assert_array_equal(MIXED.flat(**MIXED.arrays(flat)), flat)
    assert MIXED.span(('P', 'none', 'T')) == slice(3, 15)


@pytest.mark.parametrize('weighing', ['apart', 'joint'])
def test_the_hydraulic_step_has_vectors_of_its_layouts_and_starts_from_their_parts(weighing: str) -> None:
    machine = load_machine('patu655_lift')
    observer = HydraulicObserver(machine, ObserverSettings(weighing=weighing), 'vm')
    observer.start(np.array([0.3, 5e6, 4e6]), np.array([2.0]))
    step, x, p = observer.step(1e-3)
    layout = observer.filter
    assert [layout.state.size, layout.given.size, layout.tuning.size] == [step.numel_in(i) for i in range(3)]
    assert [layout.state.size, layout.outputs.size] == [step.numel_out(i) for i in range(2)]
    parts, tuning = layout.state.arrays(x), layout.tuning.arrays(p)
    assert (parts['x'][:1], parts['commands'], parts['activity']) == (0.3, 2.0, 1.0)
    np.testing.assert_array_equal(parts['P'], np.diag(parts['P'].diagonal()))
    assert (parts['P'].diagonal() > 0).all() and not parts['T'].any() and not parts['trend'].any()
    assert parts['mass'].sum() == (weighing == 'joint')      # calm, without a trend
    assert (tuning['dt'], tuning['pressure_psd'], tuning['activity_range']) == (
        1e-3, observer.settings.pressure_psd, observer.settings.activity_range)
    np.testing.assert_array_equal(tuning['p'], machine.parameters.mean)
