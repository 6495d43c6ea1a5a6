# SPDX-License-Identifier: Apache-2.0
"""Bags to a calibrated machine."""
