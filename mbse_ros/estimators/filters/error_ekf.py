# SPDX-License-Identifier: Apache-2.0
"""Error-state filters errorEKF, errorEKF_EJ and errorEKF_FE (Naya et al., review, sections 7.1 to 7.3).

The model runs by itself and the filter corrects it; as the error is zero before each correction, the mean that is kept
is the model's own state. ``biases``: channels or sensors whose bias is estimated too.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from ...errors import SettingError
from .ekf import EkfVariant, actuator_places, bias_places, ekf, exact_jacobian, simple
from .parts.model_step import ModelRates
from .parts.problem import Problem
from .parts.step import Filter
from .parts.update import block_matrix

HELD = ('force', 'acceleration')


def error_ekf(problem: Problem, motion: str = 'trapezoid', biases: Sequence[str] = ()) -> Filter:
    """errorEKF: simple transition of the covariance, no derivative of the accelerations."""
    return ekf('errorEKF', problem,
               EkfVariant(motion, simple, accelerations=False, biases=bias_places(problem, biases)))


def error_ekf_ej(problem: Problem, motion: str = 'trapezoid', biases: Sequence[str] = ()) -> Filter:
    """errorEKF_EJ: with the exact Jacobian of the accelerations."""
    return ekf('errorEKF_EJ', problem, EkfVariant(motion, with_jacobian, biases=bias_places(problem, biases)))


def error_ekf_fe(problem: Problem, motion: str = 'trapezoid', actuators: Sequence[str] = (),
                 biases: Sequence[str] = (), held: str = 'force') -> Filter:
    """errorEKF_FE: with the acceleration error as a state, kept as a force on the model.

    ``actuators``: inputs that alone may be in error; the force is one of each, N or N m, and so are the accelerations'
    error and its noise. ``held``: what stays over a step in the covariance: the 'force', as it does in the mean, or the
    'acceleration' that it makes, the identity of Naya et al., review. Raises SettingError.
    """
    if held not in HELD or held != 'force' and actuators:
        raise SettingError('held', held, 'force, or acceleration without actuators')
    return ekf('errorEKF_FE', problem,
               EkfVariant(motion, with_force, True, actuators=actuator_places(problem, actuators),
                          biases=bias_places(problem, biases), held=held))


def with_jacobian(before: ModelRates, _: ca.SX, dt: ca.SX) -> ca.SX:
    """``[[I + a dt^2/2, I dt + b dt^2/2], [a dt, I + b dt]]``."""
    return block_matrix(type(before.A), exact_jacobian(before.a, before.b, dt), before.zd.numel())


def with_force(before: ModelRates, _: ca.SX, dt: ca.SX) -> ca.SX:
    """``[[I + a dt^2/2, I dt + b dt^2/2, I dt^2/2], [a dt, I + b dt, I dt], [0, 0, I]]``."""
    (top, middle), eye = exact_jacobian(before.a, before.b, dt), type(before.A).eye(before.zd.numel())
    rows = [[*top, eye * (dt ** 2 / 2)], [*middle, eye * dt], [0.0, 0.0, 1.0]]
    return block_matrix(type(before.A), rows, before.zd.numel())
