# SPDX-License-Identifier: Apache-2.0
"""Friction of each actuator over its speed: what bags say, and the model of the file before and after their fit."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..filters.force_balance import without_sensor_errors
from ..filters.hydraulic_state import state_parts
from .balance import CalibrationBalance
from .fit import CalibrationProblem

NORMAL = 1.959964       # standard deviations of a 95 % band
GRID, ROOM = 401, 1.05  # instants of a curve, and its end by the fastest window that counts


@dataclass(frozen=True)
class FrictionFit:
    """Of one cylinder, N and m/s, or one drive, N m and rad/s. Of the windows (n,) of all bags ``speed`` and ``force``:
    that of the pressures, or the effort, minus inverse dynamics with the numbers found; ``counts``: it moved steadily,
    so that the fit took the window.

    The friction depends on the pressures, too; a curve is for one pair, ``pressures`` (pushes,), Pa or N m, the medians
    of the windows that count, and ``reduced`` (n,) is the force less what the model has between its pressures and them.
    Curves (m,) over ``grid``: ``fitted`` with its 95 % band from ``lower`` to ``upper``, by the covariance of the
    numbers; ``before``: with the numbers of the file.
    """

    speed: np.ndarray
    force: np.ndarray
    reduced: np.ndarray
    counts: np.ndarray
    pressures: np.ndarray
    grid: np.ndarray
    fitted: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    before: np.ndarray


def friction_fits(problem: CalibrationProblem, u: np.ndarray, covariance: np.ndarray) -> dict[str, FrictionFit]:
    """By actuator, with errors ``u`` and the ``covariance`` (k, k) of the numbers, SI (Pyrhönen et al., mass
    estimation, Fig. 6). Without cylinders that never counted, or whose friction no equation has alone."""
    balance, found = problem.balance, {}
    for k, concerned in enumerate(balance.found.concerns):
        if concerned.sum() == 1 and any(log.moments.counts[:, k].any() for log in problem.logs):
            place = int(np.argmax(concerned))
            found[balance.machine.actuators.names[place]] = _fit_of(problem, u, covariance, k, place)
    return found


def _fit_of(problem: CalibrationProblem, u: np.ndarray, covariance: np.ndarray, k: int, place: int) -> FrictionFit:
    """Of the cylinder at ``place``, by equation ``k``."""
    model, curve = _functions(problem.balance, k, place)
    numbers, columns = problem.numbers(u), []
    for log in (log for log in problem.logs if len(log.moments.X)):
        m = log.moments
        modelled, lever, pressures = map(np.asarray, model(m.near.T, m.X.T, numbers, problem.mass(log, u)))
        force = modelled[0] - problem.missing(log, u)[0][:, k] / lever[0]
        columns.append((m.speeds[:, place], force, force - modelled[0], m.counts[:, k], pressures.T))
    speed, force, missing, counts, pressures = (np.concatenate(column) for column in zip(*columns))

    def at(speeds: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Friction (m,) and its derivatives (m, numbers)."""
        friction, slopes = map(np.asarray, curve(speeds[None], usual, values))
        return friction[0], slopes.reshape(len(speeds), -1)

    usual = np.median(pressures[counts], axis=0)
    grid = ROOM * np.abs(speed[counts]).max() * np.linspace(-1, 1, GRID)
    fitted, slopes = at(grid, numbers)
    half = NORMAL * np.sqrt(np.einsum('mi,ij,mj->m', slopes, covariance, slopes))
    return FrictionFit(speed, force, missing + at(speed, numbers)[0], counts, usual, grid, fitted, fitted - half,
                       fitted + half, at(grid, problem.prior)[0])


def _functions(balance: CalibrationBalance, k: int, place: int) -> tuple[ca.Function, ca.Function]:
    """``(near, X, numbers, mass)`` -> friction of a cylinder, its lever in equation ``k``, pressures (pushes,), as
    they are without the sensors' errors; ``(speed, pressures, numbers)`` -> friction, derivatives by the numbers."""
    machine, b = balance.machine, balance.found
    p, numbers = state_parts(balance.names, without_sensor_errors(machine, balance.names, b.X, b.rate))['pushes'], \
        machine.parameters.symbol
    speed, pressures = ca.SX.sym('speed'), ca.SX.sym('pressures', p.numel())
    speeds = ca.SX.zeros(len(machine.actuators))
    speeds[place] = speed
    friction = machine.actuators.friction_forces(speeds, pressures)[place]
    here = ca.substitute([friction], [speed, pressures], [b.speeds[place], p])[0]
    return (ca.Function('mbse_friction', [b.near, balance.X, numbers, balance.mass], [here, b.levers[k, place], p]),
            ca.Function('mbse_friction_curve', [speed, pressures, numbers],
                        [friction, ca.densify(ca.jacobian(friction, numbers))]))
