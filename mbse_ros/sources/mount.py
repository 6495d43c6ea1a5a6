# SPDX-License-Identifier: Apache-2.0
"""An IMU that is turned on its body: its attitude, rates and accelerations in the axes of the body."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

from ..bags.channels import read_number
from ..description.language.entry import Entry
from .fields import ANGLES, QUATERNION, Fields, Path
from .getters import ANGLE_OF, Get, getter

VECTOR = 'geometry_msgs/msg/Vector3'
AXES = ('x', 'y', 'z')


class Mount(NamedTuple):
    """From the axes of the body to those of the IMU by turning about the body's x, y, z in this order, rad: `rpy` of a
    URDF."""

    roll: float
    pitch: float
    yaw: float


def read_mount(entry: Entry) -> Mount:
    """``{roll: 180 deg, yaw: 90 deg}``; an angle that is not given is 0. Raises DescriptionError."""
    parts = entry.mapping([], ANGLES)
    if not parts:
        raise entry.error('angles such as {roll: 180 deg, yaw: 90 deg}, from the axes of the body to those of the IMU')
    found = {}
    for name, item in parts.items():
        value, dimension = read_number(item)
        if dimension != {'rad': 1}:
            raise item.error('an angle with its unit, such as 90 deg')
        found[name] = value
    return Mount(*(found.get(name, 0.0) for name in ANGLES))


def mounted_getter(path: Path, msgtype: str, fields: Fields, mount: Mount) -> Get:
    """The function of a path to an angle of a quaternion, or to x, y, z of a vector, in the axes of the body.

    Raises ValueError, a phrase, for another path, and what `getter` raises.
    """
    from transforms3d.euler import euler2mat, euler2quat  # here: slow to import
    field = path[-1].field
    if len(path) < 2 or path[-1].selection is not None or field not in (*ANGLES, *AXES):
        raise ValueError('a path to roll, pitch or yaw of a quaternion or to x, y or z of a vector: `mount` is given')
    whole = getter(path[:-1], msgtype, fields)
    if whole.kind.base == QUATERNION and field in ANGLES:
        w, x, y, z = euler2quat(*mount, 'sxyz').tolist()
        get, angle = whole.get, ANGLE_OF[field]
        return lambda message: angle(_times(get(message), w, -x, -y, -z))
    if whole.kind.base == VECTOR and field in AXES:
        a, b, c = euler2mat(*mount, 'sxyz')[AXES.index(field)].tolist()
        get = whole.get

        def turned(message: Any) -> float:
            vector = get(message)
            return a * vector.x + b * vector.y + c * vector.z
        return turned
    raise ValueError(f'a quaternion or a {VECTOR} before {field}, where `mount` is given, not a {whole.kind}')


def _times(q: Any, w: float, x: float, y: float, z: float) -> SimpleNamespace:
    """Product of two quaternions."""
    return SimpleNamespace(w=q.w * w - q.x * x - q.y * y - q.z * z, x=q.w * x + q.x * w + q.y * z - q.z * y,
                           y=q.w * y - q.x * z + q.y * w + q.z * x, z=q.w * z + q.x * y - q.y * x + q.z * w)
