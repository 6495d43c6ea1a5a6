# SPDX-License-Identifier: Apache-2.0
"""A machine or mechanism as markers: its solids, what is measured as a ghost, and texts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from textwrap import fill

import numpy as np
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Point
from rclpy.publisher import Publisher
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from ...report.solids import Solids
from ...streams.records import ObserverStatus, PayloadEstimate, PayloadStatus
from ..base.diagnostics import status_text
from ..base.timing import Pace, Silence
from .marker_bytes import Layer, MarkerBytes
from .wire import header, to_time

Colour = tuple[float, float, float]
GREY, WHITE, DARK = (0.7, 0.7, 0.75), (1.0, 1.0, 1.0), (0.13, 0.15, 0.18)
GHOST, TRUE = (0.85, 0.92, 1.0), (0.4, 0.95, 0.5)
YELLOW, GREEN, BROWN = (0.95, 0.66, 0.15), (0.2, 0.7, 0.3), (0.72, 0.36, 0.1)
STEEL, BRIGHT, STONE = (0.36, 0.41, 0.47), (0.82, 0.85, 0.88), (0.42, 0.46, 0.5)
PALE, AMBER, ASH, RED = (0.75, 0.85, 0.95), (0.98, 0.9, 0.1), (0.5, 0.46, 0.46), (1.0, 0.35, 0.3)
TRANSLUCENT = 0.35  # opacity of what is not the estimate, and of an estimate without trust
MEASURED, ESTIMATED, PAYLOAD = 'measured', 'estimated', 'payload'       # namespaces
TEXT = 1000                     # id of the text about an estimate, and of that about a payload
COLUMNS, LONGEST = 30, 220      # characters of a line and of a text
LINE = 1.35                     # letters from line to line
FADED = 3.0                     # s that a grey one stays: some looks
OLD_NS = 1_000_000_000          # a mass that is so much older than the state is not that of now
FIXED = {'barrel': STEEL, 'rod': BRIGHT, 'pin': DARK, 'stand': STONE}
# Bodies of an estimate, and the text about it: no status looks like another.
COLOURS = {ObserverStatus.OK: (YELLOW, WHITE), ObserverStatus.STARTING: (PALE, PALE),
           ObserverStatus.COASTING: (AMBER, AMBER), ObserverStatus.LOST: (ASH, RED)}


class Canvas:
    """Draws solids on a topic at a rate counted in stamps, so that it follows a bag at any speed.

    Texts stand at ``above`` (3,), m. A marker stays for a few of the periods at which estimates come. When none comes,
    ``look`` draws the last one in grey with its age, and removes the rest.
    """

    def __init__(self, publisher: Publisher, solids: Solids, text_height: float, above: np.ndarray) -> None:
        self._publisher, self._pace, self.text_height, self._above = publisher, Pace(), text_height, above
        self.is_due, self._silence, self._solids = self._pace.is_due, Silence(), solids
        self._layers: dict[str, Layer] = {}
        self._made: dict[tuple[str, ...], MarkerBytes] = {}
        self._waiting: dict[str, np.ndarray] = {}
        self._shown: set[tuple[str, int]] = set()
        self._last: tuple[int, str, np.ndarray] | None = None

    def draw_measured(self, namespace: str, places: np.ndarray, colour: Colour, opacity: float) -> None:
        """What is to be compared with the estimate of the same stamp, which comes next: they go out as one message."""
        blocks = self._layer(namespace).placed(places)
        blocks['color'] = (*colour, opacity)
        self._waiting[namespace] = blocks

    def estimate(self, stamp_ns: int, places: np.ndarray, frame: str, status: ObserverStatus, reason: str,
                 payload: PayloadEstimate | None = None) -> None:
        """Parts at places (parts, 4, 3) in the colours of a status, with a text about any but OK, and the payload;
        without one the load is not drawn."""
        self._silence.heard()
        self._pace.done(ESTIMATED, stamp_ns)
        layer, texts, mass = self._layer(ESTIMATED), [], math.nan if payload is None else payload.mass
        blocks = layer.placed(places, self._solids.load_radius(mass))
        body, ink = COLOURS[status]
        lost = status is ObserverStatus.LOST
        blocks['color'] = [(*(FIXED.get(kind, body) if not lost or kind == 'stand' else ASH), TRANSLUCENT if lost
                            and kind != 'stand' else 1.0) for kind in layer.kinds]
        if status is not ObserverStatus.OK:
            words = status_text(status, reason)
            texts.append(self._text(ESTIMATED, stamp_ns, frame, words, ink, payload is not None))
        if payload is not None:
            text, updated = payload_text(payload, stamp_ns)
            ball = GREEN if updated and not lost else GREY
            blocks['color'][[kind == 'load' for kind in layer.kinds]] = (*ball, 1.0)
            texts.append(self._text(PAYLOAD, stamp_ns, frame, text, WHITE))
        self._last = stamp_ns, frame, blocks
        drawn, self._waiting = {**self._waiting, ESTIMATED: blocks}, {}
        self._publish(stamp_ns, frame, drawn, texts, self._silence.lifetime, payload is not None)

    def unknown(self, stamp_ns: int, frame: str, status: ObserverStatus, reason: str) -> None:
        """An estimate that cannot be drawn: the last one in grey, with the text."""
        self._silence.heard()
        self._pace.done(ESTIMATED, stamp_ns)
        self._waiting.clear()
        self._fade(status_text(status, reason), stamp_ns)

    def look(self) -> float:
        """Draw the age of the last estimate where none has come for long; seconds until the next look."""
        silent, due = self._silence.look()
        if silent is not None:
            self._fade(f'no estimate for {silent:.{0 if silent >= 1.0 else 1}f} s')
        return due

    def clear(self) -> None:
        """Remove all that is shown."""
        if self._last is not None:
            gone = Marker(header=header(self._last[0], self._last[1]), action=Marker.DELETEALL)
            self._publisher.publish(MarkerArray(markers=[gone]))
        self._shown.clear()
        self._last = None

    def _fade(self, text: str, stamp_ns: int | None = None) -> None:
        """The last estimate in grey, with a text; all else is removed."""
        if self._last is None:
            return
        stamp, frame, blocks = self._last
        stamp = stamp if stamp_ns is None else stamp_ns
        blocks['color'] = (*GREY, TRANSLUCENT)
        words = self._text(ESTIMATED, stamp, frame, text, RED)
        self._publish(stamp, frame, {ESTIMATED: blocks}, [words], FADED, False)

    def _publish(self, stamp_ns: int, frame: str, drawn: dict[str, np.ndarray], texts: Sequence[Marker],
                 seconds: float, loaded: bool) -> None:
        """One message: solids, texts, and what is no longer there removed; the load only where it is ``loaded``."""
        span = int(seconds), int(seconds % 1.0 * 1e9)
        names, head = tuple(sorted(drawn)), header(stamp_ns, frame)
        layers = [self._layer(name) for name in names]
        blocks = np.concatenate([drawn[name] for name in names])
        blocks['lifetime'] = span
        kept = np.array([loaded or kind != 'load' for layer in layers for kind in layer.kinds])
        key = (frame, *names, PAYLOAD * loaded)
        markers = [marker for layer in layers for marker in layer.markers]
        markers = [marker for marker, keep in zip(markers, kept) if keep]
        if key not in self._made:
            self._made[key] = MarkerBytes(markers, frame)
        for text in texts:
            text.lifetime = Duration(sec=span[0], nanosec=span[1])
        shown = {(marker.ns, marker.id) for marker in (*markers, *texts)}
        gone = [Marker(header=head, ns=name, id=number, action=Marker.DELETE)
                for name, number in sorted(self._shown - shown)]
        self._shown = shown
        stamp = to_time(stamp_ns)
        self._publisher.publish(self._made[key].filled((stamp.sec, stamp.nanosec), blocks[kept], [*texts, *gone]))

    def _layer(self, namespace: str) -> Layer:
        if namespace not in self._layers:
            self._layers[namespace] = Layer(namespace, self._solids, namespace != ESTIMATED, PAYLOAD)
        return self._layers[namespace]

    def _text(self, namespace: str, stamp_ns: int, frame: str, text: str, colour: Colour, second: bool = False
              ) -> Marker:
        """A text above the machine, away from its tool; ``second``: below the mass."""
        words = '\n'.join(fill(line, COLUMNS) for line in text[:LONGEST].split('\n'))
        marker = Marker(header=header(stamp_ns, frame), ns=namespace, id=TEXT, type=Marker.TEXT_VIEW_FACING,
                        action=Marker.ADD, text=words, color=_colour(colour))
        x, y, z = self._above
        down = LINE * words.count('\n') / 2 + (3.3 * LINE if second else 0.0) + 0.5
        marker.pose.position = Point(x=float(x), y=float(y), z=float(z - self.text_height * down))
        marker.pose.orientation.w, marker.scale.z = 1.0, float(self.text_height)
        return marker


def payload_text(payload: PayloadEstimate, stamp_ns: int) -> tuple[str, bool]:
    """Mass, 95 % interval, status and age in words, and whether the mass is updated now, at ``stamp_ns``."""
    age, known = stamp_ns - payload.stamp_ns, math.isfinite(payload.mass)
    status = payload.status.name.lower().replace('_', ' ') + (f', {age * 1e-9:.1f} s old' if age >= OLD_NS else '')
    mass = f'{payload.mass:.1f} kg\n{payload.lower:.1f} to {payload.upper:.1f} kg (95 %)'
    text = mass if known else 'payload unknown'
    return f'{text}\n{status}', payload.status is PayloadStatus.UPDATING and abs(age) < OLD_NS


def _colour(colour: Iterable[float]) -> ColorRGBA:
    r, g, b = colour
    return ColorRGBA(r=r, g=g, b=b, a=1.0)
