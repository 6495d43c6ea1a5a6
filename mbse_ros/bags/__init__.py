# SPDX-License-Identifier: Apache-2.0
"""rosbag2 (mcap, sqlite3) in and out, without a ROS installation; tables (CSV) to bags."""
