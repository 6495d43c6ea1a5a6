# SPDX-License-Identifier: Apache-2.0
"""Markers of the lines of a machine or mechanism, and of a payload."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
from geometry_msgs.msg import Point
from rclpy.publisher import Publisher
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from ...streams.records import PayloadEstimate, PayloadStatus
from ..inputs.pace import Pace
from .wire import header

Colour = tuple[float, float, float]
GREY, WHITE = (0.7, 0.7, 0.75), (1.0, 1.0, 1.0)
ORANGE, BLUE, GREEN = (0.95, 0.55, 0.1), (0.25, 0.5, 0.9), (0.2, 0.7, 0.3)
STEEL = 7850.0      # kg/m3: the payload is drawn as a steel ball of its mass


class Canvas:
    """Draws lines on a topic, each namespace at a rate counted in stamps, so that it follows a bag at any speed."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher, self._pace = publisher, Pace()
        self.is_due = self._pace.is_due

    def draw(self, namespace: str, stamp_ns: int, lines: Mapping[str, np.ndarray], frame: str, width: float,
             body: Colour, cylinder: Colour, opacity: float, others: Iterable[Marker] = ()) -> None:
        """One line a body or cylinder (cylinder/...), (k, 3) or, in x and z as it stands on a screen, (k, 2), m; their
        ids are stable. ``others``: markers that belong to them."""
        self._pace.done(namespace, stamp_ns)
        markers = []
        for number, name in enumerate(sorted(lines)):
            colour = cylinder if name.startswith('cylinder/') else body
            marker = _marker(Marker.LINE_STRIP, namespace, number, stamp_ns, frame, colour, opacity)
            marker.scale.x = float(width)
            marker.points = [_point(row) for row in lines[name]]
            markers.append(marker)
        self._publisher.publish(MarkerArray(markers=[*markers, *others]))


def payload_markers(payload: PayloadEstimate, place: np.ndarray, stamp_ns: int, frame: str, width: float,
                    height: float) -> list[Marker]:
    """Ball of the payload at a point (3,), m, and its mass with the 95 % interval above it."""
    known = math.isfinite(payload.mass)
    mass = max(payload.mass, 0.0) if known else 0.0
    ball = _marker(Marker.SPHERE, 'payload', 0, stamp_ns, frame,
                   GREEN if payload.status is PayloadStatus.UPDATING else GREY, 1.0)
    ball.pose.position = _point(place)
    size = max((6.0 * mass / (math.pi * STEEL)) ** (1.0 / 3.0), 1.5 * width)
    ball.scale.x = ball.scale.y = ball.scale.z = float(size)
    text = _marker(Marker.TEXT_VIEW_FACING, 'payload', 1, stamp_ns, frame, WHITE, 1.0)
    text.pose.position = _point(place + np.array([0.0, 0.0, size / 2 + 2.0 * height]))
    text.scale.z = float(height)
    text.text = payload_text(payload)
    return [ball, text]


def payload_text(payload: PayloadEstimate) -> str:
    """Mass, 95 % interval and status in words."""
    status = payload.status.name.lower().replace('_', ' ')
    if not math.isfinite(payload.mass):
        return f'payload unknown\n{status}'
    return f'{payload.mass:.1f} kg\n{payload.lower:.1f} to {payload.upper:.1f} kg (95 %)\n{status}'


def _marker(kind: int, namespace: str, number: int, stamp_ns: int, frame: str, colour: Colour,
            opacity: float) -> Marker:
    marker = Marker(header=header(stamp_ns, frame), ns=namespace, id=number, type=kind, action=Marker.ADD)
    marker.pose.orientation.w = 1.0
    marker.color = ColorRGBA(r=colour[0], g=colour[1], b=colour[2], a=float(opacity))
    return marker


def _point(row: np.ndarray) -> Point:
    x, y, z = row if len(row) == 3 else (row[0], 0.0, row[1])
    return Point(x=float(x), y=float(y), z=float(z))
