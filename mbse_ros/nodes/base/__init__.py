# SPDX-License-Identifier: Apache-2.0
"""What all nodes have in common: life cycle, parameters, diagnostics, process, publishing."""
