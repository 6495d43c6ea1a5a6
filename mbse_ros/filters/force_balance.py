# SPDX-License-Identifier: Apache-2.0
"""The force balance of a machine: how the forces of its actuators, its motion and its payload are related.

Pyrhönen et al., mass estimation, Eq. 55: ``g = Mbar(z, m) zdd - Qbar(z, zd, m) - S' (F_hydraulic - F_friction)`` in any
independent coordinates, S being the pistons' speeds by theirs. The payload's inverse dynamics solve it for the mass;
the observer takes it as a measurement of motion and mass together: see ``balance``.

A load that hangs and swings is in it as a point mass on a massless rod, its pin the payload's point.
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

from ..dynamics.forces.inertial_forces import inertial_forces
from ..machine import Machine
from ..machine.equations import by_actuator
from ..machine.hanging import down, hook
from .hydraulic_state import direct, errors_of, late, state_parts, uncertain_delays

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


@dataclass(frozen=True)
class ForceBalance:
    """``g`` (a,), N or N m: one equation for each coordinate that actuators move and whose pressures or efforts are all
    measured (``Machine.weighing``), 0 where all is right.

    Where there are as many cylinders as such coordinates it is one for each cylinder: the force, N, that is missing
    along it, or that times a lever where each coordinate moves one. Expressions in the dependent coordinates nearby
    (n - g,), the observer's state ``X`` (nx,), SI, the mass of the payload and the parameters.

    ``pistons``, ``speeds`` (actuators,), ``rates`` (actuators, nx), the derivatives of the speeds by X; ``levers``
    (a, actuators) of an actuator's force in g. ``deviation`` (actuators,), m/s or rad/s: symbols of the standard
    deviations of the speeds, over which the friction is smoothed; (0,) where they count as known. ``signs``
    (actuators,): the sign of the friction, -1 to 1, as far as it is known, ``bounds`` (actuators,), N or N m, its
    largest size where it is not. ``concerns`` (a, actuators): whose friction is in an equation. ``rate`` (nx,), SI:
    symbols of the rates of X where a sensor's delay is uncertain, else (0,).
    """

    near: ca.SX
    X: ca.SX
    deviation: ca.SX
    g: ca.SX
    pistons: ca.SX
    speeds: ca.SX
    rates: ca.SX
    signs: ca.SX
    bounds: ca.SX
    levers: ca.SX
    concerns: np.ndarray
    rate: ca.SX


def force_balance(machine: Machine, names: tuple[str, ...], smooth: bool = False, open_loops: bool = False,
                  rated: bool = False) -> ForceBalance:
    """Residual of the equations of motion (Pyrhönen et al., mass estimation, Eq. 55) at coordinates solved for the
    independent ones.

    The sensors' offsets and gains appear in it as errors of what the observer found, so that their uncertainty reaches
    the mass as that of every other parameter. ``smooth``: the friction over the deviation of the speeds.
    ``open_loops``: in all coordinates q of the mechanism, (n,), instead of ``near`` and of the positions in X, and
    without the sensors' errors: for those who follow what these do to the state. ``rated``: with errors of delays, too,
    for those who know the rates.
    """
    X, near = ca.SX.sym('X', len(names)), ca.SX.sym('near', len(machine.system.dependent))
    deviation = ca.SX.sym('deviation', len(machine.actuators)) if smooth else ca.SX(0, 1)
    system, reduced, actuators = machine.system, machine.reduced, machine.actuators
    rate = ca.SX.sym('rate', len(names) * (rated and uncertain_delays(machine)))
    part = state_parts(names, X if open_loops else without_sensor_errors(machine, names, X, rate))
    z, zd, zdd, p = (part[kind] for kind in ('position', 'velocity', 'acceleration', 'pushes'))
    speeds, unknown = machine.piston_rates @ zd, ca.SX.sym('friction', len(actuators))
    force = actuators.forces(p) - unknown
    needed = ca.substitute(inertial_forces(system, reduced.R @ zdd + reduced.S @ reduced.c), system.qd, reduced.qd)
    g = reduced.R.T @ needed - machine.piston_rates.T @ force      # Mbar zdd - Qbar - S' F
    if part['swing'].numel():
        g = g + pull(machine, zdd, part['swing'], part['swing_rate']).force
    g = g[machine.actuated]
    g, concerns = by_actuator(machine, g)
    g, concerns = g[list(machine.weighing)], concerns[list(machine.weighing)]
    levers = ca.jacobian(g, unknown)
    g = ca.substitute(g, unknown, actuators.resisting_forces(system.q[machine.pistons], speeds, p,
                                                             deviation if smooth else None))
    signs = actuators.friction_signs(speeds, deviation) if smooth else ca.SX(0, 1)
    states = machine.parameters.states
    inclined = [states[key] for key in machine.base_states.values()]
    rates = ca.jacobian(speeds, X)
    q = system.q if open_loops else machine.closed(near, z, 1)
    g, pistons, speeds, rates, signs, bounds, levers = ca.substitute(
        [g, system.q[machine.pistons], speeds, rates, signs, actuators.friction_bounds(p), levers],
        [system.q, reduced.zd, ca.vertcat(*inclined)], [q, zd, part['base']])
    return ForceBalance(system.q if open_loops else near, X, deviation, g, pistons, speeds, rates, signs, bounds,
                        levers, concerns, rate)


def without_sensor_errors(machine: Machine, names: tuple[str, ...], X: ca.SX, rate: ca.SX | None = None) -> ca.SX:
    """The state (nx,) that the same samples would have given with offsets and gains that differ from the file's, and,
    with the ``rate`` (nx,) of the state, delays. What has no sensor itself is as late as the position it comes from.

    It is X itself at the file's numbers.
    """
    entries, sensors = ca.vertsplit(X), direct(machine)
    for i, name in enumerate(names):
        channel = sensors.get(name, sensors.get(f'position/{name.partition("/")[2]}'))
        if rate is not None and rate.numel() and channel is not None:
            entries[i] = entries[i] + rate[i] * late(machine, channel)
    for name, channel in sensors.items():
        i, (gain, offset, zero), found = names.index(name), channel.nominal, errors_of(machine, channel)
        if any(isinstance(number, ca.SX) for number in found):
            entries[i] = (gain * (entries[i] - zero) + offset - found[1]) / found[0] + found[2]
    return ca.vertcat(*entries)
