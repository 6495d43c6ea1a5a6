# SPDX-License-Identifier: Apache-2.0
"""What of a computer matters to this package, looked at without ROS: each look is a `Check`, with what mends it."""
