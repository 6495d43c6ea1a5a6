# SPDX-License-Identifier: Apache-2.0
"""Checks of a computer, without ROS: each gives a `Check` with what was found and how to fix it."""
