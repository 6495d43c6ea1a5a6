# SPDX-License-Identifier: Apache-2.0
"""How near a machine is to tipping over the edges of what it stands on.

The zero-moment point (Vukobratovic and Borovac 2004) is where the plane of the support can carry weight and inertia
of all masses without a torque along the plane; at rest it is below the centre of mass, along gravity. A machine tips
over an edge of the polygon where it leaves the polygon there. The moments about an edge are those of excavators' and
cranes' load tables (ISO 10567, ISO 4305).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import casadi as ca
import numpy as np

from ..compiled import Kernel
from ..description.machine_parts import Support
from ..description.sections.load_payload import MASS
from ..errors import DescriptionError, SettingError
from .equations import check_single
from .frames import turned
from .machine import Machine

NOTHING = 1e-9      # of the sum of a part's moments: numbers, not an overturning part


class TipOver(NamedTuple):
    """``margin``, m: distance of the zero-moment point ``zero_moment_point`` (3,), m, in the machine's frame, from the
    nearest edge (2, 2), m, negative outside of the polygon, -inf where nothing presses the machine to the ground.

    ``ratio``: stabilising over overturning moments about that edge, below 1 where the machine tips, inf where no part
    overturns; the parts are the support, each body, each cylinder's masses and the load. ``tipping_mass``, kg: load
    with which it would just tip, inf where more load never does, over whichever edge comes first. ``mass``, kg, is the
    load that all is of, ``center_of_mass`` (3,), m, that of all masses.
    """

    margin: float
    ratio: float
    edge: np.ndarray
    zero_moment_point: np.ndarray
    center_of_mass: np.ndarray
    mass: float
    tipping_mass: float


class TipOverMargin:
    """The margin of one machine, at the nominal numbers of its file. A load that hangs counts as a point at its hook,
    through which it pulls as long as it hangs still. Raises DescriptionError where the file says no `base.support`."""

    def __init__(self, machine: Machine) -> None:
        check_single(machine)
        base = machine.description.base
        if base is None or base.support is None:
            raise DescriptionError(machine.description.file, 'base.support', None,
                                   'the polygon on which the machine stands, for the margin to tipping over')
        self.machine, self.support = machine, base.support
        self.corners = np.array(base.support.corners)
        self._edges = np.stack([self.corners, np.roll(self.corners, -1, axis=0)], axis=1)       # (k, 2, 2)
        along = self._edges[:, 1] - self._edges[:, 0]
        self._inward = np.stack([-along[:, 1], along[:, 0]], axis=1) / np.linalg.norm(along, axis=1)[:, None]
        self._kernel = _wrenches(machine, base.support)
        self._loaded = machine.description.payload is not None

    def __call__(self, q: np.ndarray, masses: tuple[float, ...] = (0.0,), zd: np.ndarray | None = None,
                 zdd: np.ndarray | None = None, base: Mapping[str, float] | None = None) -> TipOver:
        """At coordinates q (n,) that satisfy the constraints, with velocities and accelerations (g,) of the independent
        ones, by default at rest; the smallest margin with any of the ``masses`` of the load, kg.

        The margin is monotone in the mass: the ends of an interval are enough. ``base``: as for FeedForward.
        Raises SettingError for a mass that is not known.
        """
        for mass in masses:
            if not (np.isfinite(mass) and mass >= 0.0):
                raise SettingError('masses', mass, 'a finite number from 0 kg on')
        still, states = np.zeros(len(self.machine.coordinates)), {
            f'base.{axis}': angle for axis, angle in (base or {}).items()}
        if self._loaded:
            states[MASS] = 1.0
        numbers = self.machine.parameters.numbers(self.machine.parameters.mean, states)
        forces, moments, first = self._kernel(q, still if zd is None else zd, still if zdd is None else zdd, numbers)
        return min((self._margin(forces, moments, first, mass) for mass in masses), key=lambda item: item.margin)

    def _margin(self, forces: np.ndarray, moments: np.ndarray, first: np.ndarray, mass: float) -> TipOver:
        """Of wrenches (3, parts) about the middle of the polygon's plane, and first moments (4, parts): mass, kg m."""
        share = np.ones(forces.shape[1])
        share[-1] = mass if self._loaded else 1.0
        # Of each part the moment about each edge that keeps the machine on the ground: (k, parts), N m.
        low = self._edges[:, 0]
        keeping = (-self._inward[:, 1:] * moments[0] + self._inward[:, :1] * moments[1]
                   + (self._inward * low).sum(axis=1)[:, None] * forces[2])
        kept, normal = keeping * share, -float(forces[2] @ share)
        total = kept.sum(axis=1)
        margins = total / normal if normal > 0.0 else np.full(len(total), -np.inf)
        k = int(np.argmin(margins))
        point = np.array([moments[1] @ share, -(moments[0] @ share)]) / normal if normal > 0.0 else np.full(2, np.nan)
        overturning = -kept[k][kept[k] < -NOTHING * np.abs(kept[k]).sum()].sum()
        ratio = (total[k] + overturning) / overturning if overturning > 0.0 else np.inf
        tipping = self._tipping(total, keeping[:, -1], mass) if self._loaded else np.inf
        weights = first @ share
        return TipOver(float(margins[k]), float(ratio), self._edges[k].copy(), np.append(point, self.support.height),
                       weights[1:] / weights[0], float(mass), tipping)

    @staticmethod
    def _tipping(total: np.ndarray, by_mass: np.ndarray, mass: float) -> float:
        """Load, kg, at which the first edge's moments are none: they are affine in its mass."""
        edges = [mass - sum_ / slope for sum_, slope in zip(total, by_mass) if slope < 0.0]
        return float(max(min(edges, default=np.inf), 0.0))


def _wrenches(machine: Machine, support: Support) -> Kernel:
    """Of coordinates, velocities, accelerations and all numbers: forces and moments (3, parts) of gravity and inertia
    of the support, the bodies, the cylinders' masses and, last, the load, about the origin in the support's plane; and
    masses with first moments (4, parts)."""
    system, reduced = machine.system, machine.reduced
    zdd, q, qd = ca.SX.sym('zdd', len(machine.coordinates)), system.q, system.qd
    qdd, origin = reduced.R @ zdd + reduced.S @ reduced.c, ca.DM([0, 0, support.height])

    def wrench(mass: ca.SX | float, place: ca.SX, acceleration: ca.SX) -> list[ca.SX]:
        force = mass * (system.gravity - acceleration)
        return [force, ca.cross(place - origin, force), ca.vertcat(mass, mass * place)]
    parts = [wrench(support.mass, ca.SX(ca.DM(support.center_of_mass)), ca.SX.zeros(3))]
    for mass, place in system.masses:
        velocity = ca.jtimes(place, q, qd)
        parts.append(wrench(mass, place, ca.jtimes(velocity, q, qd) + ca.jtimes(place, q, qdd)))
    for (tensor, omega), (k, body) in zip(system.spins, _turning(machine)):
        moment = tensor @ (ca.jtimes(omega, q, qd) + ca.jtimes(omega, qd, qdd)) + ca.cross(omega, tensor @ omega)
        parts[k][1] -= turned(system.frames[body].rotation) @ moment
    columns = ca.substitute([ca.densify(ca.horzcat(*item)) for item in zip(*parts)], [qd], [reduced.qd])
    arguments = [q, reduced.zd, zdd, system.values.symbol]
    return Kernel(ca.Function('mbse_tip_over', arguments, columns, {'cse': True}), 'vm')


def _turning(machine: Machine) -> list[tuple[int, str]]:
    """Part and body of each of the system's spins: those of the bodies, then that of a load of extent."""
    bodies, payload = list(machine.description.bodies), machine.description.payload
    load = [] if payload is None else [(len(machine.system.masses), payload.body)]
    return [*enumerate(bodies, 1), *load]
