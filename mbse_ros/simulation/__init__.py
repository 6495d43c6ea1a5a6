# SPDX-License-Identifier: Apache-2.0
"""The true machine and mechanism, work cycles, samples with noise."""
