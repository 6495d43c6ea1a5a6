# SPDX-License-Identifier: Apache-2.0
"""Message types without a ROS installation: those of ROS 2 Jazzy and this package's own, read from msg/."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from ..resources import share_directory

PACKAGE = 'mbse_ros/msg/'
_SEPARATOR = '=' * 80 + '\n'


@lru_cache(maxsize=1)
def typestore() -> Typestore:
    """The types of ROS 2 Jazzy and this package's; a type is named as 'sensor_msgs/msg/JointState'."""
    store = get_typestore(Stores.ROS2_JAZZY)
    types = {}
    for name, path in _own_files().items():
        types.update(get_types_from_msg(path.read_text(encoding='utf-8'), name))
    store.register(types)
    return store


@lru_cache(maxsize=None)
def definition(msgtype: str) -> str:
    """Definition of a type and of all it contains, as a bag holds it ('ros2msg'); raises KeyError for an unknown type.

    This package's own come with the comments (units) of their files.
    """
    store = typestore()
    if msgtype not in store.fielddefs:
        raise KeyError(msgtype)
    own, separator, contained = store.generate_msgdef(msgtype, ros_version=2)[0].partition(_SEPARATOR)
    path = _own_files().get(msgtype)
    return (path.read_text(encoding='utf-8') if path else own) + separator + contained


@lru_cache(maxsize=None)
def type_hash(msgtype: str) -> str:
    """Type hash as rosidl computes it, 'RIHS01_...'; raises KeyError for an unknown type."""
    return typestore().hash_rihs01(msgtype)


def _own_files() -> dict[str, Path]:
    """Files of this package's messages by type."""
    return {PACKAGE + path.stem: path for path in sorted((share_directory() / 'msg').glob('*.msg'))}
