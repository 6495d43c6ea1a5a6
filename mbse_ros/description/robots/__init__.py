# SPDX-License-Identifier: Apache-2.0
"""URDF in."""
