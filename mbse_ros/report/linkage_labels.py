# SPDX-License-Identifier: Apache-2.0
"""Places for names in a drawing: beside what they name, off the lines and off each other."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from matplotlib.axes import Axes

from .png import INK, plain

_POINTS_PER_LETTER, _HEIGHT = 0.54, 1.25     # size of a text in units of its font size
_DIRECTIONS = np.radians([35, 145, -35, -145, 0, 180, 90, -90])
_CLEARANCE = 7.0                             # points between a text and what it names


@dataclass
class Labels:
    """Texts of one drawing; ``add`` collects them, ``draw`` finds their places when all lines are known."""

    ax: Axes
    size: float = 8.5
    _taken: list[np.ndarray] = field(default_factory=list)          # points (k, 2) in typographic points
    _wanted: list[tuple[str, np.ndarray, str, str]] = field(default_factory=list)

    def keep_off(self, *polylines: np.ndarray) -> None:
        """Lines (k, 2), m, that no text should cover."""
        for line in polylines:
            pixels = self._to_points(np.asarray(line, dtype=float))
            for a, b in zip(pixels[:-1], pixels[1:]):
                count = max(2, int(np.linalg.norm(b - a) / 4.0))
                self._taken.append(a + np.linspace(0.0, 1.0, count)[:, None] * (b - a))
            self._taken.append(pixels[-1:])

    def add(self, text: str, place: np.ndarray, color: str = INK, style: str = 'normal') -> None:
        """A name beside a place (2,), m."""
        if text:
            self._wanted.append((text, np.asarray(place, dtype=float), color, style))

    def draw(self) -> list:
        """Put all texts; the artists come back."""
        return [self._put(*wanted) for wanted in self._wanted]

    def _put(self, text: str, place: np.ndarray, color: str, style: str) -> object:
        half = 0.5 * self.size * np.array([_POINTS_PER_LETTER * len(text), _HEIGHT])
        center = self._to_points(place[None])[0]
        unit = np.column_stack([np.cos(_DIRECTIONS), np.sin(_DIRECTIONS)])
        offsets = np.concatenate([unit * (half + reach) for reach in (_CLEARANCE, 2 * _CLEARANCE)])
        taken = np.concatenate(self._taken) if self._taken else np.zeros((0, 2))
        cost = [self._cost(center + offset, half, taken) + 0.1 * k for k, offset in enumerate(offsets)]
        best = offsets[int(np.argmin(cost))]
        grid = np.stack(np.meshgrid(np.linspace(-1, 1, 9), (-1.0, 0.0, 1.0)), axis=-1).reshape(-1, 2)
        self._taken.append(center + best + grid * half)
        return self.ax.annotate(plain(text), place, best, textcoords='offset points', ha='center', va='center',
                                fontsize=self.size, color=color, style=style, zorder=9)

    def _cost(self, center: np.ndarray, half: np.ndarray, taken: np.ndarray) -> float:
        """Number of points under a text and its rim, and a high price for leaving the picture."""
        covered = np.all(np.abs(taken - center) < half + 1.5, axis=1).sum()
        box = self.ax.get_window_extent()
        scale = 72.0 / self.ax.figure.dpi
        low, high = np.array([box.x0, box.y0]) * scale, np.array([box.x1, box.y1]) * scale
        return float(covered) + 50.0 * bool(np.any(center - half < low) or np.any(center + half > high))

    def _to_points(self, places: np.ndarray) -> np.ndarray:
        return self.ax.transData.transform(places) * 72.0 / self.ax.figure.dpi
