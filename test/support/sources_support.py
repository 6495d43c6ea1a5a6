# SPDX-License-Identifier: Apache-2.0
"""Bags of other people's messages: the samples of one of ours in other types, names and units."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore
from source_tree import ROOT

from mbse_ros.bags.bag import Bag, decode

SECOND = 10 ** 9
PACKAGE = 'com3_msgs'
MACHINE = ('--machine', 'zx200_can', '--valve', 'unknown')
JOINTS = ('swing_joint', 'boom_joint', 'arm_joint', 'bucket_joint')
VOLUMES = ('boom_piston', 'boom_rod', 'arm_piston', 'arm_rod', 'bucket_piston', 'bucket_rod')
FRAMES = ('boom_up', 'boom_down', 'arm_crowed', 'arm_dump', 'bucket_crowed', 'bucket_dump')
LABELS = tuple(f'{part}_cylinder_{side}_pressure' for part in ('boom', 'arm', 'bucket') for side in ('bottom', 'rod'))
TRACKS = ('right_track_motor_a_pressure', 'right_track_motor_b_pressure')
Messages = Iterable[tuple[str, str, int, Any]]      # topic, type, time in the bag, message


def opera_messages() -> Path:
    """Folder of the project's message definitions, which are not part of the repository."""
    folder = ROOT.parent / 'shared' / 'data' / 'zx200'
    if not folder.is_dir():
        pytest.skip('no message definitions: ../shared/data/zx200 is not there')
    return folder


@cache
def store(foreign: bool = True) -> Typestore:
    """Jazzy's types and, where asked for, those of the project."""
    types = get_typestore(Stores.ROS2_JAZZY)
    for path in opera_messages().glob('*.msg') if foreign else ():
        types.register(get_types_from_msg(path.read_text(), f'{PACKAGE}/msg/{path.stem}'))
    return types


def make(types: Typestore, msgtype: str, **values: Any) -> Any:
    """A message of nested keywords; what is not given is empty or zero."""
    return types.types[msgtype](**values)


def time(types: Typestore, stamp_ns: int) -> Any:
    return make(types, 'builtin_interfaces/msg/Time', sec=stamp_ns // SECOND, nanosec=stamp_ns % SECOND)


def header(types: Typestore, stamp_ns: int, frame: str = '') -> Any:
    return make(types, 'std_msgs/msg/Header', stamp=time(types, stamp_ns), frame_id=frame)


def joint_state(types: Typestore, stamp_ns: int, names: Iterable[str], position: Iterable[float],
                velocity: Iterable[float] = ()) -> Any:
    return make(types, 'sensor_msgs/msg/JointState', header=header(types, stamp_ns, 'base_link'), name=list(names),
                position=np.array(list(position), float), velocity=np.array(list(velocity), float), effort=np.zeros(0))


def multi_array(types: Typestore, labels: Iterable[str], data: Iterable[float]) -> Any:
    dims = [make(types, 'std_msgs/msg/MultiArrayDimension', label=label, size=0, stride=0) for label in labels]
    layout = make(types, 'std_msgs/msg/MultiArrayLayout', dim=dims, data_offset=0)
    return make(types, 'std_msgs/msg/Float64MultiArray', layout=layout, data=np.array(list(data), float))


def fluid_pressure(types: Typestore, stamp_ns: int, frame: str, pressure: float) -> Any:
    return make(types, 'sensor_msgs/msg/FluidPressure', header=header(types, stamp_ns, frame), fluid_pressure=pressure,
                variance=0.0)


def pressure_array(types: Typestore, stamp_ns: int, names: Iterable[str], pressures: Iterable[float]) -> Any:
    return make(types, f'{PACKAGE}/msg/FluidPressureArray',
                array=[fluid_pressure(types, stamp_ns, name, value) for name, value in zip(names, pressures)])


def write(folder: Path, types: Typestore, messages: Messages, storage: StoragePlugin = StoragePlugin.MCAP) -> Path:
    """A bag as a recorder writes it, with the definitions of all types."""
    with Writer(folder, version=9, storage_plugin=storage) as writer:
        connections: dict[str, Any] = {}
        for topic, msgtype, stamp_ns, message in messages:
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, msgtype, typestore=types)
            writer.write(connections[topic], stamp_ns, types.serialize_cdr(message, msgtype))
    return folder


def instants(bag: Path) -> list[tuple[int, dict[str, float]]]:
    """Stamps of one of our bags, ns, and all samples of each by channel."""
    found: dict[int, dict[str, float]] = {}
    for raw in Bag(bag).messages():
        if '/sensors/' not in raw.topic or 'command' in raw.topic:
            continue
        message, values = decode(raw), found.setdefault(raw.stamp_ns, {})
        if raw.topic.endswith('position'):
            values |= {f'position/{name}': value for name, value in zip(message.name, message.position.tolist())}
        else:
            values[f'pressure/{raw.topic.rpartition("/")[2]}'] = message.fluid_pressure
    return sorted(found.items())


Shape = Callable[[Typestore, int, dict[str, float]], Messages]


def converted(bag: Path, folder: Path, shape: Shape, types: Typestore) -> Path:
    """The samples of one of our bags in messages of another shape."""
    return write(folder, types, (message for stamp, values in instants(bag) for message in shape(types, stamp, values)))
