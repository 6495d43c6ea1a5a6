# SPDX-License-Identifier: Apache-2.0
"""The language of the files: YAML, entries, units, arithmetic, references."""
