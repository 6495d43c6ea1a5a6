#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Run a command with the ROS 2 of Ubuntu, /opt/ros/$ROS_DISTRO, sourced: jobs of containers start without it.
#   tools/in_ros.sh COMMAND ARGUMENT...
set -eo pipefail
setup=/opt/ros/${ROS_DISTRO:?expected the name of a ROS 2, as the official containers set it}/setup.bash
[[ -r $setup ]] || { echo "mbse_ros: ROS_DISTRO=$ROS_DISTRO: $setup does not exist" >&2; exit 2; }
source "$setup"
exec "$@"
