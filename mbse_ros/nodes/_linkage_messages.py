# SPDX-License-Identifier: Apache-2.0
"""Estimates of a linkage to messages, and its drawing: pure functions, SI, each value cast to the type of its field."""

from __future__ import annotations

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Point
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import ColorRGBA, Float64
from visualization_msgs.msg import Marker

from ..streams.linkage.records import Health, LinkageEstimate
from ._diagnostics import LEVELS, diagnostic_array, status_text
from ._messages import header, joint_state


def all_coordinates(estimate: LinkageEstimate, frame: str, names: tuple[str, ...]) -> JointState:
    """JointState of all coordinates; effort: the added force along them, 0 of the others (and of all where the force is
    along actuators)."""
    force = dict(zip(estimate.force_names, estimate.force))
    return joint_state(estimate.stamp_ns, frame, names, estimate.q, estimate.qd,
                       [force.get(name, 0.0) for name in names])


def diagnostics(estimate: LinkageEstimate, health: Health, name: str, dropped: dict[str, int],
                frame: str) -> DiagnosticArray:
    """DiagnosticArray of the filter's health."""
    values = {'estimator': estimate.estimator, 'mean NIS per measurement': f'{health.mean_nis:.3g}',
              'whiteness (p-value)': f'{health.whiteness:.3g}',
              'observability': f'{health.rank} of {health.size} directions seen'
              if health.rank >= 0 else 'not known yet', **{f'dropped, {k}': str(v) for k, v in dropped.items()}}
    return diagnostic_array(estimate.stamp_ns, LEVELS[estimate.status], name, frame,
                            status_text(estimate.status, estimate.reason), values)


def sensor_message(kind: str, values: dict, stamp_ns: int, frame: str) -> Imu | Float64:
    """Message of ``Sources.spread``, if it is no JointState."""
    if kind.endswith('Float64'):
        return Float64(data=float(values['data']))
    message = Imu(header=header(stamp_ns, frame))
    message.orientation_covariance[0] = -1.0        # the message's way to say: no orientation
    for field, components in values.items():
        for component, value in components.items():
            setattr(getattr(message, field), component, float(value))
    return message


def linkage_markers(outlines: dict[str, np.ndarray], namespace: str, stamp_ns: int, frame: str, width: float,
                    colour: tuple[float, float, float], opacity: float) -> list[Marker]:
    """One line a body, from points (k, 2) or (k, 3); a plane lies in x and z of the frame, as it stands on a screen."""
    markers = []
    for number, (name, points) in enumerate(outlines.items()):
        marker = Marker(header=header(stamp_ns, frame), ns=namespace, id=number, type=Marker.LINE_STRIP,
                        action=Marker.ADD)
        marker.pose.orientation.w = 1.0
        marker.color = ColorRGBA(r=colour[0], g=colour[1], b=colour[2], a=float(opacity))
        marker.scale.x = float(width)
        marker.points = [_point(row) for row in points]
        markers.append(marker)
    return markers


def _point(row: np.ndarray) -> Point:
    return Point(x=float(row[0]), y=0.0, z=float(row[1])) if len(row) == 2 else Point(
        x=float(row[0]), y=float(row[1]), z=float(row[2]))
