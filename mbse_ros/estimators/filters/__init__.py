# SPDX-License-Identifier: Apache-2.0
"""State, force and parameter filters on any mechanism (paper 001, paper 000 section 4)."""
