# SPDX-License-Identifier: Apache-2.0
"""Which sensors see which independent coordinates at a pose, by the derivatives of their equations."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ...compiled import Kernel
from ...estimators.filters.analysis.observability import ACCELERATION, POSITION, VELOCITY
from ...estimators.filters.parts.problem import Problem

PLACES = 'encoder', 'inclinometer', 'distance', 'position'      # kinds whose samples are functions of the pose
RATES = 'rate', 'velocity', 'gyro'                              # of pose and speed
BLIND = 1e-3        # share of a row, or of a direction, below which it is not there
NEW = 0.3           # share of a row that no other sensor has: then this one alone sees something


class ObservedCoordinates:
    """Of one problem: ``places`` and ``rates`` (s,), whether a channel is of such a kind."""

    def __init__(self, problem: Problem) -> None:
        self.problem, sensors = problem, problem.model.description.sensors
        kinds = [sensors[channel.partition('.')[0]].kind for channel in problem.channels]
        self.places, self.rates = [kind in PLACES for kind in kinds], [kind in RATES for kind in kinds]
        self._kernel: Kernel | None = None

    def rows(self, q: np.ndarray, zd: np.ndarray) -> np.ndarray:
        """Derivatives (s, 3g) by positions, speeds and accelerations of the independent coordinates, in units of what
        is usually known of each and of the sensor's standard deviation."""
        of, g = self.problem, self.problem.g
        parts = self._evaluated(q, zd)[1:]
        scaled = [part * unit for part, unit in zip(parts, (POSITION, VELOCITY, ACCELERATION))]
        if not all(np.isfinite(part).all() for part in scaled):
            return np.zeros((len(of.channels), 3 * g))
        rows = np.hstack(scaled)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)

    def poses(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Samples (s,) of the pose, and their derivatives (s, g) by the independent coordinates."""
        h, slope, *_ = self._evaluated(q, np.zeros(self.problem.g))
        return h, slope

    def _evaluated(self, q: np.ndarray, zd: np.ndarray) -> list[np.ndarray]:
        of, g = self.problem, self.problem.g
        if self._kernel is None:        # seldom called: to compile it would take longer
            self._kernel = Kernel(of.sensors, 'vm')
        found = self._kernel(q, zd, np.zeros(g), np.zeros(of.system.u.numel()), [0.0], np.asarray(of.model.parameters))
        return [np.reshape(part, (len(of.channels), -1)) if k else np.ravel(part) for k, part in enumerate(found)]

    def alone(self, rows: np.ndarray, place: int, others: Collection[int]) -> bool:
        """Whether a channel sees something that the others do not: who knows a position over time knows its speed and
        acceleration, too."""
        g, row = self.problem.g, rows[place]
        known = [shifted for k in others if k != place for shifted in (
            rows[k], np.concatenate([np.zeros(g), rows[k][:2 * g]]), np.concatenate([np.zeros(2 * g), rows[k][:g]]))]
        if not np.any(row) or not known:
            return bool(np.any(row))
        basis = np.array(known)
        return bool(np.linalg.norm(row - row @ np.linalg.pinv(basis, rcond=BLIND) @ basis) > NEW)

    def coordinates(self, rows: np.ndarray, place: int) -> list[int]:
        """Places, among the independent ones, of the coordinates that a channel sees."""
        share = np.abs(rows[place]).reshape(3, -1).max(axis=0)
        return [k for k, value in enumerate(share.tolist()) if value > BLIND * max(share.max(), 1e-300)]

    def shown(self, q: np.ndarray) -> np.ndarray:
        """Of which independent coordinates (g,) sensors of places and of rates, all together, show the speed."""
        g, rows = self.problem.g, self.rows(q, np.zeros(self.problem.g))
        basis = [row[:g] for row, place in zip(rows, self.places) if place]
        basis += [row[g:2 * g] for row, rate in zip(rows, self.rates) if rate]
        if not basis:
            return np.zeros(g, dtype=bool)
        known = np.array(basis)
        return np.asarray(np.diag(np.linalg.pinv(known, rcond=BLIND) @ known) > 1.0 - NEW)
