# SPDX-License-Identifier: Apache-2.0
"""Formulations of the constrained equations of motion."""
