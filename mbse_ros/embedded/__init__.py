# SPDX-License-Identifier: Apache-2.0
"""Observer and payload estimator of a machine as C99, for a controller without an operating system."""
