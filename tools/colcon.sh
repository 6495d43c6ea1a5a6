#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Build this package, as copied, in a colcon workspace of a sourced ROS 2, out/colcon, and run its tests there.
#   tools/colcon.sh [--no-tests]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v colcon >/dev/null && [[ -n ${AMENT_PREFIX_PATH:-} ]] || {
  echo 'mbse_ros: expected colcon and a sourced ROS 2 (tools/ros_packages.sh; docs/installation.md)' >&2; exit 2; }
testing=ON
[[ ${1:-} != --no-tests ]] || testing=OFF
workspace=$PWD/out/colcon
# a copy: what is generated here must not be found by the tests of the workspace
rm -rf "$workspace/src"
mkdir -p "$workspace/src/mbse_ros"
tar --exclude=./.git --exclude=./.env --exclude=./out --exclude=./build --exclude=./install --exclude=./log -cf - . |
  tar -C "$workspace/src/mbse_ros" -xf -
cd "$workspace"
colcon build --packages-select mbse_ros --event-handlers console_direct+ --cmake-args "-DBUILD_TESTING=$testing"
[[ $testing == ON ]] || exit 0
colcon test --packages-select mbse_ros --event-handlers console_direct+ --return-code-on-test-failure ||
  { colcon test-result --verbose; exit 1; }
colcon test-result
