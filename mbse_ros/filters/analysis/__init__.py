# SPDX-License-Identifier: Apache-2.0
"""What is asked of a filter: tuning, smoothing, observability."""
