# SPDX-License-Identifier: Apache-2.0
"""Fluid, valves, friction and the circuit's equations."""
