# SPDX-License-Identifier: Apache-2.0
"""Checks of a computer and of a running graph, without ROS: each gives a `Check` with what was found and how to fix it;
what follows from the file of a machine or a mechanism, in ``described``."""
