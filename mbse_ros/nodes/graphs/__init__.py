# SPDX-License-Identifier: Apache-2.0
"""Graphs described once, and the processes that run them."""
