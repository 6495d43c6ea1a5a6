# SPDX-License-Identifier: Apache-2.0
"""Samples to segments to estimates: the ROS-free objects that nodes and the command line both drive."""
