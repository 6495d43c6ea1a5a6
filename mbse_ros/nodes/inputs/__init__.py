# SPDX-License-Identifier: Apache-2.0
"""What comes in: topics of other packages, messages that wait, pairs, pace."""
