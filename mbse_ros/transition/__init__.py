# SPDX-License-Identifier: Apache-2.0
"""Exponential integration: transition matrices and process noise over a step."""
