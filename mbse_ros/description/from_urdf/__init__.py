# SPDX-License-Identifier: Apache-2.0
"""A URDF and answers to what it lacks, to a machine file."""
