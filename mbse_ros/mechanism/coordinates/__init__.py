# SPDX-License-Identifier: Apache-2.0
"""Choices of coordinates for a described mechanism: natural, reference-point, relative."""
