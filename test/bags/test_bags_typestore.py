# SPDX-License-Identifier: Apache-2.0
"""Types without ROS are those of ROS: hashes, definitions and bytes."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from mbse_ros.bags.messages import definition, make_message, type_hash, typestore
from mbse_ros.resources import share_directory

OWN = sorted(path.stem for path in (share_directory() / 'msg').glob('*.msg'))
STANDARD = ['sensor_msgs/msg/JointState', 'sensor_msgs/msg/FluidPressure', 'rosgraph_msgs/msg/Clock',
            'visualization_msgs/msg/MarkerArray']


def test_the_hash_of_joint_state_is_the_one_recorders_write():
    assert type_hash('sensor_msgs/msg/JointState') == \
        'RIHS01_a13ee3a330e346c9d87b5aa18d24e11690752bd33a0350f11c5882bc9179260e'


@pytest.mark.parametrize('msgtype', [*(f'mbse_ros/msg/{name}' for name in OWN), *STANDARD])
def test_hashes_are_those_of_rosidl(msgtype):
    package, _, name = msgtype.split('/')
    prefixes = [Path(prefix) for prefix in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep) if prefix]
    files = [prefix / 'share' / package / 'msg' / f'{name}.json' for prefix in prefixes]
    files = [file for file in files if file.is_file()]
    if not files:
        pytest.skip(f'no share/{package}/msg/{name}.json on AMENT_PREFIX_PATH: no ROS 2 environment')
    hashes = {item['type_name']: item['hash_string'] for item in json.loads(files[0].read_text())['type_hashes']}
    assert type_hash(msgtype) == hashes[msgtype]


def test_own_definitions_keep_their_comments_and_hold_what_they_contain():
    text = definition('mbse_ros/msg/HydraulicState')
    assert text.startswith((share_directory() / 'msg' / 'HydraulicState.msg').read_text())
    assert 'MSG: std_msgs/Header\n' in text and 'MSG: builtin_interfaces/Time\n' in text


def test_an_unknown_type_is_a_key_error():
    for function in (definition, type_hash, lambda name: make_message(name, {})):
        with pytest.raises(KeyError):
            function('mbse_ros/msg/Nothing')


def example(msgtype: str) -> dict:
    """Values for each field, of every kind the messages use."""
    values = {}
    for name, (node, inner) in typestore().fielddefs[msgtype][1]:
        if name == 'header':
            values[name] = {'stamp': {'sec': 12, 'nanosec': 345}, 'frame_id': 'kran'}
        elif int(node) == 1:
            values[name] = {'string': 'Grund', 'bool': True, 'float64': -1.25}.get(inner[0], 7)
        else:
            some = {'string': ['a', 'bc'], 'uint8': [0, 255]}.get(inner[0][1][0], [1.5, float('nan'), -2.0])
            values[name] = some if int(node) == 4 else np.resize(some, inner[1]).tolist()      # of a fixed length
    return values


def assert_holds(message: object, values: dict) -> None:
    """The message has these values."""
    for name, value in values.items():
        if name != 'header':
            np.testing.assert_array_equal(getattr(message, name), value, err_msg=name)
    assert (message.header.stamp.sec, message.header.stamp.nanosec, message.header.frame_id) == (12, 345, 'kran')


FILLED = [name for name in OWN if name != 'Fault']      # which has constants alone


@pytest.mark.parametrize('msgtype', [*(f'mbse_ros/msg/{name}' for name in FILLED), *STANDARD[:2]])
def test_bytes_survive_the_way_back(msgtype):
    values = example(msgtype)
    store = typestore()
    assert_holds(store.deserialize_cdr(store.serialize_cdr(make_message(msgtype, values), msgtype), msgtype), values)


@pytest.mark.ros
@pytest.mark.parametrize('name', FILLED)
def test_rclpy_reads_the_bytes_and_its_bytes_are_read(name):
    module = pytest.importorskip('mbse_ros.msg')
    from rclpy.serialization import deserialize_message, serialize_message
    msgtype, kind = f'mbse_ros/msg/{name}', getattr(module, name)
    values = example(msgtype)
    message = deserialize_message(bytes(typestore().serialize_cdr(make_message(msgtype, values), msgtype)), kind)
    assert_holds(message, values)
    assert_holds(typestore().deserialize_cdr(serialize_message(message), msgtype), values)
