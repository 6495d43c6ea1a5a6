# SPDX-License-Identifier: Apache-2.0
"""Numbers of a machine from its own logs: what the balance of forces along a motion says of them."""
