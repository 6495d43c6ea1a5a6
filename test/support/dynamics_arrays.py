# SPDX-License-Identifier: Apache-2.0
"""Random constrained systems, and small mechanisms written out by hand, for the tests of the formulations."""

from __future__ import annotations

import numpy as np

from mbse_ros.dynamics.formulations.terms_arrays import Terms


def random_terms(seed: int, n: int = 10, m: int = 6, redundant: int = 0, massless: int = 0) -> Terms:
    """Well-posed system: masses over two decades, rows in units over four; the redundant rows are mixtures of the first
    ``m``, the first ``massless`` coordinates have no mass."""
    rng = np.random.default_rng(seed)
    J = np.linalg.qr(rng.normal(size=(n, n)))[0][:m] + 0.1 * rng.normal(size=(m, n))
    J[range(massless), range(massless)] += 3.0       # what has no mass is held firmly
    J = np.vstack([J, rng.uniform(0.5, 2.0, (redundant, m)) * rng.choice([-1, 1], (redundant, m)) @ J])
    J = J * 10 ** rng.uniform(-2, 2, (m + redundant, 1))
    root = rng.normal(size=(n, n)) / np.sqrt(n)
    mass = np.sqrt(10 ** rng.uniform(-1, 1, n))
    M = mass[:, None] * (root @ root.T + np.eye(n)) * mass
    Q = 10 * rng.normal(size=n)
    M[:massless], M[:, :massless], Q[:massless] = 0, 0, 0
    return Terms(M, Q, J, J @ rng.normal(size=n))


def whole_solution(terms: Terms) -> np.ndarray:
    """``[qdd; lam]`` (n + m,), the multipliers of least norm, by the pseudo-inverse of the scaled KKT matrix."""
    n, m = terms.n, terms.m
    size = np.linalg.norm(terms.J, axis=1)
    J = terms.J / size[:, None]
    K = np.block([[terms.M, J.T], [J, np.zeros((m, m))]])
    qdd = np.linalg.lstsq(K, np.concatenate([terms.Q, terms.c / size]), rcond=1e-12)[0][:n]
    lam = np.linalg.pinv(terms.J.T, rcond=1e-12) @ (terms.Q - terms.M @ qdd)
    return np.concatenate([qdd, lam])


def assert_multipliers(terms: Terms, actual: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    """Equal as forces of their rows, relative to the applied ones too: a multiplier may be zero."""
    size = np.linalg.norm(terms.J, axis=1)
    assert_same(size * actual, size * expected, tolerance, least=np.abs(terms.Q).max())


def assert_same(actual: np.ndarray, expected: np.ndarray, tolerance: float, least: float = 0.0) -> None:
    """Equal within a tolerance relative to the largest value expected, or to ``least``."""
    size = np.abs(expected).max(initial=least)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * size)


def slider_crank(angle: float, crank: float = 1.0, rod: float = 2.0) -> np.ndarray:
    """Constraint Jacobian (3, 4) of ``[x1, y1, x2, theta]``.

    Two lengths and the crank's cosine ``x1 = crank cos(theta)``, or its sine where the cosine does not give the angle.
    """
    x1, y1 = crank * np.cos(angle), crank * np.sin(angle)
    x2 = x1 + np.sqrt(rod ** 2 - y1 ** 2)
    steep = abs(np.sin(angle)) > 0.7
    last = [1, 0, 0, crank * np.sin(angle)] if steep else [0, 1, 0, -crank * np.cos(angle)]
    return np.array([[2 * x1, 2 * y1, 0, 0], [-2 * (x2 - x1), 2 * y1, 2 * (x2 - x1), 0], last])


PARALLELOGRAM = ('first', 'second', 'third', 'coupler', 'middle.x', 'middle.y')


def parallelogram(angle: float) -> np.ndarray:
    """Constraint Jacobian (6, 6) of three equal cranks on one straight coupler, coordinates x, y of their ends.

    Rows ``PARALLELOGRAM``: the cranks' lengths, the coupler's, and its second point in the middle of the others. One of
    the cranks is redundant; at angle 0 the mechanism may leave the parallel motion: rank 4.
    """
    p = np.array([np.cos(angle), np.sin(angle)])
    J = np.zeros((6, 6))
    for k in range(3):
        J[k, 2 * k:2 * k + 2] = 2 * p
    J[3, [0, 4]] = [-8, 8]                          # ends 4 apart: 2 (P3 - P1) = (8, 0)
    for k in range(2):
        J[4 + k, [k, 2 + k, 4 + k]] = [-0.5, 1, -0.5]
    return J
