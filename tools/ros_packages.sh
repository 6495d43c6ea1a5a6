#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# In an official container of ROS 2 (root, $ROS_DISTRO): what build and tests need from apt, after package.xml.
#   tools/ros_packages.sh [PACKAGE...]      (more packages of apt)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
: "${ROS_DISTRO:?expected the name of a ROS 2, as the official containers set it}"
tools/system_packages.sh cmake g++ make ninja-build python3-dev python3-pip python3-venv \
  python3-colcon-common-extensions python3-rosdep "$@"
[[ -e /etc/ros/rosdep/sources.list.d/20-default.list ]] || rosdep init
rosdep update --rosdistro "$ROS_DISTRO"
rosdep install --from-paths . --ignore-src --rosdistro "$ROS_DISTRO" -y
