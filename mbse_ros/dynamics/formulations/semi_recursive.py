# SPDX-License-Identifier: Apache-2.0
"""Double-step semi-recursive equations of motion: reference coordinates, joint coordinates, independent coordinates.

Pyrhönen et al., mass estimation, section 2.1. A body's velocity is that of its point which coincides with the machine's
origin, and its angular velocity; then the velocities along a path add up (the path matrix T holds zeros and ones), and
so do masses and forces from the leaves to the root. No body needs a Jacobian of its own: in a chain of N bodies forces
take O(N) and the mass matrix O(N^2) operations. The second step, by the cut joints, is matrix-R, as for every
``System``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import casadi as ca

from ...description.basics import GROUND
from ...mechanism.assembly import MechanismSystem
from ...mechanism.spatial import Inertia, Twist
from ...mechanism.tree import TreeBody, inertias_of, tree
from ..forces.wrenches import applied_wrenches, gravity_wrench
from ..partitioned import Partitioned

if TYPE_CHECKING:
    from ..model import Model


def semi_recursive(system: MechanismSystem) -> MechanismSystem:
    """The system, in relative coordinates, with M and Q accumulated from the leaves (Pyrhönen et al., mass estimation,
    Eq. 3).

    The accelerations are the same; M and Q themselves too, but along the length of Euler parameters, which their
    constraint forbids to change. Raises SettingError for a system in other coordinates.
    """
    steps = tree(system)
    velocities, rests = _outwards(system, steps)
    wrenches, Q = applied_wrenches(system, velocities)
    inertias = inertias_of(system)
    for name, inertia in inertias.items():
        wrenches[name] += gravity_wrench(system, inertia)
        wrenches[name] -= velocities[name].rate_of(inertia.momentum(velocities[name])) + inertia.momentum(rests[name])
    M = ca.SX(system.n, system.n)
    above = {step.body: step for step in steps}
    for step in reversed(steps):
        for place, column in zip(step.places, step.columns):
            Q[place] += column.power(wrenches[step.body])
        _mass(M, inertias[step.body], step, above)
        if step.hangs_on != GROUND:
            wrenches[step.hangs_on] += wrenches[step.body]
            inertias[step.hangs_on] += inertias[step.body]
    for place, rotor in system.rotors:
        M[place, place] += rotor
    return replace(system, M=M, Q=ca.densify(Q))


def semi_recursive_partition(model: Model, independent: Sequence[int] | None = None) -> Partitioned:
    """State equations of a model in relative coordinates by the double-step form (Pyrhönen et al., mass estimation,
    Eqs. 4-6).

    ``independent``: places in q; default: the model's own.
    """
    chosen = model.z if independent is None else list(independent)
    model.check_reducible()
    return Partitioned(semi_recursive(model.system), chosen, list(model.active), model.parameters, model.backend)


def _outwards(system: MechanismSystem, steps: list[TreeBody]) -> tuple[dict[str, Twist], dict[str, Twist]]:
    """Velocities ``Z = T R_d zd`` and accelerations ``T R_d' zd`` of the bodies (Pyrhönen et al., mass estimation,
    Eqs. 1 and 2)."""
    still = Twist.zero(system.description.dimension)
    velocities, rests = {GROUND: still}, {GROUND: still}
    for step in steps:
        moves = [column * system.qd[place] for place, column in zip(step.places, step.columns)]
        velocities[step.body] = sum(moves, velocities[step.hangs_on])
        turned = [velocities[name].rate(move) for name, move in zip(step.fixed_in, moves)]
        rests[step.body] = sum(turned, rests[step.hangs_on])
    return velocities, rests


def _mass(M: ca.SX, inertia: Inertia, step: TreeBody, above: dict[str, TreeBody]) -> None:
    """Rows of the step's coordinates: its columns with the inertia of all that hangs on the body, along the path."""
    for place, column in zip(step.places, step.columns):
        momentum = inertia.momentum(column)
        on_path: TreeBody | None = step
        while on_path is not None:
            for other, its_column in zip(on_path.places, on_path.columns):
                M[place, other] = M[other, place] = its_column.power(momentum)
            on_path = above.get(on_path.hangs_on)
