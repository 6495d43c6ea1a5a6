# SPDX-License-Identifier: Apache-2.0
"""What the operator's page draws and lists: the machine from the side and its sizes, the channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...description.coordinate_units import measured_unit
from ...errors import MbseError
from ...machine import Machine
from ...machine.hanging import down
from ...payload.pointing import pointing
from ...report.solids import DENSITY, seen_from
from ...scale.reading import radius_origin
from ...scale.scale_file import ScaleFile
from ...streams.records import StateEstimate
from ..messages.outline import MeasuredPosition, machine_box


class SideView:
    """Solids of the estimated and the measured machine, by where their origins, x and y are, (parts, 3, 2), in m:
    distance from the axis of the radii, and height."""

    def __init__(self, machine: Machine, origin: tuple[float, float, float] | None) -> None:
        self._machine, self._measured = machine, MeasuredPosition(machine)
        self._origin = radius_origin(machine, origin)
        self._down = np.pad(down(machine.description), (0, 3 - len(down(machine.description))))
        self.forget()

    def forget(self) -> None:
        """Begin again."""
        self._solved: dict[str, np.ndarray] = {}

    def of(self, state: StateEstimate) -> dict[str, list[list[list[float]]]]:
        """By ``estimated`` and ``measured`` the places of a state; what is not known, or cannot be, is left out."""
        return self.at(state.mean[-1, :len(self._machine.coordinates)], self._measured.of(state))

    def at(self, estimated: np.ndarray | None, measured: np.ndarray | None) -> dict[str, list[list[list[float]]]]:
        """The same of coordinates (g,)."""
        places = {'estimated': estimated, 'measured': measured}
        found = {kind: self._places(kind, z) for kind, z in places.items() if z is not None and np.isfinite(z).all()}
        return {kind: parts for kind, parts in found.items() if parts}

    @property
    def values(self) -> dict[str, Any]:
        """What the drawing needs besides: height of the ``ground``, m; ``solids``, each with its ``polygon`` and that
        of its ``ghost``; least and largest radius of the load's ``ball``, m, and its ``density``, kg/m3."""
        solids = self._machine.solids
        ground = float((np.array([0.0, 0.0, machine_box(self._machine).ground]) - self._origin) @ -self._down)
        parts = [{'kind': one.kind, 'polygon': one.polygon.round(4).tolist(), 'ghost': ghost.polygon.round(4).tolist(),
                  'pins': one.pins.round(4).tolist(), 'pin': one.pin}
                 for one, ghost in zip(solids.parts, solids.ghost)]
        return {'ground': ground, 'solids': parts, 'density': DENSITY,
                'ball': [solids.load_radius(0.0), solids.load_radius(np.inf)]}

    def _places(self, kind: str, z: np.ndarray) -> list[list[list[float]]]:
        try:
            q = self._solved[kind] = self._machine.position(z, self._solved.get(kind))
        except MbseError:
            self._solved.pop(kind, None)
            return []
        lines, solids = self._machine.outline_at(q), self._machine.solids
        placed, view = solids.placed(lines), np.array([self._across(lines), -self._down])
        placed[:, 0] -= self._origin
        found = seen_from(placed, view)
        for k, one in enumerate(solids.parts):
            if one.kind == 'load':      # a ball is round from everywhere
                found[k, 1:] = np.eye(2)
            elif one.kind == 'stand':   # does not swing
                found[k, 1] = [1.0, 0.0]
        return found.round(4).tolist()

    def _across(self, lines: dict[str, np.ndarray]) -> np.ndarray:
        """Level, from the axis to the load (3,): the machine is seen from the side of the plane through both."""
        tip = lines.get('payload', next(iter(lines.values())))[-1] - self._origin
        out = tip + self._down * -(tip @ self._down)
        length = float(np.linalg.norm(out))
        return out / length if length > 1e-6 else np.eye(3)[0]


def machine_values(machine: Machine, file: ScaleFile, view: SideView) -> dict[str, Any]:
    """What does not change: name, attachments, load chart, the ``largest`` load, kg, and what is drawn besides."""
    payload = machine.description.payload
    chart = None if file.chart is None else {'radii': file.chart.radii, 'limits': file.chart.limits}
    return {'kind': 'machine', 'name': machine.name, 'attachments': sorted(file.attachments), 'chart': chart,
            'largest': 0.0 if payload is None else machine.payload_data.limits[1], **view.values}


def force_values(message: Any, machine: Machine) -> dict[str, Any]:
    """Of a ToolForce: the point that is touched, size and direction with their deviations, or the component that is
    known best, or the reason why there is none; ``axes`` of the vectors."""
    found = pointing(np.asarray(message.force), np.asarray(message.covariance).reshape(3, 3))
    return {'point': machine.payload_data.contact, **found._asdict(), 'along': np.asarray(message.direction),
            'component': message.component, 'component_stddev': message.component_stddev, 'reason': message.reason}


def channel_values(state: StateEstimate, machine: Machine) -> list[list[str | float]]:
    """Per measured channel its name, value, innovation, the innovation's standard deviation, and their SI unit."""
    units = {channel.name: measured_unit(machine.description, channel.sensor.name) for channel in machine.all_channels}
    return [[*row, units[row[0]]] for row in zip(
        state.channels, state.measured.tolist(), state.innovation.tolist(), state.innovation_stddev.tolist())]
