# SPDX-License-Identifier: Apache-2.0
"""What `mbse benchmark graph` runs."""
