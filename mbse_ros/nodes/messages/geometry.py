# SPDX-License-Identifier: Apache-2.0
"""Transforms, poses, points, wrenches and numbers of a machine as messages of geometry_msgs, tf2_msgs and std_msgs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...bags import messages
from ...bags.messages import typestore
from ...bags.sensor_topics import FLOAT64
from ...machine.frames import LoadPose, Transform
from .wire import packed, serialized

POSE, WRENCH = 'geometry_msgs/msg/PoseWithCovarianceStamped', 'geometry_msgs/msg/WrenchStamped'
POINT = 'geometry_msgs/msg/PointStamped'
TF_MESSAGE = 'tf2_msgs/msg/TFMessage'


def packed_transforms(stamp_ns: int, transforms: Iterable[Transform]) -> bytes:
    """Serialized TFMessage of transforms between frames of these names."""
    found = [_make('TransformStamped', messages.header(stamp_ns, parent), child, _make(
        'Transform', _make('Vector3', *place.tolist()), _quaternion(turn)))
        for parent, child, place, turn in transforms]
    return serialized(TF_MESSAGE, typestore().types[TF_MESSAGE](found))


def packed_pose(stamp_ns: int, frame: str, load: LoadPose, covariance: np.ndarray) -> bytes:
    """Serialized PoseWithCovarianceStamped of a load in the machine's frame, at a covariance (g + s, g + s) of what its
    ``jacobian`` is by."""
    from transforms3d.quaternions import mat2quat  # here: slow to import
    spread = load.jacobian @ covariance @ load.jacobian.T
    pose = _make('Pose', _make('Point', *load.place.tolist()), _quaternion(mat2quat(load.rotation)))
    return serialized(POSE, _make('PoseWithCovarianceStamped', messages.header(stamp_ns, frame), _make(
        'PoseWithCovariance', pose, ((spread + spread.T) / 2).ravel())))


def packed_weight(stamp_ns: int, frame: str, load: LoadPose, mass: float) -> bytes:
    """Serialized WrenchStamped of the weight of a mass, kg, in the load's frame: it acts at its origin, so that there
    is no torque."""
    force = _make('Vector3', *(mass * load.gravity).tolist())
    return serialized(WRENCH, _make('WrenchStamped', messages.header(stamp_ns, frame), _make(
        'Wrench', force, _make('Vector3', 0.0, 0.0, 0.0))))


def packed_point(stamp_ns: int, frame: str, place: np.ndarray) -> bytes:
    """Serialized PointStamped of a place (3,), m."""
    return serialized(POINT, _make('PointStamped', messages.header(stamp_ns, frame), _make('Point', *place.tolist())))


def packed_number(value: float) -> bytes:
    """Serialized Float64."""
    return packed(FLOAT64, 0, '', {'data': value})


def _quaternion(wxyz: np.ndarray) -> Any:
    w, x, y, z = wxyz.tolist()
    return _make('Quaternion', x, y, z, w)


def _make(kind: str, *values: Any) -> Any:
    """Message of geometry_msgs with its fields in their order; `make_message` would take ten times as long."""
    return typestore().types[f'geometry_msgs/msg/{kind}'](*values)
