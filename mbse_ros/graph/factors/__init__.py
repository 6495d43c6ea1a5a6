# SPDX-License-Identifier: Apache-2.0
"""Kinds of factors and the equations in them."""
