# SPDX-License-Identifier: Apache-2.0
"""Many messages of one layout at once."""
