# SPDX-License-Identifier: Apache-2.0
"""Errors of a linear filter, drawn from its own model, and their exact covariance. Used by ``joint_step.py``."""

from __future__ import annotations

import numpy as np


class Errors:
    """Errors (held + n + 1, runs): of frictions near standstill over their deviations, of the state in the model's
    units, and of the mass before a step's samples; and their covariance."""

    def __init__(self, P: np.ndarray, held: int, runs: int, rng: np.random.Generator) -> None:
        self.rng, self.held, self.n = rng, held, held + len(P)
        deviations = np.append(np.ones(held), np.sqrt(np.diag(P)))
        self.e = np.vstack([deviations[:, None] * rng.standard_normal((self.n, runs)), np.zeros((1, runs))])
        self.C = np.diag(np.append(np.ones(self.n), 0.0))
        self.C[held:-1, held:-1] = P

    def predict(self, F: np.ndarray, Q: np.ndarray, kept: float) -> None:
        """Move, with process noise, the frictions ``kept`` in part; keep the mass."""
        zero = np.zeros((self.held, len(F)))
        F = np.block([[kept * np.eye(self.held), zero], [zero.T, F]])
        Q = np.block([[(1 - kept ** 2) * np.eye(self.held), zero], [zero.T, Q]])
        values, vectors = np.linalg.eigh(Q)
        noise = vectors @ (np.sqrt(np.maximum(values, 0))[:, None] * self.rng.standard_normal(self.e[:-1].shape))
        whole = np.vstack([F, F[-1:]])
        self.e = whole @ self.e[:-1] + np.vstack([noise, noise[-1:]])
        self.C = whole @ self.C[:-1, :-1] @ whole.T + np.pad(Q, (0, 1), 'edge')

    def correct(self, H: np.ndarray, gain: np.ndarray, variance: float) -> None:
        """By a row ``H`` (held + n,)."""
        seen = H @ self.e[:-1] + np.sqrt(variance) * self.rng.standard_normal(self.e.shape[1])
        self.e[:-1] -= np.outer(gain, seen)
        J = np.eye(self.n + 1)
        J[:-1, :-1] -= np.outer(gain, H)
        self.C = J @ self.C @ J.T
        self.C[:-1, :-1] += variance * np.outer(gain, gain)

    def hold(self) -> None:
        """The mass as before the samples."""
        self.e[-2], self.C[-2] = self.e[-1], self.C[-1]
        self.C[:, -2] = self.C[:, -1]
