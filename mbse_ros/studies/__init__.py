# SPDX-License-Identifier: Apache-2.0
"""The studies of ``mbse benchmark``: accuracy, cost and growth, each in one run on one machine."""
