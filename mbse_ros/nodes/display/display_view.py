# SPDX-License-Identifier: Apache-2.0
"""What the operator's page shows, as JSON: the machine from the side, the load chart, the channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import MbseError
from ...machine import Machine
from ...machine.hanging import down
from ...scale.scale_file import ScaleFile
from ...scale.whereabouts import radius_origin
from ...streams.records import StateEstimate
from ..inputs.measured_pose import MeasuredPosition


class SideView:
    """Estimated and measured machine, by part points (k, 2) in m: distance from the axis of the radii, and height."""

    def __init__(self, machine: Machine, origin: tuple[float, float, float] | None) -> None:
        self._machine, self._measured = machine, MeasuredPosition(machine)
        self._origin = radius_origin(machine, origin)
        self._down = np.pad(down(machine.description), (0, 3 - len(down(machine.description))))
        self.forget()

    def forget(self) -> None:
        """Begin again."""
        self._solved: dict[str, np.ndarray] = {}

    def of(self, state: StateEstimate) -> dict[str, dict[str, list[list[float]]]]:
        """By ``estimated`` and ``measured`` the parts of a state; what is not known, or cannot be, is left out."""
        places = {'estimated': state.mean[-1, :len(self._machine.coordinates)], 'measured': self._measured.of(state)}
        found = {kind: self._parts(kind, z) for kind, z in places.items() if z is not None and np.isfinite(z).all()}
        return {kind: parts for kind, parts in found.items() if parts}

    def _parts(self, kind: str, z: np.ndarray) -> dict[str, list[list[float]]]:
        try:
            q = self._solved[kind] = self._machine.position(z, self._solved.get(kind))
            return self._flat(self._machine.outline_at(q))
        except MbseError:
            self._solved.pop(kind, None)
            return {}

    def _flat(self, lines: dict[str, np.ndarray]) -> dict[str, list[list[float]]]:
        """Seen from the side of the plane through the axis and the load."""
        tip = lines.get('payload', next(iter(lines.values())))[-1] - self._origin
        out = tip + self._down * -(tip @ self._down)
        length = float(np.linalg.norm(out))
        out = out / length if length > 1e-6 else np.eye(3)[0]
        return {name: np.column_stack([(points - self._origin) @ out, -points @ self._down]).round(3).tolist()
                for name, points in lines.items()}


def machine_values(machine: Machine, file: ScaleFile) -> dict[str, Any]:
    """What does not change: name, attachments, load chart."""
    chart = None if file.chart is None else {'radii': file.chart.radii, 'limits': file.chart.limits}
    return {'kind': 'machine', 'name': machine.name, 'attachments': sorted(file.attachments), 'chart': chart}


def channel_values(state: StateEstimate) -> list[list[str | float]]:
    """Per measured channel its name, value, innovation and the innovation's standard deviation, SI."""
    return [list(row) for row in zip(state.channels, state.measured.tolist(), state.innovation.tolist(),
                                     state.innovation_stddev.tolist())]
