# SPDX-License-Identifier: Apache-2.0
"""Markers of the lines of a machine or mechanism, and of a payload."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from textwrap import fill

import numpy as np
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Point
from rclpy.publisher import Publisher
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from ...streams.records import ObserverStatus, PayloadEstimate, PayloadStatus
from ..base.diagnostics import status_text
from ..base.timing import Pace, Silence
from .wire import header

Colour = tuple[float, float, float]
GREY, WHITE = (0.7, 0.7, 0.75), (1.0, 1.0, 1.0)
ORANGE, BLUE, GREEN = (0.95, 0.55, 0.1), (0.25, 0.5, 0.9), (0.2, 0.7, 0.3)
YELLOW, PALE, RED = (0.95, 0.9, 0.2), (0.75, 0.85, 0.95), (0.9, 0.15, 0.15)
STEEL = 7850.0      # kg/m3: the payload is drawn as a steel ball of its mass
TRANSLUCENT = 0.35  # opacity of what is not the estimate, and of an estimate without trust
MEASURED, ESTIMATED = 'measured', 'estimated'       # namespaces
TEXT = 1000                     # id of the text about an estimate
COLUMNS, LONGEST = 44, 220      # characters of a line and of a text
FADED = 3.0                     # s that a grey one stays: some looks
OLD_NS = 1_000_000_000          # a mass that is so much older than the state is not that of now
# Bodies and cylinders of an estimate that is not OK: no status looks like another.
COLOURS = {ObserverStatus.STARTING: (PALE, PALE), ObserverStatus.COASTING: (YELLOW, YELLOW),
           ObserverStatus.LOST: (RED, RED)}


class Canvas:
    """Draws lines on a topic at a rate counted in stamps, so that it follows a bag at any speed.

    A marker stays for a few of the periods at which estimates come. When none comes, ``look`` draws the last one in
    grey with its age, and removes the rest.
    """

    def __init__(self, publisher: Publisher, text_height: float) -> None:
        self._publisher, self._pace, self.text_height = publisher, Pace(), text_height
        self.is_due, self._silence = self._pace.is_due, Silence()
        self._shown: dict[tuple[str, int], Marker] = {}
        self._waiting: list[Marker] = []

    def draw_measured(self, namespace: str, stamp_ns: int, lines: Mapping[str, np.ndarray], frame: str, width: float,
                      colour: Colour, opacity: float) -> None:
        """What is to be compared with the estimate of the same stamp, which comes next: they go out as one message."""
        self._waiting += self._lines(namespace, stamp_ns, lines, frame, 1.6 * width, colour, colour, opacity)

    def estimate(self, stamp_ns: int, lines: Mapping[str, np.ndarray], frame: str, width: float,
                 status: ObserverStatus, reason: str, others: Iterable[Marker] = (),
                 colours: tuple[Colour, Colour] = (ORANGE, BLUE)) -> None:
        """The estimate in the colours of its status, ``colours`` (bodies, cylinders) where that is OK, with a text
        about any other; ``others``: markers that belong to it."""
        self._silence.heard()
        self._pace.done(ESTIMATED, stamp_ns)
        told = self._shown.pop((ESTIMATED, TEXT), None)
        text = [] if told is None else [_removed(told, header(stamp_ns, frame))]
        if status is not ObserverStatus.OK:
            points = [point for line in lines.values() for point in line]
            text = [self._text(stamp_ns, frame, status_text(status, reason), points)]
        drawn = self._lines(ESTIMATED, stamp_ns, lines, frame, width, *COLOURS.get(status, colours),
                            TRANSLUCENT if status is ObserverStatus.LOST else 1.0)
        waiting, self._waiting = self._waiting, []
        self._publish([*waiting, *drawn, *text, *others], self._silence.lifetime)

    def unknown(self, stamp_ns: int, frame: str, status: ObserverStatus, reason: str) -> None:
        """An estimate that cannot be drawn: the last one in grey, with the text."""
        self._silence.heard()
        self._pace.done(ESTIMATED, stamp_ns)
        self._waiting.clear()
        self._fade(status_text(status, reason), stamp_ns, frame)

    def look(self) -> float:
        """Draw the age of the last estimate where none has come for long; seconds until the next look."""
        silent, due = self._silence.look()
        last = next((marker for marker in self._shown.values() if marker.ns == ESTIMATED), None)
        if silent is not None and last is not None:
            self._fade(f'no estimate for {silent:.{0 if silent >= 1.0 else 1}f} s', None, last.header.frame_id)
        return due

    def _fade(self, text: str, stamp_ns: int | None, frame: str) -> None:
        """The last estimate in grey, with a text; all else is removed."""
        kept, gone = [], []
        for marker in self._shown.values():
            if marker.ns == ESTIMATED and marker.id != TEXT:
                marker.color = _colour(GREY, TRANSLUCENT)
                kept.append(marker)
            elif marker.id != TEXT:
                gone.append(_removed(marker, marker.header))
        if kept:
            points = [np.array([p.x, p.y, p.z]) for marker in kept for p in marker.points]
            stamp = kept[0].header.stamp if stamp_ns is None else header(stamp_ns, frame).stamp
            kept.append(self._text(0, frame, text, points))
            kept[-1].header.stamp = stamp
        for marker in gone:
            del self._shown[marker.ns, marker.id]
        self._publish([*kept, *gone], FADED)

    @staticmethod
    def _lines(namespace: str, stamp_ns: int, lines: Mapping[str, np.ndarray], frame: str, width: float, body: Colour,
               cylinder: Colour, opacity: float) -> list[Marker]:
        """One line a body or cylinder (cylinder/...), (k, 3) or, in x and z as it stands on a screen, (k, 2), m; their
        ids are stable. A body of one point has none: RViz refuses it."""
        markers = []
        for number, name in enumerate(sorted(lines)):
            if len(lines[name]) < 2:
                continue
            colour = cylinder if name.startswith('cylinder/') else body
            marker = _marker(Marker.LINE_STRIP, namespace, number, stamp_ns, frame, colour, opacity)
            marker.scale.x = float(width)
            marker.points = [_point(row) for row in lines[name]]
            markers.append(marker)
        return markers

    def _publish(self, markers: list[Marker], seconds: float) -> None:
        lifetime = Duration(sec=int(seconds), nanosec=int(seconds % 1.0 * 1e9))
        for marker in markers:
            if marker.action == Marker.ADD:
                marker.lifetime = lifetime
                self._shown[marker.ns, marker.id] = marker
        if markers:
            self._publisher.publish(MarkerArray(markers=markers))

    def _text(self, stamp_ns: int, frame: str, text: str, points: Iterable[np.ndarray]) -> Marker:
        """A text above points, m."""
        rows = np.array([row if len(row) == 3 else (row[0], 0.0, row[1]) for row in points])
        middle = (rows.min(axis=0) + rows.max(axis=0)) / 2
        words = fill(text[:LONGEST], COLUMNS)
        above = rows[:, 2].max() + self.text_height * (2.0 + 0.5 * words.count('\n'))
        return _words(ESTIMATED, TEXT, stamp_ns, frame, words, np.array([*middle[:2], above]), self.text_height)


def payload_markers(payload: PayloadEstimate, place: np.ndarray, stamp_ns: int, frame: str, width: float,
                    height: float, trusted: bool = True) -> list[Marker]:
    """Ball of the payload at a point (3,), m, and its mass with the 95 % interval above it; green where the mass is
    updated now, and the state, at ``stamp_ns``, is ``trusted``."""
    known, age = math.isfinite(payload.mass), stamp_ns - payload.stamp_ns
    mass = max(payload.mass, 0.0) if known else 0.0
    updated = payload.status is PayloadStatus.UPDATING and trusted and abs(age) < OLD_NS
    ball = _marker(Marker.SPHERE, 'payload', 0, stamp_ns, frame, GREEN if updated else GREY, 1.0)
    ball.pose.position = _point(place)
    size = max((6.0 * mass / (math.pi * STEEL)) ** (1.0 / 3.0), 1.5 * width)
    ball.scale.x = ball.scale.y = ball.scale.z = float(size)
    text = payload_text(payload) + (f'\n{age * 1e-9:.1f} s old' if age >= OLD_NS else '')
    return [ball, _words('payload', 1, stamp_ns, frame, text, place + np.array([0.0, 0.0, size / 2 + 2.0 * height]),
                         height)]


def payload_text(payload: PayloadEstimate) -> str:
    """Mass, 95 % interval and status in words."""
    status = payload.status.name.lower().replace('_', ' ')
    if not math.isfinite(payload.mass):
        return f'payload unknown\n{status}'
    return f'{payload.mass:.1f} kg\n{payload.lower:.1f} to {payload.upper:.1f} kg (95 %)\n{status}'


def _words(namespace: str, number: int, stamp_ns: int, frame: str, text: str, place: np.ndarray,
           height: float) -> Marker:
    marker = _marker(Marker.TEXT_VIEW_FACING, namespace, number, stamp_ns, frame, WHITE, 1.0)
    marker.pose.position, marker.text = _point(place), text
    marker.scale.z = float(height)
    return marker


def _marker(kind: int, namespace: str, number: int, stamp_ns: int, frame: str, colour: Colour,
            opacity: float) -> Marker:
    marker = Marker(header=header(stamp_ns, frame), ns=namespace, id=number, type=kind, action=Marker.ADD)
    marker.pose.orientation.w = 1.0
    marker.color = _colour(colour, opacity)
    return marker


def _removed(marker: Marker, head: Header) -> Marker:
    return Marker(header=head, ns=marker.ns, id=marker.id, action=Marker.DELETE)


def _colour(colour: Colour, opacity: float) -> ColorRGBA:
    return ColorRGBA(r=colour[0], g=colour[1], b=colour[2], a=float(opacity))


def _point(row: np.ndarray) -> Point:
    x, y, z = row if len(row) == 3 else (row[0], 0.0, row[1])
    return Point(x=float(x), y=float(y), z=float(z))
