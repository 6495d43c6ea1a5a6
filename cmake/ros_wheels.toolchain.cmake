# SPDX-License-Identifier: Apache-2.0
# CMAKE_TOOLCHAIN_FILE for building against the ROS 2 wheels of PyPI in the active venv.
set(CMAKE_PROJECT_INCLUDE "${CMAKE_CURRENT_LIST_DIR}/ros_wheels_fix.cmake")
