# SPDX-License-Identifier: Apache-2.0
"""Equations of motion in many formulations, exact Jacobians, integrators, position problem, inverse dynamics."""
