# SPDX-License-Identifier: Apache-2.0
"""Logs without ROS: a bag in, estimates and what was odd about them out."""
