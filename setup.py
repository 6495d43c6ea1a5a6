# SPDX-License-Identifier: Apache-2.0
"""What pyproject.toml cannot say: the shared files, each where an installation has it (share/mbse_ros/config)."""
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).resolve().parent
SHARED = ['config', 'launch', 'msg', 'rviz']


def shared() -> list:
    """Folder of an installation -> its files."""
    files = [path.relative_to(HERE) for folder in SHARED for path in (HERE / folder).rglob('*') if path.is_file()]
    return [(f'share/mbse_ros/{path.parent}', [str(path)]) for path in files]


setup(data_files=shared())
