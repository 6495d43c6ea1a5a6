# SPDX-License-Identifier: Apache-2.0
"""A description as symbolic equations: coordinates, constraints, forces, inertia, sensors, uncertain numbers."""
