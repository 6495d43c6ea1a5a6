# SPDX-License-Identifier: Apache-2.0
"""Which topics and fields could be which channel."""
