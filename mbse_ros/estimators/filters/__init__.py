# SPDX-License-Identifier: Apache-2.0
"""State, force and parameter filters on any mechanism (Naya et al., review, Pyrhönen et al., state transition,
section 4)."""
