# SPDX-License-Identifier: Apache-2.0
"""Friction over speed by a calibration: points and curves against the crane's paper in NumPy, the truth in the band."""

from dataclasses import replace

import numpy as np
import pytest
from calibration_support import both, crane, logs, numbers_of
from crane_by_hand import actuator_force, equations_of_motion
from crane_runs import crane_of, smooth

from mbse_ros.calibration.fit import CalibrationProblem
from mbse_ros.calibration.friction import NORMAL, friction_fits

SCALE = 'cylinders.lift.friction.scale'


def printed(crane, scale: float):
    """The paper's crane with that much friction."""
    return replace(crane, **{key: scale * getattr(crane, key) for key in ('Fc', 'Fs', 'viscous', 'C_p1', 'C_p2')})


def friction_of(crane, speeds, pressures):
    """Eqs. 51 to 54, N, at speeds (k,) and pressures (k, 2), MPa: what of the pressures' force does not arrive."""
    states = np.column_stack([0 * speeds, speeds, 0 * speeds, np.broadcast_to(pressures, (len(speeds), 2)), 0 * speeds])
    idle = replace(crane, Fc=0.0, Fs=0.0, viscous=0.0, C_p1=0.0, C_p2=0.0)
    return actuator_force(idle, states, smooth(crane)) - actuator_force(crane, states, smooth(crane))


@pytest.fixture(scope='module')
def file():
    return crane_of('patu655_lift')[0]


def test_points_are_the_pressures_force_minus_inverse_dynamics(file):
    """At the file's numbers (u = 0), each window of both logs; the empty and the loaded one."""
    c = crane()
    problem = CalibrationProblem(c.balance, logs())
    found = friction_fits(problem, np.zeros(problem.size), np.zeros((len(problem.prior),) * 2))['lift']
    wanted = []
    for log in problem.logs:
        X = log.moments.X
        z, zd, zdd, p = X[:, 0], X[:, 1], X[:, 2], 1e-6 * X[:, 3:5]
        M, Q = equations_of_motion(file, z, zd, np.full(len(z), log.load.mass))
        idle = replace(file, Fc=0.0, Fs=0.0, viscous=0.0, C_p1=0.0, C_p2=0.0)
        wanted.append(actuator_force(idle, np.column_stack([z, zd, zdd, p]), np.sign) - (M * zdd - Q))
    np.testing.assert_allclose(found.force, np.concatenate(wanted), rtol=1e-8, atol=1e-6)
    np.testing.assert_array_equal(found.counts, np.concatenate([log.moments.counts[:, 0] for log in problem.logs]))


def test_curves_are_the_printed_friction_and_the_truth_is_in_the_band(file):
    """Before: the file's; fitted: with the scale that was found, of which alone the band comes; true: 1.3."""
    fit, problem = both()
    numbers, covariance = numbers_of(fit, problem)
    k = crane().machine.parameters.names.index(SCALE)
    found = friction_fits(problem, fit.u, covariance)['lift']
    unit = friction_of(file, found.grid, 1e-6 * found.pressures)
    np.testing.assert_allclose(found.before, unit, rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(found.fitted, numbers[k] * unit, rtol=1e-9, atol=1e-6)
    half = NORMAL * np.sqrt(covariance[k, k]) * np.abs(unit)
    np.testing.assert_allclose([found.upper, found.lower], found.fitted + [half, -half], rtol=1e-9, atol=1e-6)
    true = friction_of(printed(file, 1.3), found.grid, 1e-6 * found.pressures)
    assert (found.lower <= true).all() and (true <= found.upper).all()
    far = np.abs(found.grid) > 2 * file.vs
    assert (np.abs(found.before - true)[far] > 2 * half[far]).all()


def test_points_scatter_about_the_curve_as_much_as_forces_are_missing(file):
    """At the common pressures an empty and a loaded lift are one curve, whose residuals are those of the fit."""
    fit, problem = both()
    found = friction_fits(problem, fit.u, numbers_of(fit, problem)[1])['lift']
    away = (found.reduced - np.interp(found.speed, found.grid, found.fitted))[found.counts]
    missing = np.concatenate([(problem.missing(log, fit.u)[0] / log.moments.levers)[log.moments.counts]
                              for log in problem.logs])
    np.testing.assert_allclose(np.abs(away), np.abs(missing), atol=0.01 * np.abs(found.fitted).max())
    raw = (found.force - np.interp(found.speed, found.grid, found.fitted))[found.counts]
    assert np.sqrt(np.mean(raw ** 2)) > 2 * np.sqrt(np.mean(away ** 2))


def test_cylinders_that_never_moved_steadily_have_no_friction():
    c = crane()
    still = [replace(log, moments=replace(log.moments, counts=np.zeros_like(log.moments.counts))) for log in logs()]
    problem = CalibrationProblem(c.balance, still)
    assert friction_fits(problem, np.zeros(problem.size), np.eye(len(problem.prior))) == {}
