# SPDX-License-Identifier: Apache-2.0
"""Whether a force acts on the machine that its force balance does not know: contact with soil, a load that drops.

Then the balance pulls the motion away from what the sensors of the positions show, and their samples are refused one
after the other. As long as that lasts, and a little longer, the balance counts for nothing: the observer is that of the
motion alone.
"""

from __future__ import annotations

from math import exp

import numpy as np

STREAK = 3          # samples of a position that are refused one after the other
SHOCKS = 6.0        # recent ones
LATE = 0.2          # s
RECENT = 0.2        # recent shocks from which the next is no surprise
LASTS = 0.3         # s after the last sign of it
OPENED = 10.0       # times the uncertainty of speeds and accelerations at a start


class OutsideForce:
    """``shows`` (channels,): whether a channel shows the motion, not a pressure; ``steps`` for which the balance is
    not used."""

    def __init__(self, shows: np.ndarray) -> None:
        self.shows = shows
        self.reset()

    def reset(self) -> None:
        """No force."""
        self.steps, self._shocks = 0, 0.0
        self._streak = np.zeros(len(self.shows), dtype=int)

    @property
    def acts(self) -> bool:
        """Whether there is such a force."""
        return self.steps > 0

    def possible(self, refused: list[int]) -> bool:
        """Whether samples of these channels may be refused because of a force: not only pressures out of the blue."""
        return self._shocks > RECENT or any(self.shows[channel] for channel in refused)

    def calm(self, count: int, sampled: bool, dt: float) -> None:
        """``count`` steps of ``dt``, s, without surprise."""
        if not self._shocks:
            return      # nearly always: there has been none
        self.steps = max(0, self.steps - count)
        self._shocks *= exp(-count * dt / LATE)
        if sampled:
            self._streak[:] = 0

    def shock(self, there: np.ndarray, refused: list[int], dt: float) -> bool:
        """A sample interval with a shock, in which the channels ``there`` (channels,) had samples and some were
        ``refused``; whether the motion is to be found again from nothing."""
        self._shocks += 1.0
        left_out = np.isin(np.arange(len(there)), refused)
        self._streak[there] = np.where(left_out, self._streak + 1, 0)[there]
        lost = bool((self._streak[self.shows] >= STREAK).any())
        if lost or self._shocks >= SHOCKS:
            self.steps = max(1, round(LASTS / dt))
        if lost:
            self._streak[:] = 0
        return lost
