# SPDX-License-Identifier: Apache-2.0
"""Equations of the force at the tool, with their derivatives, means of them over a window, and their zero.

A polynomial through the samples of each channel gives motion and pressures. A mean over the window with weights ``(1 -
t^2)^2`` is a sum over few instants NODES; so weighed, the acceleration of such a polynomial is the true one, whatever
the motion.

While the load is known and the machine moves freely the force at its tool is 0. So each window of such a motion
measures what the errors of the uncertain numbers (offsets, gains, masses, friction, the base's inclination) do to the
balance of every cylinder: ``g = H e + noise``. The mass shows one combination of these equations alone. Recursive least
squares, whose prior is what the file states, with exponential forgetting: ``FreeBalance``.
"""

from __future__ import annotations

from math import exp

import casadi as ca
import numpy as np
from numpy.polynomial.polynomial import polyder, polyval

from ..compiled.of_scipy import exceeded
from ..filters.force_balance import force_balance, without_sensor_errors
from ..filters.hydraulic_state import state_names
from ..filters.weighing import free_of_stops
from ..machine import Machine
from ..machine.equations import by_actuator
from ..machine.frames import turned

TERMS, LEVERS = 5, slice(1, 4)      # of each equation, and those that are levers
DEGREE = 6          # of the polynomial through the positions of a window
_K = np.arange(1, 5)
_COUPLED = np.sqrt(_K * (_K + 4) / ((2 * _K + 3) * (2 * _K + 5)))      # Golub, Welsch: Gauss for weights (1 - x^2)^2
ROUNDED = 1e-4      # of a standard deviation: keeps a covariance positive definite, and costs nothing
NODES, _VECTORS = np.linalg.eigh(np.diag(_COUPLED, 1) + np.diag(_COUPLED, -1))
SHARES = _VECTORS[0] ** 2       # weights of a mean over a window at the instants NODES, -1 to 1
CELLS = np.gradient(NODES) / np.sqrt(12)    # standard deviation of the instants that each of them stands for
MEMORY = 60.0       # s after which a window counts 1/e of what it did: machines drive, oil warms up
CREDIBLE = 1e-3     # chance of a residual as large, from which down it may be a force
VARYING = 0.1       # share of an error that is not constant: hysteresis, wear
KERNEL = 10 / 7     # of the density over the window: the variance of a mean with these weights


def force_equations(machine: Machine) -> ca.Function:
    """``(near, X, P, mass, parameters) -> (near, terms, by X, by parameters, by friction, areas, free)``.

    Dependent coordinates nearby, the state X (nx,), SI, as ``state_names`` has it, its covariance (nx, nx); terms
    (a, 5): residuals g, N or N m, the levers A (a, 3) of a force along the axes of the tool, and the derivative of g by
    the mass; the derivatives of all of them, column by column, by X (5 a, nx) and by all uncertain numbers (5 a, k);
    that of g by frictions near standstill, for their bounds (a, c), levers times areas (a, c), m2, and whether all
    cylinders of an equation are off their stops (a,).
    """
    names, payload, system = state_names(machine)[0], machine.payload_data, machine.system
    balance, p = force_balance(machine, names, True), machine.parameters.symbol
    moved = len(machine.coordinates)
    q = machine.closed(balance.near, without_sensor_errors(machine, names, balance.X)[:moved], 1)
    J = ca.jacobian(system.points[payload.contact], system.q) @ machine.reduced.R
    J = ca.vertcat(J, ca.SX.zeros(3 - J.shape[0], J.shape[1]))
    along = (turned(system.frames[payload.contact.partition('.')[0]].rotation).T @ J)[:, machine.actuated]
    A = ca.horzcat(*(by_actuator(machine, along[k, :].T)[0] for k in range(3)))[list(machine.weighing), :]
    friction = balance.levers @ ca.diag(balance.bounds * ca.sqrt(1 - balance.signs ** 2))
    P = ca.SX.sym('P', len(names), len(names))
    arguments = [balance.near, balance.X, balance.deviation, machine.payload, p]
    terms = ca.horzcat(balance.g, ca.substitute(A, system.q, q), ca.jacobian(balance.g, machine.payload))
    terms = ca.Function('terms', arguments, [ca.densify(item) for item in (
        terms, ca.jacobian(ca.vec(terms), balance.X), ca.jacobian(ca.vec(terms), p), friction,
        balance.levers @ ca.diag(machine.actuators.units / 1e6), free_of_stops(machine, balance))], {'cse': True})
    near = machine.closed(balance.near, balance.X[:moved])[system.dependent]
    close = ca.Function('close', [balance.near, balance.X, p], [near, ca.densify(balance.rates)], {'cse': True})
    arguments[2] = P
    near, rates = close(balance.near, balance.X, p)
    deviation = ca.sqrt(ca.sum2((rates @ P) * rates))
    return ca.Function('mbse_tool_force', arguments, [near, *terms(near, balance.X, deviation, machine.payload, p)],
                       {'cse': True})


def root(covariance: np.ndarray) -> np.ndarray:
    """Factor L (k, k) of a covariance L L' whose deviations are at most about 1, up to ROUNDED."""
    return np.linalg.cholesky(covariance + ROUNDED ** 2 * np.eye(len(covariance)))


def covariance_of(shares: np.ndarray, *errors: np.ndarray) -> np.ndarray:
    """Of means (a,) with ``shares`` (n, a, a) of equations whose ``errors`` (n, a, k) are by independent ones."""
    mean = (shares @ np.concatenate(errors, 2)).sum(axis=0)
    return np.asarray(mean @ mean.T)


def curve(t: np.ndarray, x: np.ndarray, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Values, slopes and second derivatives (n, 3, k) at NODES of the polynomials that fit ``x`` (m, k) at ``t`` (m,),
    -1 to 1, best, and factors F (n, 3, degree + 1) of their errors: F F' is the covariance for a variance 1 of each of
    x. ``rate``, 1/s: of t."""
    count = min(DEGREE, len(t) // 3) + 1
    Q, T = np.linalg.qr(np.vander(t, count, True))
    powers = np.stack([polyval(NODES, polyder(np.eye(count), k)).T * rate ** k for k in range(3)], 1)
    factors = np.linalg.solve(T.T, powers.reshape(-1, count).T).T.reshape(-1, 3, count)
    return factors @ (Q.T @ x), factors


class FreeBalance:
    """``errors`` of ``count`` independent numbers, in their standard deviations: mean (count,) and covariance (count,
    count); None before the first window."""

    def __init__(self, count: int) -> None:
        self._information, self._vector = np.zeros((count, count)), np.zeros(count)
        self.errors: tuple[np.ndarray, np.ndarray] | None = None

    def take(self, g: np.ndarray, H: np.ndarray, R: np.ndarray, seconds: float) -> bool:
        """Residuals g (a,) of a window without a force, their derivatives H (a, count), covariance R (a, a) of the
        rest; ``seconds`` since the last one. Whether they count: not where a force is likelier than such errors."""
        prior = np.eye(len(self._vector))
        mean, P = self.errors or (self._vector, prior)
        surprise, S = g - H @ mean, H @ P @ H.T + R
        if surprise @ np.linalg.solve(S, surprise) > exceeded(len(g), CREDIBLE):
            return False
        weighted, share = np.linalg.solve(R, H), exp(-seconds / MEMORY)
        self._information = share * self._information + H.T @ weighted
        self._vector = share * self._vector + g @ weighted
        P = np.linalg.inv(self._information + prior)
        self.errors = P @ self._vector, P + VARYING ** 2 * (prior - P)
        return True
