# SPDX-License-Identifier: Apache-2.0
"""What a file is by its first bytes, whatever its name: a storage file of rosbag2, a bag of ROS 1, neither."""

from __future__ import annotations

from pathlib import Path

from ...resources import regular

MCAP, SQLITE3 = '.mcap', '.db3'         # as the files are named
_MAGIC = {b'\x89MCAP0\r\n': MCAP, b'SQLite format 3\x00': SQLITE3}
_ROS1 = b'#ROSBAG V'


def storage_of(path: Path) -> str | None:
    """'.mcap' or '.db3' by the first bytes of a regular file, None of another; raises OSError."""
    with regular(path).open('rb') as stream:
        start = stream.read(16)
    return next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), None)


def why_none(path: Path) -> str:
    """What a file is that is no storage file of rosbag2, with the way to convert it; '' where that is not known."""
    try:
        with regular(path).open('rb') as stream:
            start = stream.read(len(_ROS1))
    except OSError:
        return ''
    if start == _ROS1:
        return (f'is a bag of ROS 1, expected one of ROS 2: rosbags-convert --src {path.name} --dst {path.stem} '
                '(pip install rosbags) converts it')
    return 'is an empty file, of 0 bytes' if not start else ''
