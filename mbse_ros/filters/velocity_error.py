# SPDX-License-Identifier: Apache-2.0
"""How far the velocities of the state are from what its own positions say.

A force, a flow or a zero that is not in the file draws the velocities along, always to the same side for a while; the
samples then draw the positions back. Over a time ``WINDOW`` the sum of these corrections is what the velocity was off:
``z(t) - z(t - T) - (integral of zd)``, whose true value is 0, over T. It needs no model. Where its square, less what
the positions are not known to, is above the variance of the velocity, that is what is stated, and it fades within
``FADES`` (covariance matching: R. K. Mehra, Approaches to adaptive filtering, IEEE Trans. Automatic Control 17, 1972).
The estimate itself stays as it is, and so does the mass that it weighs: which of force, flow and zero is wrong is
another question, see ``force_error``.
"""

from __future__ import annotations

from math import exp

import numpy as np

WINDOW = 0.2        # s over which corrections are averaged: of less, the noise of samples counts; of more, signs cancel
FADES = 1.0         # s: a model that was wrong a moment ago is still


class VelocityError:
    """Of a state whose first 2 g entries are positions and velocities of g independent coordinates."""

    def __init__(self, g: int) -> None:
        self._g, self._places = g, np.arange(g, 2 * g)
        self.reset()

    def reset(self) -> None:
        """What was corrected before belongs to another state."""
        self._rate, self._variance = np.zeros((2, self._g))
        self._lasts = 0.0

    def take(self, before: np.ndarray, states: np.ndarray, variance: np.ndarray, dt: float) -> None:
        """The ``states`` (n, nx) of steps ``dt``, s, that follow the one ``before`` (nx,); ``variance`` (nx,) of the
        last, without the errors of zeros and gains, which stay the same. All in SI."""
        g, n = self._g, len(states)
        seen = np.concatenate([before[None, :2 * g], states[:, :2 * g]])
        rates = (seen[1:, :g] - seen[:-1, :g]) / dt - 0.5 * (seen[1:, g:] + seen[:-1, g:])
        kept = exp(-dt / WINDOW)
        self._rate = kept ** n * self._rate + (1.0 - kept) * (kept ** np.arange(n - 1, -1, -1)) @ rates
        self._lasts += n * dt
        self._variance *= exp(-n * dt / FADES)
        if self._lasts >= WINDOW:       # before, the rest of what was not known at the start
            np.maximum(self._variance, self._rate ** 2 - variance[:g] / WINDOW ** 2, out=self._variance)

    def widen(self, covariance: np.ndarray) -> None:
        """Raise the variances of the velocities in a covariance (nx, nx), SI, to what was found."""
        stated = covariance[self._places, self._places]
        covariance[self._places, self._places] = np.maximum(stated, self._variance)
