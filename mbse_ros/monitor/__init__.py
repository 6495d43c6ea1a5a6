# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with a sample, a state or a mass: its kinds as values."""
