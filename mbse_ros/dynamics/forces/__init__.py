# SPDX-License-Identifier: Apache-2.0
"""Wrenches on the bodies, and the forces that a motion takes."""
