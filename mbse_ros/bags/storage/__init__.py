# SPDX-License-Identifier: Apache-2.0
"""Storage files of bags, mcap and sqlite3."""
