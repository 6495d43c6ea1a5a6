# SPDX-License-Identifier: Apache-2.0
"""Our profile of Fast DDS: quick discovery and repair."""

from __future__ import annotations

from collections.abc import Mapping

from ...resources import share_directory

# Fast DDS 3 has another name for an element of the profile, and loads nothing of a file with the old one.
OLD = 'FASTRTPS_DEFAULT_PROFILES_FILE', 'fastdds_quick_discovery.xml'
NEW = 'FASTDDS_DEFAULT_PROFILES_FILE', 'fastdds3_quick_discovery.xml'
VARIABLES = OLD[0], NEW[0]
FAST_DDS_2 = ('humble', 'iron', 'jazzy')


def dds_profile(environment: Mapping[str, str]) -> dict[str, str]:
    """Variable that names our profile for the ROS 2 of an environment (ROS_DISTRO); {} where the user has named one."""
    if any(name in environment for name in VARIABLES):
        return {}
    name, file = OLD if environment.get('ROS_DISTRO') in FAST_DDS_2 else NEW
    return {name: str(share_directory() / 'config' / file)}
