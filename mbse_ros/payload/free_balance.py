# SPDX-License-Identifier: Apache-2.0
"""What the force balance of a machine that touches nothing says of the errors of its file: the zero of its forces.

While the load is known and the machine moves freely the force at its tool is 0. So each window of such a motion
measures what the errors of the uncertain numbers (offsets, gains, masses, friction, the base's inclination) do to the
balance of every cylinder: ``g = H e + noise``. The mass shows one combination of these equations alone. Recursive least
squares, whose prior is what the file states, with exponential forgetting.
"""

from __future__ import annotations

from math import exp

import numpy as np

from ..compiled.of_scipy import exceeded

MEMORY = 60.0       # s after which a window counts 1/e of what it did: machines drive, oil warms up
CREDIBLE = 1e-3     # chance of a residual as large, from which down it may be a force
VARYING = 0.1       # share of an error that is not constant: hysteresis, wear


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
