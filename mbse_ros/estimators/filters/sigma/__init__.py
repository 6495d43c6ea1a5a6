# SPDX-License-Identifier: Apache-2.0
"""The sigma-point filters."""
