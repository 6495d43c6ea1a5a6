# SPDX-License-Identifier: Apache-2.0
"""Levers between independent coordinates and pistons, so that one tuning serves strokes and angles."""

from __future__ import annotations

import casadi as ca
import numpy as np

from ..errors import PositionProblemError, SingularConfigurationError
from ..machine import Machine

SHARES = np.linspace(0.05, 0.95, 7)     # of the range of a coordinate, the others at the start


def coordinate_scale(machine: Machine) -> list[float | None]:
    """Metres of piston motion for a unit of each coordinate (g,): 1 for a piston, None where no cylinder moves it.

    Of an angle the root of the mean square over its range, as far as the mechanism reaches.
    """
    found: list[float | None] = []
    rates = None
    for k, (_, place) in enumerate(zip(machine.coordinates, machine.model.z)):
        if place in machine.pistons:
            found.append(1.0)
        elif k not in machine.actuated:
            found.append(None)
        else:
            rates = rates or ca.Function('rates', [machine.system.q, machine.parameters.symbol],
                                         [ca.densify(machine.piston_rates)])
            found.append(_lever(machine, k, rates))
    return found


def _lever(machine: Machine, k: int, rates: ca.Function) -> float:
    """Root mean square of the pistons' speeds for a unit speed of coordinate ``k``."""
    start, squares = machine.model.start.q, []
    low, high = machine.range[k]
    for share in SHARES:
        z = start[machine.model.z].copy()
        z[k] = low + share * (high - low)
        try:
            q = machine.position(z)
        except (PositionProblemError, SingularConfigurationError):
            continue
        squares.append(float(np.sum(rates(q, machine.parameters.mean).full()[:, k] ** 2)))
    if not squares:
        squares = [float(np.sum(rates(start, machine.parameters.mean).full()[:, k] ** 2))]
    return float(np.sqrt(np.mean(squares)))
