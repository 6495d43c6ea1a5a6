# SPDX-License-Identifier: Apache-2.0
"""A load that hangs and swings: a point mass on a massless rod, its pin the payload's point.

The unit vector d from the pin to the load has the components u along the horizontal axes of ``Machine.swings``. Where
the pin feels the field gamma = gravity less its own acceleration, the load pulls the pin by

    m (gamma . d + L |d'|^2) d,     and     L u'' = gamma_u - (gamma . d + L |d'|^2) u  (Newton, along d and across).

A rigid load pulls by m gamma. u and u' are states of the observer. What is not known of the swing, its damping above
all, is noise that keeps it, as a stationary process, at ``SPREAD``, and forgets it in ``LASTING``.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..machine import Machine
from ..machine.hanging import down, hook

SPREAD = 0.2        # 1 sigma of u, of a load of which nothing is known
LASTING = 20.0      # s, after which an amplitude has fallen to 1/e, as far as the observer knows
STEEPEST = 0.25     # least square of the vertical component of d: where a load hangs at 60 degrees


@dataclass(frozen=True)
class Pull:
    """``rates`` (s,): u'', 1/s^2; ``force`` (a,): what a load of the payload's mass that hangs adds to the force
    balance ``Mbar zdd - Qbar - S' F`` of one that is rigid, N or N m by coordinate (g,)."""

    rates: ca.SX
    force: ca.SX


def pull(machine: Machine, zdd: ca.SX, u: ca.SX, v: ca.SX) -> Pull:
    """In the mechanism's q and ``reduced.zd``, at accelerations (g,), ``u`` (s,) and ``v`` = u' (s,)."""
    system, reduced = machine.system, machine.reduced
    assert machine.payload_data.hanging is not None     # else nothing swings
    place, length = hook(machine.payload_data, system), system.values(machine.payload_data.hanging)
    velocity = ca.jtimes(place, system.q, system.qd)
    acceleration = (ca.jtimes(velocity, system.q, system.qd)
                    + ca.jtimes(place, system.q, reduced.R @ zdd + reduced.S @ reduced.c))
    field = ca.substitute(system.gravity - acceleration, system.qd, reduced.qd)
    axes = ca.DM(np.eye(field.numel())[['xyz'.index(axis) for axis in machine.swings]])
    w = ca.sqrt(ca.fmax(1 - ca.sumsqr(u), STEEPEST))
    d = axes.T @ u + w * ca.DM(down(machine.description))
    along = ca.dot(field, d) + length * (ca.sumsqr(v) + (ca.dot(u, v) / w) ** 2)
    force = reduced.R.T @ ca.jtimes(place, system.q, machine.payload * (field - along * d), True)
    return Pull((axes @ field - along * u) / length - 2 / LASTING * v, force)


def swing_rates(machine: Machine, zd: ca.SX, zdd: ca.SX, u: ca.SX, v: ca.SX) -> ca.SX:
    """u', u'' (2 s,) in the mechanism's q."""
    return ca.vertcat(v, ca.substitute(pull(machine, zdd, u, v).rates, machine.reduced.zd, zd))


def swing_noise(machine: Machine) -> float:
    """Spectral density of u'', 1/s^3."""
    return 4 / LASTING * spread_of_rate(machine) ** 2


def spread_of_rate(machine: Machine) -> float:
    """1 sigma of u', 1/s, of a load of which nothing is known."""
    assert machine.payload_data.hanging is not None     # else nothing swings
    gravity = np.linalg.norm([item.value for item in machine.description.gravity])
    return SPREAD * float(np.sqrt(gravity / machine.payload_data.hanging.value))
