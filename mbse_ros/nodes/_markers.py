# SPDX-License-Identifier: Apache-2.0
"""Markers of a machine's outline and of its payload."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from geometry_msgs.msg import Point
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker

from ..streams.records import PayloadEstimate, PayloadStatus
from ._messages import header

Colour = tuple[float, float, float]
GREY, WHITE = (0.7, 0.7, 0.75), (1.0, 1.0, 1.0)
ORANGE, BLUE, GREEN = (0.95, 0.55, 0.1), (0.25, 0.5, 0.9), (0.2, 0.7, 0.3)
STEEL = 7850.0      # kg/m3: the payload is drawn as a steel ball of its mass


def outline_markers(outline: Mapping[str, np.ndarray], namespace: str, stamp_ns: int, frame: str, width: float,
                    body: Colour, cylinder: Colour, opacity: float = 1.0) -> list[Marker]:
    """One line a body or cylinder of ``Machine.outline``; the ids are stable."""
    markers = []
    for number, name in enumerate(sorted(name for name in outline if name != 'payload')):
        marker = _marker(Marker.LINE_STRIP, namespace, number, stamp_ns, frame,
                         cylinder if name.startswith('cylinder/') else body, opacity)
        marker.scale.x = float(width)
        marker.points = [_point(row) for row in outline[name]]
        markers.append(marker)
    return markers


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
    return Point(x=float(row[0]), y=float(row[1]), z=float(row[2]))
