# SPDX-License-Identifier: Apache-2.0
"""What `mbse doctor` and `mbse topics` find in a running graph."""
