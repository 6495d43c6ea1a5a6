# SPDX-License-Identifier: Apache-2.0
"""The ROS nodes, thin: parameters, messages, clock; the only room that imports rclpy."""

import os

os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')     # matrices are tiny here: threads only wait for each other
