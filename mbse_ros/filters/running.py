# SPDX-License-Identifier: Apache-2.0
"""A filter at work: its compiled step, its tuning and its state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import numpy as np

from ..compiled import Scan
from .parts.layout import Layout
from .parts.step import DiscreteFilter

F = TypeVar('F', bound=DiscreteFilter)


class RunningFilter(Generic[F]):
    """A filter with its compiled step, flat ``state`` and flat ``tuning``, as the filter's layouts have them.

    ``keep``: parts of the state, one after the other in it, that each step gives besides its outputs, as ``kept`` has
    them; ``backend`` as of ``compiled.Kernel``. The state is (0,) before a start.
    """

    def __init__(self, filter_: F, backend: str = 'auto', keep: Sequence[str] = ()) -> None:
        self.filter, self.backend, self.kept = filter_, backend, Layout({name: filter_.state.parts[name]
                                                                         for name in keep})
        self.state, self.tuning = np.zeros(0), np.zeros(filter_.tuning.size)
        self._scan, self._size = Scan(filter_.step(keep), backend), filter_.outputs.size
        self._covariance = filter_.state.indices['P']

    @property
    def started(self) -> bool:
        """Whether there is a state to continue from."""
        return self.state.size > 0

    def outputs(self, y: np.ndarray) -> dict[str, np.ndarray]:
        """Parts of the outputs (y,) of one step, as views of them."""
        return self.filter.outputs.views(y)

    def covariance(self, state: np.ndarray) -> np.ndarray:
        """Covariance (l, l) of a flat state."""
        return state[self._covariance]

    def steps(self, state: np.ndarray, rows: np.ndarray, tuning: np.ndarray
              ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """From any state (x,) with rows (k, u) of what is given: the state after the last of them, outputs (k, y) and
        kept parts (k, z) after each. The filter's own state and tuning stay. Raises DivergenceError."""
        after, y = self._scan(state, rows, tuning)
        return after, y[:, :self._size], y[:, self._size:]

    def advance(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """On with rows (k, u): outputs (k, y) and kept parts (k, z) after each. Raises DivergenceError."""
        self.state, outputs, kept = self.steps(self.state, rows, self.tuning)
        return outputs, kept
