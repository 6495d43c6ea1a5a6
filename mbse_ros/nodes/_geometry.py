# SPDX-License-Identifier: Apache-2.0
"""Transforms, poses, wrenches and numbers of a machine as messages of geometry_msgs, tf2_msgs and std_msgs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from transforms3d.quaternions import mat2quat

from ..bags import messages
from ..bags.messages import typestore
from ..machine.frames import LoadPose, Transform
from ..streams.linkage.sources import FLOAT64
from ._messages import _serialized, packed

POSE, WRENCH = 'geometry_msgs/msg/PoseWithCovarianceStamped', 'geometry_msgs/msg/WrenchStamped'
TF_MESSAGE = 'tf2_msgs/msg/TFMessage'


def packed_transforms(stamp_ns: int, transforms: Iterable[Transform]) -> bytes:
    """Serialized TFMessage of transforms between frames of these names."""
    # Each of them by `make_message` would take ten times as long.
    types, head = typestore().types, messages.header(stamp_ns, '')
    Header, Stamped, Pose, Vector, Quaternion = (types[name] for name in (
        'std_msgs/msg/Header', 'geometry_msgs/msg/TransformStamped', 'geometry_msgs/msg/Transform',
        'geometry_msgs/msg/Vector3', 'geometry_msgs/msg/Quaternion'))
    found = []
    for parent, child, (x, y, z), (w, *vector) in transforms:
        pose = Pose(Vector(float(x), float(y), float(z)), Quaternion(*map(float, vector), float(w)))
        found.append(Stamped(header=Header(head.stamp, parent), child_frame_id=child, transform=pose))
    return _serialized(TF_MESSAGE, types[TF_MESSAGE](transforms=found))


def packed_pose(stamp_ns: int, frame: str, load: LoadPose, covariance: np.ndarray) -> bytes:
    """Serialized PoseWithCovarianceStamped of a load in the machine's frame, at a covariance (g + s, g + s) of what its
    ``jacobian`` is by."""
    w, x, y, z = mat2quat(load.rotation)
    spread = load.jacobian @ covariance @ load.jacobian.T
    return packed(POSE, stamp_ns, frame, {'pose': {
        'pose': {'position': _xyz(load.place), 'orientation': {'x': x, 'y': y, 'z': z, 'w': w}},
        'covariance': (spread + spread.T) / 2}})


def packed_weight(stamp_ns: int, frame: str, load: LoadPose, mass: float) -> bytes:
    """Serialized WrenchStamped of the weight of a mass, kg, in the load's frame: it acts at its origin, so that there
    is no torque."""
    return packed(WRENCH, stamp_ns, frame, {'wrench': {'force': _xyz(mass * load.gravity)}})


def packed_number(value: float) -> bytes:
    """Serialized Float64."""
    return packed(FLOAT64, 0, '', {'data': value})


def _xyz(vector: np.ndarray) -> dict[str, float]:
    return dict(zip('xyz', vector))
