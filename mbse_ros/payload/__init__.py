# SPDX-License-Identifier: Apache-2.0
"""The mass from the state: inverse dynamics, gates, filter, interval."""
