# SPDX-License-Identifier: Apache-2.0
"""The hydraulic observer's filter: parts of its vectors, and what changes a state besides its steps."""

from __future__ import annotations

import numpy as np
import pytest

from mbse_ros.filters.hydraulic_observer import HydraulicObserver
from mbse_ros.filters.mass_information import LARGEST_ACTIVITY
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.machine import load_machine


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
    assert [float(parts[name][0]) for name in ('x', 'commands', 'activity')] == [0.3, 2.0, 1.0]
    np.testing.assert_array_equal(parts['P'], np.diag(parts['P'].diagonal()))
    assert (parts['P'].diagonal() > 0).all() and not parts['T'].any() and not parts['trend'].any()
    assert parts['mass'].sum() == (weighing == 'joint')      # calm, without a trend
    assert [float(tuning[name][0]) for name in ('dt', 'pressure_psd', 'activity_range')] == [
        1e-3, observer.settings.pressure_psd, observer.settings.activity_range]
    np.testing.assert_array_equal(tuning['p'], machine.parameters.mean)


@pytest.fixture(scope='module')
def weighed() -> HydraulicObserver:
    """After 0.1 s with samples every 10 ms."""
    observer = HydraulicObserver(load_machine('patu655_lift'), ObserverSettings(), 'vm')
    sample = np.array([0.3, 5e6, 4e6])
    observer.start(sample, np.array([2.0]))
    for _ in range(10):
        values = np.full((10, 3), np.nan)
        values[-1] = sample
        observer.process(values, np.full((10, 1), 2.0), np.full(3, 10), 1e-3)
    return observer


def test_coordinates_start_again_at_their_sample_and_the_rest_of_the_state_stays(weighed: HydraulicObserver) -> None:
    of, x = weighed.filter, weighed.running.state.copy()
    variance = np.array([1e-6, 1.0, 1.0])
    again = of.restarted(x, {0: 0.25}, variance, weighed.settings)
    np.testing.assert_array_equal(x, weighed.running.state)      # a state in, another one out
    before, after = of.state.arrays(x), of.state.arrays(again)
    names = weighed.names
    assert after['x'][0] == 0.25 and after['P'][0, 0] == pytest.approx(1e-6) and not after['P'][0, 1:].any()
    motion = [names.index(f'{kind}/lift') for kind in ('velocity', 'acceleration')]
    assert not after['x'][motion].any() and not after['T'][:, [0, *motion]].any()
    others = [i for i, name in enumerate(names) if name.startswith(('pressure/', 'payload/'))]
    np.testing.assert_array_equal(after['x'][others], before['x'][others])
    assert after['mass'][0] == LARGEST_ACTIVITY and before['mass'][0] < LARGEST_ACTIVITY
    q = weighed.machine.position(np.array([0.25]))
    np.testing.assert_allclose(after['near'], q[weighed.machine.system.dependent], atol=1e-12)


@pytest.mark.parametrize(('kept', 'better'), [(1.0, True), (1e-12, False)])
def test_a_load_is_kept_over_a_pause_where_it_is_known_better_than_any(weighed: HydraulicObserver, kept: float,
                                                                       better: bool) -> None:
    of, before, mass = weighed.filter, weighed.running.state, len(weighed.names) - 1
    fresh = of.start(np.where(np.arange(mass + 1) == mass, 111.0, 0.3), weighed.model.scale, np.zeros(1))
    parts, old = of.state.arrays(of.with_load(fresh, before, kept)), of.state.arrays(before)
    assert parts['x'][mass] == (old['x'][mass] if better else 111.0)
    # what frictions near standstill do to the mass counts as its variance
    held = old['T'][len(weighed.model.consider(weighed.machine)):, mass]
    assert parts['P'][mass, mass] == pytest.approx((old['P'][mass, mass] + held @ held) / kept if better else 1.0)
