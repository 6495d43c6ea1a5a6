# SPDX-License-Identifier: Apache-2.0
"""ALI3P in compiled steps: the same numbers however its steps are split, called or computed."""

from importlib import import_module

import numpy as np
import pytest
from motion_examples import model

from mbse_ros.compiled import have_compiler
from mbse_ros.dynamics.model import load_model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.errors import DivergenceError


def same(one, other, within):
    for what in ('q', 'qd', 'qdd', 'multipliers'):
        a, b = getattr(one, what), getattr(other, what)
        np.testing.assert_allclose(a, b, rtol=0, atol=within * max(1.0, np.abs(b).max(initial=0.0)), err_msg=what)
    assert one.evaluations == other.evaluations


@pytest.mark.parametrize('name', ('four_bar', 'excavator_arm', 'four_bar_adams_driven'))
def test_one_by_one_and_in_stretches_have_the_same_bits(name):
    """300 steps, more than one call; inputs from Python are zero."""
    mechanism = model(name)
    inputs = np.zeros(len(mechanism.inputs))
    same(simulate(mechanism, 0.3, 1e-3, 'ali3p', inputs=lambda t, q, qd: inputs),
         simulate(mechanism, 0.3, 1e-3, 'ali3p'), 0.0)


@pytest.mark.skipif(not have_compiler(), reason='no C compiler')
def test_the_virtual_machine_gives_the_same():
    same(simulate(load_model('four_bar', backend='vm'), 0.1, 1e-3, 'ali3p'), simulate(model('four_bar'), 0.1, 1e-3,
                                                                                     'ali3p'), 1e-11)


def test_functions_that_are_called_give_the_same(monkeypatch):
    """As where a mechanism is too large to be written out."""
    monkeypatch.setattr(import_module('mbse_ros.dynamics.integrators.ali3p'), 'WRITTEN_OUT', 0)
    same(simulate(load_model('slider_crank'), 0.1, 1e-3, 'ali3p'), simulate(model('slider_crank'), 0.1, 1e-3, 'ali3p'),
         1e-10)


def test_a_step_that_does_not_end_is_named_and_those_before_are_kept(monkeypatch):
    """Compiled and step by step: the same one."""
    with pytest.raises(DivergenceError, match='correction of q .* shorter step') as caught:
        simulate(model('four_bar'), 10, 0.2, 'ali3p')
    kept = simulate(model('four_bar'), 10, 0.2, 'ali3p', stop=False)
    assert 1 < caught.value.step < 50 and len(kept.t) == caught.value.step and kept.violation.max() < 1e-8
    assert str(kept.failure).startswith(str(caught.value)[:30])
    monkeypatch.setattr(import_module('mbse_ros.dynamics.integrators.ali3p'), 'LONGEST', 1)
    np.testing.assert_array_equal(simulate(model('four_bar'), 10, 0.2, 'ali3p', stop=False).q, kept.q)


def test_andrews_squeezer_by_ali3p():
    """Light bodies and short steps: the penalty is raised in each of them, and no elimination meets a zero pivot."""
    reference = simulate(model('andrews'), 0.005, 0.005, 'dop853').of('beta')[-1]
    found = simulate(model('andrews'), 0.005, 1e-5, 'ali3p')
    assert abs(found.of('beta')[-1] - reference) < 1e-4 and found.violation.max() < 1e-7
