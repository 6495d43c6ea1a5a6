# SPDX-License-Identifier: Apache-2.0
"""A mechanism as C99: its equations, Jacobians, position problem and a test beside them."""
