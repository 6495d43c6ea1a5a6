# SPDX-License-Identifier: Apache-2.0
"""Mechanism description: a planar linkage or a spatial tree with loops, YAML (or URDF) in, checked dataclasses out."""
