# SPDX-License-Identifier: Apache-2.0
"""Solves by the block triangular form against NumPy, on random patterns."""

import casadi as ca
import numpy as np
import pytest

from mbse_ros.dynamics.formulations.matrix_r import BlockSolver


def random_matrix(seed: int) -> np.ndarray:
    """A matrix with irreducible blocks of one to three rows in a random order, regular by its diagonal."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, 4)
    block = np.repeat(np.arange(4), sizes)
    coupled = (block[:, None] > block[None, :]) & (rng.random((len(block), len(block))) < 0.3)
    A = rng.normal(size=coupled.shape) * ((block[:, None] == block[None, :]) | coupled)
    A += 3 * np.eye(len(block))
    return A[rng.permutation(len(block))][:, rng.permutation(len(block))]


@pytest.mark.parametrize('seed', range(12))
def test_solves_are_numpys(seed):
    A = random_matrix(seed)
    right = np.random.default_rng(seed).normal(size=(len(A), 2))
    symbol = ca.SX.sym('A', ca.sparsify(ca.DM(A)).sparsity())
    solver = BlockSolver.of(symbol)
    f = ca.Function('f', [symbol], [solver.solve(ca.SX(ca.DM(right))), solver.solve_transposed(ca.SX(ca.DM(right)))])
    straight, transposed = (out.full() for out in f(ca.DM(A)))
    np.testing.assert_allclose(straight, np.linalg.solve(A, right), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(transposed, np.linalg.solve(A.T, right), rtol=1e-9, atol=1e-9)
    assert max(len(rows) for rows in solver.rows) <= 3


def test_a_matrix_singular_by_structure_is_refused():
    with pytest.raises(ValueError, match='structure'):
        BlockSolver.of(ca.SX.sym('A', ca.sparsify(ca.DM([[1, 1], [0, 0]])).sparsity()))
