# SPDX-License-Identifier: Apache-2.0
"""Many compiled steps in one call give what the march gives step by step, and stop where something is to be decided."""

from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
from motion_examples import model

from mbse_ros.compiled.compiler import have_compiler
from mbse_ros.dynamics.integrators import compiled_steps, exponential
from mbse_ros.dynamics.integrators.task import MotionRecord, MotionTask
from mbse_ros.dynamics.model import load_model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.errors import SingularConfigurationError

STEPS = compiled_steps.SHORT + 200
pytestmark = pytest.mark.skipif(not have_compiler(), reason='no C compiler: there are no compiled steps')


@pytest.fixture
def counted(monkeypatch):
    """Steps that ran compiled."""
    found, run = [], compiled_steps.CompiledSteps._run

    def counting(self, scan, point, k, stop):
        end = run(self, scan, point, k, stop)
        found.append(end - k)
        return end
    monkeypatch.setattr(compiled_steps.CompiledSteps, '_run', counting)
    return found


def step_by_step(monkeypatch, *arguments, **options):
    with monkeypatch.context() as patch:
        patch.setattr(compiled_steps.CompiledSteps, 'serve', staticmethod(lambda field: False))
        return simulate(*arguments, **options)


@pytest.mark.parametrize('name, scheme, options', (
    ('four_bar', 'exponential', {}), ('four_bar', 'exponential', {'order': 1}), ('four_bar', 'forward_euler', {}),
    ('four_bar', 'augmented_euler', {}), ('five_bar', 'exponential', {}), ('pendulum', 'exponential', {}),
    ('four_bar', 'trapezoid', {}), ('five_bar', 'trapezoid', {}), ('four_bar', 'rk4', {}), ('five_bar', 'rk4', {})))
def test_it_is_the_same_motion(name, scheme, options, counted, monkeypatch):
    """But for rounding: the order of sums differs, and some 1e-16 a step grow with the motion. The first one is so long
    that it is compiled unasked."""
    steps = STEPS if (name, scheme, options) == ('four_bar', 'exponential', {}) else 400
    monkeypatch.setattr(compiled_steps, 'SHORT', min(compiled_steps.SHORT, steps - 200))
    mechanism = model(name)
    fast = simulate(mechanism, steps * 1e-3, 1e-3, scheme, **options)
    assert sum(counted) >= steps - 5
    slow = step_by_step(monkeypatch, mechanism, steps * 1e-3, 1e-3, scheme, **options)
    for what in ('q', 'qd', 'qdd', 'multipliers'):
        one, other = getattr(fast, what), getattr(slow, what)
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9 * max(1.0, np.abs(other).max(initial=0.0)))
    assert fast.evaluations == slow.evaluations or scheme in ('trapezoid', 'rk4')     # they count a compiled step once
    assert fast.warnings == slow.warnings


@pytest.mark.parametrize('scheme', ('exponential', 'trapezoid', 'rk4'))
def test_functions_that_are_called_give_the_same(scheme, counted, monkeypatch):
    """As where a mechanism is too large to be written out."""
    monkeypatch.setattr(compiled_steps, 'WRITTEN_OUT', 0)
    monkeypatch.setattr(compiled_steps, 'SHORT', 1)
    mechanism = load_model('four_bar')
    fast = simulate(mechanism, 0.3, 1e-3, scheme)
    assert sum(counted) == 300
    slow = step_by_step(monkeypatch, mechanism, 0.3, 1e-3, scheme)
    np.testing.assert_allclose(fast.qdd, slow.qdd, rtol=0, atol=1e-11 * np.abs(slow.qdd).max())


def test_a_trapezoid_that_takes_longer_is_left_to_the_march(counted, monkeypatch):
    """Compiled steps whose Newton's method has no correction are never right to 1e-12."""
    monkeypatch.setattr(compiled_steps, 'SHORT', 1)
    monkeypatch.setattr(import_module('mbse_ros.dynamics.integrators.fixed_step'), 'CORRECTIONS', 0)
    mechanism = load_model('four_bar')
    fast = simulate(mechanism, 0.03, 1e-3, 'trapezoid')
    assert counted and not sum(counted)
    np.testing.assert_array_equal(fast.q, step_by_step(monkeypatch, mechanism, 0.03, 1e-3, 'trapezoid').q)


def test_a_short_motion_does_without(counted):
    """Unless it is asked for."""
    simulate(model('four_bar'), 0.1, 1e-3)
    assert not counted
    mechanism, times = model('four_bar'), 1e-3 * np.arange(101)
    task = MotionTask(mechanism, mechanism.start, times, 1e-3, 'exponential', compiled=True)
    exponential(task, MotionRecord.of(mechanism, times))
    assert sum(counted) == 100


def test_stages_that_are_not_solved_are_left_to_the_march(counted, monkeypatch):
    """Steps of 0.1 s: two Newton steps from the guess of a stage do not always end."""
    monkeypatch.setattr(compiled_steps, 'SHORT', 1)
    fast = simulate(model('four_bar'), 4.0, 0.1, 'rk4')
    assert 0 < sum(counted) < 40 and fast.violation.max() < 1e-11
    np.testing.assert_allclose(fast.q, step_by_step(monkeypatch, model('four_bar'), 4.0, 0.1, 'rk4').q, atol=1e-9)


def test_a_compiler_that_fails_leaves_it_to_the_march(counted, monkeypatch):
    monkeypatch.setattr(compiled_steps, 'SHORT', 1)
    monkeypatch.setattr(compiled_steps, 'Scan', lambda step, backend, in_lanes: SimpleNamespace(backend='vm'))
    mechanism = load_model('four_bar')      # nothing of it compiled yet
    fast = simulate(mechanism, 0.05, 1e-3)
    assert not counted
    np.testing.assert_array_equal(fast.q, step_by_step(monkeypatch, mechanism, 0.05, 1e-3).q)


def test_a_series_that_is_too_short_is_still_reported(counted, monkeypatch):
    """The warning has the time of the first such step."""
    monkeypatch.setattr(compiled_steps, 'SHORT', 1)
    spring, options = model('four_bar_spring'), {'order': 3, 'stop': False}
    fast = simulate(spring, 0.2, 2e-2, **options)
    assert fast.warnings and fast.warnings == step_by_step(monkeypatch, spring, 0.2, 2e-2, **options).warnings


@pytest.mark.parametrize('name, coordinate, dead', [
    ('crank_rocker', 'psi', 0.3882), ('slider_crank', 'stroke', 0.2581)])
@pytest.mark.parametrize('scheme', ('exponential', 'rk4'))
def test_a_dead_point_ends_it_where_it_ends_the_march(name, coordinate, dead, scheme, counted, monkeypatch):
    monkeypatch.setattr(compiled_steps, 'SHORT', 1)
    fast = simulate(model(name), 1.0, 2e-3, scheme, independent=[coordinate], stop=False)
    slow = step_by_step(monkeypatch, model(name), 1.0, 2e-3, scheme, independent=[coordinate], stop=False)
    assert fast.t[-1] == pytest.approx(dead, abs=0.03)
    assert sum(counted) > 50 and isinstance(fast.failure, SingularConfigurationError)
    assert str(fast.failure)[:12] == str(slow.failure)[:12] and fast.t[-1] == slow.t[-1]


def test_coordinates_are_still_chosen_along_the_motion(counted, monkeypatch):
    monkeypatch.setattr(compiled_steps, 'SHORT', 1)
    fast = simulate(model('points_only'), 0.8, 5e-4)
    reference = simulate(model('crank_rocker'), 0.8, 0.1, 'dop853')
    assert sum(counted) > 1500 and len(fast.choices) == 6
    assert fast.of('psi')[-1] == pytest.approx(reference.of('psi')[-1], abs=1e-4)       # 7.3e-5 step by step, too


def held(scale=1.0, squares=9.0, size=0.0, over=0.5, before=0.9, near=1.0, least=0.0):
    return bool(compiled_steps.holding_function()(scale, squares, size, over, before, near, least))


def test_what_a_step_must_hold():
    assert held() and held(before=0.0) and held(size=5e-13, scale=10.0) and held(least=0.99)
    for wrong in (dict(size=1e-9), dict(over=1.1), dict(squares=1e140), dict(near=0.6), dict(before=0.6),      # a dead
                  dict(near=1e-3, before=0.0, least=0.1), dict(near=0.0), dict(near=-1.0),      # point may be near
                  dict(least=1.01)):                                                         # another choice is better
        assert not held(**wrong), wrong
    for name in ('squares', 'size', 'over', 'before', 'near'):
        assert not held(**{name: np.nan}), name
