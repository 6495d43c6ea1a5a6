# SPDX-License-Identifier: Apache-2.0
"""The energy of two four-bar linkages under each scheme of Pyrhönen et al., state transition, section 3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dynamics.model import Model
from ..dynamics.motion import Motion, simulate

EXAMPLES = {'four_bar': '', 'four_bar_spring': 'bend'}        # mechanism: its relative angle
SCHEMES: dict[str, tuple[str, dict[str, Any]]] = {
    'forward Euler': ('forward_euler', {}), 'augmented Euler': ('augmented_euler', {}),
    **{f'exponential n={n}': ('exponential', {'order': n}) for n in (1, 2, 3, 4)},
    'exponential exact': ('exponential', {'order': 'exact'})}
BLOWN_UP = 10.0             # times the largest kinetic energy of the reference: no motion of the mechanism any more


@dataclass(frozen=True)
class SchemeRun:
    """One scheme on one example: the motion, and when it blew up, s."""

    example: str
    dt_ms: float
    scheme: str
    motion: Motion
    blew_up_at: float | None


def largest_kinetic(model: Model, duration: float) -> float:
    """Largest kinetic energy on the way, J, by the exact exponential scheme."""
    return float(np.max(simulate(model, duration, 1e-3, 'exponential').kinetic))


def run_case(model: Model, example: str, dt_ms: float, scheme: str, duration: float, kinetic: float) -> SchemeRun:
    """Simulate; a motion that ends early, or leaves all bounds of energy, blew up."""
    name, options = SCHEMES[scheme]
    dt = 1e-3 * dt_ms
    with np.errstate(all='ignore'):
        motion = simulate(model, duration, dt, name, stop=False, **options)
        beyond = np.flatnonzero(~(np.abs(motion.balance) < BLOWN_UP * kinetic))
    blew_up = float(motion.t[beyond[0]]) if beyond.size else None
    if blew_up is None and motion.failure is not None:
        blew_up = float(motion.t[-1]) + dt
    return SchemeRun(example, dt_ms, scheme, motion, blew_up)
