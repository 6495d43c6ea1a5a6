# SPDX-License-Identifier: Apache-2.0
"""What sensors measure of a state over a window of time: information, in units of what is known before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

BLIND = 1e-6        # information, in units of the prior's, below which a direction is not seen at all


@dataclass(frozen=True)
class InformationWindow:
    """One window: information (l,) along ``directions`` (l, l, one a column, in units of the prior's standard
    deviations), smallest first; ``rank`` the number of directions that are seen; ``condition`` the ratio of the
    largest to the smallest standard deviation gained (infinite when one is blind)."""

    start: int
    information: np.ndarray
    directions: np.ndarray

    @property
    def rank(self) -> int:
        """Number of directions that the sensors see."""
        return int(np.sum(self.information > BLIND))

    @property
    def condition(self) -> float:
        """Square root of the ratio of the largest to the smallest information."""
        least = self.information[0]
        return float(np.sqrt(self.information[-1] / least)) if least > BLIND else float('inf')

    @property
    def blind(self) -> np.ndarray:
        """Directions (l, b) that are not seen."""
        return self.directions[:, self.information <= BLIND]

    @property
    def spread(self) -> np.ndarray:
        """Standard deviation left of the prior's along each direction (l,), at best: without process noise."""
        return 1.0 / np.sqrt(1.0 + self.information)


def observability(F: np.ndarray, H: np.ndarray, stddev: np.ndarray, prior: np.ndarray, window: int,
                  hop: int | None = None) -> list[InformationWindow]:
    """Windows of ``window`` samples along a motion, every ``hop`` (default: end to end).

    ``F`` (k, l, l) over the step after each sample, ``H`` (k, s, l), ``stddev`` (s,) of the sensors, ``prior`` (l,)
    standard deviations of the state. The information is the observability Gramian ``sum Phi' H' R^-1 H Phi`` of the
    state at the window's start, scaled by the prior: 1 means that the window adds as much as was known.
    """
    k, size = len(F), F.shape[1]
    window = min(window, k)
    return [_window(F, H / stddev[None, :, None], prior, start, window, size)
            for start in range(0, k - window + 1, hop or window)]


def _window(F: np.ndarray, H: np.ndarray, prior: np.ndarray, start: int, window: int, size: int) -> InformationWindow:
    """Information by the singular values of the stacked matrix: squaring would lose half the digits."""
    Phi, rows = np.diag(prior), []
    for i in range(start, start + window):
        rows.append(H[i] @ Phi)
        Phi = F[i] @ Phi
    A = np.vstack(rows)
    _, singular, Vt = np.linalg.svd(A, full_matrices=len(A) < size)     # all of V, and no more of U than need be
    information = np.zeros(size)
    information[:len(singular)] = singular ** 2
    return InformationWindow(start, information[::-1], Vt[::-1].T)
