# SPDX-License-Identifier: Apache-2.0
"""All filters: the exponential DEKF of a hydraulic machine, and the state, force and parameter filters of any mechanism
(Naya et al., review, Pyrhönen et al., state transition, section 4); their tuning, whiteness, and what sensors see."""
