# SPDX-License-Identifier: Apache-2.0
"""Machine description: YAML in, checked dataclasses in SI out."""
