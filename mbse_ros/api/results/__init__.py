# SPDX-License-Identifier: Apache-2.0
"""What the functions of the API return."""
