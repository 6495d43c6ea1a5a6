# SPDX-License-Identifier: Apache-2.0
"""What the filters are built from."""
