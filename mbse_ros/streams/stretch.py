# SPDX-License-Identifier: Apache-2.0
"""Many segments that follow each other on one grid, as arrays: the work of a segment is done once for all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .records import Segment


@dataclass(frozen=True)
class Stretch:
    """Segments of which none misses a sample or begins after a restart.

    ``sequence`` of the first; ``bounds`` (n + 1,), ns: where each begins, and the last one ends; ``first`` (n + 1,):
    the same as rows of ``values`` (steps, channels) and ``command_values`` (steps, commands); ``repeats``
    (n, channels).
    """

    sequence: int
    step_ns: int
    bounds: np.ndarray
    first: np.ndarray
    channels: tuple[str, ...]
    values: np.ndarray
    repeats: np.ndarray
    commands: tuple[str, ...]
    command_values: np.ndarray

    def __len__(self) -> int:
        return len(self.repeats)

    def joined(self, first: int, stop: int) -> Segment:
        """Segments from ``first`` to before ``stop``, which have the same ``repeats``, as one."""
        rows = slice(int(self.first[first]), int(self.first[stop]))
        return Segment(self.sequence + stop - 1, int(self.bounds[first]), self.step_ns, False, self.channels,
                       self.values[rows], self.repeats[first], self.commands, self.command_values[rows], stop - first)

    def segments(self) -> list[Segment]:
        """One by one."""
        return [self.joined(k, k + 1) for k in range(len(self))]
