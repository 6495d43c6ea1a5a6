# SPDX-License-Identifier: Apache-2.0
"""Health of a running filter: NIS and whiteness of its innovations, and what its sensors see of the state."""

from __future__ import annotations

from collections import deque

import numpy as np

from ..compiled import Kernel
from ..filters.observability.information import observability
from ..filters.observer import LinkageObserver
from ..filters.parts.linearised import linearised_function
from ..filters.whiteness import FEWEST, InnovationWatch, ljung_box
from .faults import Health

SEEN = 50           # instants of the observability's window
SIMPLE = ('DEKF', 'errorEKF', 'ADEKF')      # whose covariance does not follow the derivatives of the accelerations


class HealthWatch(InnovationWatch):
    """Keeps the last instants of a filter, too, and computes its health when asked."""

    def __init__(self, observer: LinkageObserver, prior: tuple[float, float, float], options: str = '') -> None:
        """``prior``: standard deviations of positions, velocities and all else, the units of observability."""
        self._observer, g = observer, observer.problem.g
        kinds = [name.partition('/')[0] for name in observer.names]
        force = len(kinds) >= 3 * g and kinds[2 * g] in ('force', 'acceleration_error', 'acceleration')
        simple = observer.filter.name in SIMPLE and not options
        kind = 'force' if force else 'simple' if simple else 'exact'
        self._kernel = Kernel(linearised_function(observer.problem, kind), observer.model.backend)
        self._size = (3 if force else 2) * g
        self._prior = np.repeat(prior, g)[:self._size]
        self._warm_up()
        super().__init__()

    def _warm_up(self) -> None:
        """The first call of each part, which costs more than the others."""
        model, size, s = self._observer.model, self._size, len(self._observer.channels)
        self._kernel(model.start.q, model.start.qd[model.z], np.zeros(len(model.inputs)), [0.0], [self._observer.dt],
                     np.asarray(model.parameters))
        ljung_box(np.tile([1.0, -1.0], FEWEST))
        observability(np.tile(np.eye(size), (SEEN, 1, 1)), np.ones((SEEN, s, size)), np.ones(s), self._prior, SEEN)

    def reset(self) -> None:
        """Forget what was."""
        super().reset()
        self._states: deque[tuple[np.ndarray, ...]] = deque(maxlen=SEEN)

    def see(self, q: np.ndarray, qd: np.ndarray, row: np.ndarray) -> None:
        """State (n,) and row ``[o, u, t]`` of an instant."""
        self._states.append((q, qd[self._observer.problem.z], row))

    def assess(self, stddev: np.ndarray) -> Health:
        """Health over the last instants; ``stddev`` (s,) of the sensors."""
        mean, white = self.health
        return Health(mean, white, self._rank(stddev) if mean == mean else -1, self._size)

    def _rank(self, stddev: np.ndarray) -> int:
        if len(self._states) < SEEN:
            return -1
        s, of = len(self._observer.channels), self._observer
        k = len(of.model.inputs)
        found = [self._kernel(q, zd, row[s:s + k], row[s + k:], [of.dt], np.asarray(of.model.parameters))
                 for q, zd, row in self._states]
        F = np.array([item[0].reshape(self._size, self._size) for item in found])
        H = np.array([item[1].reshape(s, self._size) for item in found])
        there = np.array([np.isfinite(row[:s]) for _, _, row in self._states])
        if not np.isfinite(F).all() or not np.isfinite(H).all():
            return -1
        return observability(F, H * there[:, :, None], stddev, self._prior, SEEN)[0].rank
