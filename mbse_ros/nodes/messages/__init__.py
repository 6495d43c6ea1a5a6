# SPDX-License-Identifier: Apache-2.0
"""Records, frames, markers and texts as ROS messages."""
