# SPDX-License-Identifier: Apache-2.0
"""Logs of hydraulic machines as factor graphs."""
