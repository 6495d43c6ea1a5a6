# SPDX-License-Identifier: Apache-2.0
"""Machine files from what a tape measure, a data plate and a data sheet give."""
