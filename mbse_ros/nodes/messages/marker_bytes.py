# SPDX-License-Identifier: Apache-2.0
"""Markers of solids as bytes that are made once: of each drawing only stamp, place, size, colour and lifetime are
written into them. rclpy takes 2 ms to serialize the triangles of an excavator, this 0.1 ms."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
from geometry_msgs.msg import Point
from rclpy.serialization import serialize_message
from visualization_msgs.msg import Marker, MarkerArray

from ...report.solids import PIN_ACROSS, Solid, Solids, quaternions

BLOCK = np.dtype([('position', 'f8', 3), ('orientation', 'f8', 4), ('scale', 'f8', 3), ('color', 'f4', 4),
                  ('lifetime', 'i4', 2)])       # as they follow each other in a marker
HEAD = 4        # bytes of CDR before the message; places of numbers count from its end
_STAMP, _PLACE = 'iI', 'd'


class Layer:
    """The markers of one machine or mechanism, of a namespace: of its estimate with pins, stand and load, or of a
    ``ghost``, which has none of them.

    ``kinds``: of each marker, that of its solid or 'pin'.
    """

    def __init__(self, namespace: str, solids: Solids, ghost: bool = False, load: str = 'payload') -> None:
        self.markers: list[Marker] = []
        self.kinds: list[str] = []
        self._part: list[int] = []
        self._shift: list[tuple[float, float, float]] = []
        self._scale: list[tuple[float, float, float]] = []
        for part, solid in enumerate(solids.ghost if ghost else solids.parts):
            if ghost and solid.kind in ('stand', 'load'):
                continue
            if solid.kind in ('barrel', 'rod'):
                for offset in solid.offsets:
                    self._add(Marker.CYLINDER, namespace, solid, part, (0.5, 0.0, offset), (solid.across,) * 3)
                continue
            name, kind = (load, Marker.SPHERE) if solid.kind == 'load' else (namespace, Marker.TRIANGLE_LIST)
            self._add(kind, name, solid, part, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
            if kind == Marker.TRIANGLE_LIST:
                self.markers[-1].points = [Point(x=x, y=y, z=z) for x, y, z in solid.triangles().tolist()]
            for x, y in [] if ghost else solid.pins:
                self._add(Marker.CYLINDER, namespace, solid, part, (x, y, 0.0),
                          (2 * solid.pin, 2 * solid.pin, PIN_ACROSS * solid.across), 'pin')
        self._tube = np.array([kind in ('barrel', 'rod') for kind in self.kinds], dtype=bool)

    def _add(self, kind: int, namespace: str, solid: Solid, part: int, shift: tuple[float, float, float],
             scale: tuple[float, float, float], named: str = '') -> None:
        self.markers.append(Marker(ns=namespace, id=len(self.markers), type=kind, action=Marker.ADD))
        self.kinds.append(named or solid.kind)
        self._part.append(part)
        self._shift.append(shift)
        self._scale.append(scale)

    def placed(self, places: np.ndarray, radius: float = 0.0) -> np.ndarray:
        """BLOCK (markers,) of parts at places (parts, 4, 3), without colours; ``radius`` of the load, m."""
        blocks, axes = np.zeros(len(self.markers), BLOCK), places[self._part, 1:]
        blocks['position'] = places[self._part, 0] + np.einsum('mi,mij->mj', self._shift, axes)
        blocks['scale'] = self._scale
        length = np.linalg.norm(axes[:, 0], axis=-1)
        blocks['scale'][self._tube, 2] = length[self._tube]
        axes[:, 0] /= np.maximum(length, 1e-12)[:, None]
        axes[self._tube] = np.roll(axes[self._tube], -1, axis=1)        # along the marker's z
        blocks['orientation'] = quaternions(axes)
        blocks['scale'][[kind == 'load' for kind in self.kinds]] = 2.0 * radius
        return blocks


class MarkerBytes:
    """A MarkerArray of markers whose blocks change."""

    def __init__(self, markers: Sequence[Marker], frame: str) -> None:
        for k, marker in enumerate(markers):
            marker.header.frame_id = frame
            marker.header.stamp.sec, marker.header.stamp.nanosec = _sign(k)
            marker.pose.position.x = float(k) + 0.12345678912345
        markers[-1].texture.format = ''
        self._count = len(markers)
        self._bytes = serialize_message(MarkerArray(markers=list(markers)))
        if (len(self._bytes) - HEAD + 3) // 4 % 2 == 0:      # what follows is aligned as after a count
            markers[-1].texture.format = '    '
            self._bytes = serialize_message(MarkerArray(markers=list(markers)))
        self._bytes += bytes(-len(self._bytes) % 4)
        stamps: list[int] = []
        blocks: list[int] = []
        for k, marker in enumerate(markers):
            stamps.append(self._bytes.index(struct.pack(_STAMP, *_sign(k)), blocks[-1] if blocks else HEAD))
            blocks.append(self._bytes.index(struct.pack(_PLACE, marker.pose.position.x), stamps[-1]))
        self._stamps = np.array(stamps)[:, None] + np.arange(8)
        self._blocks = np.array(blocks)[:, None] + np.arange(BLOCK.itemsize)

    def filled(self, stamp: tuple[int, int], blocks: np.ndarray, others: Sequence[Marker] = ()) -> bytes:
        """The message at a stamp (s, ns), with blocks (markers,), and with ``others`` at its end."""
        written = np.frombuffer(self._bytes, np.uint8).copy()
        written[self._stamps] = np.frombuffer(struct.pack(_STAMP, *stamp), np.uint8)
        written[self._blocks] = np.ascontiguousarray(blocks).view(np.uint8).reshape(len(blocks), -1)
        written[HEAD:HEAD + 4] = np.frombuffer(struct.pack('I', self._count + len(others)), np.uint8)
        rest = serialize_message(MarkerArray(markers=list(others)))[HEAD + 4:] if others else b''
        return written.tobytes() + rest


def _sign(number: int) -> tuple[int, int]:
    """A stamp that is found again in bytes."""
    return 0x5A5A0000 + number, 0x35350000 + number
