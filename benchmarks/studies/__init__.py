# SPDX-License-Identifier: Apache-2.0
"""Studies of the package itself: `mbse benchmark NAME` runs them from a source tree."""
