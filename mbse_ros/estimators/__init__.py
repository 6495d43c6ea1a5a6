# SPDX-License-Identifier: Apache-2.0
"""The hydraulic observer of a machine; in ``filters`` all filters of mechanisms, tuning, whiteness."""
