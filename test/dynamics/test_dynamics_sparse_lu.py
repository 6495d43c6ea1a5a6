# SPDX-License-Identifier: Apache-2.0
"""Sparse elimination without pivots: NumPy's solution, and no more entries than are needed."""

import casadi as ca
import numpy as np
import pytest

from mbse_ros.dynamics.integrators.ali3p import SparseLU


def example(n, density, seed):
    """Symmetric part positive definite, of a sparsity that is not symmetric."""
    draw = np.random.default_rng(seed)
    A = draw.normal(size=(n, n)) * (draw.random((n, n)) < density)
    return A + np.diag(np.abs(A).sum(0) / 2 + np.abs(A).sum(1) / 2 + draw.uniform(0.1, 1.0, n))


@pytest.mark.parametrize('kind', (ca.SX, ca.MX))
@pytest.mark.parametrize('n, density', ((1, 0.0), (2, 1.0), (9, 0.2), (25, 0.1), (25, 1.0)))
def test_it_is_the_solution(kind, n, density):
    A, right = example(n, density, n), np.linspace(-1.0, 2.0, n)
    lu = SparseLU(ca.sparsify(ca.DM((A != 0).astype(float))).sparsity())
    T, r = kind.sym('T', lu.factor.sparsity_in(0)), kind.sym('r', n)
    solve = ca.Function('solve', [T, r], [lu.solve(lu.factor(T), r)])
    np.testing.assert_allclose(solve(ca.DM(A), right).full().ravel(), np.linalg.solve(A, right), rtol=1e-12, atol=1e-14)


def test_an_arrow_fills_nothing():
    """The dense row and column go last, wherever they are."""
    n = 20
    A = 4.0 * np.eye(n)
    A[0, :] = A[:, 0] = 1.0
    A[0, 0] = 50.0
    lu = SparseLU(ca.sparsify(ca.DM(A)).sparsity())
    assert lu.factor.numel_out(0) == 3 * n - 2
