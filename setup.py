# SPDX-License-Identifier: Apache-2.0
"""Plain Python packaging: metadata, dependencies and entry points.

A ROS build does not read this file (package.xml says ament_cmake); test/repository/test_package.py holds the two
together.
"""
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).resolve().parent
SHARED = ['config', 'launch', 'msg', 'rviz']


def requirements(name: str) -> list:
    """Lines of a list in tools/requirements without the comments."""
    lines = (HERE / 'tools' / 'requirements' / name).read_text().splitlines()
    return [line for line in lines if line and not line.startswith('#')]


def shared() -> list:
    """The shared files where an installation has them: share/mbse_ros/config and so on."""
    files = [path.relative_to(HERE) for folder in SHARED for path in (HERE / folder).rglob('*') if path.is_file()]
    return [(f'share/mbse_ros/{path.parent}', [str(path)]) for path in files]


setup(
    name='mbse_ros',
    version='0.2.0',
    description='State, force and payload estimation of machines from a multibody model and a few sensors.',
    license='Apache-2.0',
    packages=find_packages(include=['mbse_ros', 'mbse_ros.*']),
    package_data={'mbse_ros': ['report/*.html', 'report/*.js', 'report/*.css',
                               'nodes/display/page/*']},
    data_files=shared(),
    python_requires='>=3.10',
    install_requires=requirements('python.in'),
    extras_require={name: requirements(f'{name}.in') for name in (
        'cluster', 'display', 'graph', 'parquet', 'peers', 'table', 'test', 'view')},
    entry_points={'console_scripts': ['mbse = mbse_ros.cli:main']},     # the nodes are in lib/mbse_ros of a ROS build
)
