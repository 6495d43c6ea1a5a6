# SPDX-License-Identifier: Apache-2.0
"""Whether samples can come from the machine."""
