# SPDX-License-Identifier: Apache-2.0
"""The force balance of a machine: how the cylinders' forces, its motion and its payload are related.

Pyrhönen et al., mass estimation, Eq. 55: ``g = Mbar(z, m) zdd - Qbar(z, zd, m) - S' (F_hydraulic - F_friction)`` in any
independent coordinates, S being the pistons' speeds by theirs. The payload's inverse dynamics solve it for the mass;
the observer takes it as a measurement of motion and mass together: see ``balance``.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..dynamics.forces.inertial_forces import inertial_forces
from ..machine import Machine
from ..machine.equations import by_cylinder
from .hydraulic_sensors import direct, errors_of
from .hydraulic_state import state_parts
from .swing import pull


@dataclass(frozen=True)
class ForceBalance:
    """``g`` (a,), N or N m: one equation for each coordinate that cylinders move and whose pressures are all measured
    (``Machine.weighing``), 0 where all is right.

    Where there are as many cylinders as such coordinates it is one for each cylinder: the force, N, that is missing
    along it, or that times a lever where each coordinate moves one. Expressions in the dependent coordinates nearby
    (n - g,), the observer's state ``X`` (nx,), SI, the mass of the payload and the parameters.

    ``pistons``, ``speeds`` (cylinders,), ``rates`` (cylinders, nx), the derivatives of the speeds by X; ``levers``
    (a, cylinders) of a cylinder's force in g. ``deviation`` (cylinders,), m/s: symbols of the standard deviations of
    the speeds, over which the friction is smoothed; (0,) where they count as known. ``signs`` (cylinders,): the sign of
    the friction, -1 to 1, as far as it is known, ``bounds`` (cylinders,), N, its largest size where it is not.
    ``concerns`` (a, cylinders): whose friction is in an equation.
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


def force_balance(machine: Machine, names: tuple[str, ...], smooth: bool = False, open_loops: bool = False
                  ) -> ForceBalance:
    """Residual of the equations of motion (Pyrhönen et al., mass estimation, Eq. 55) at coordinates solved for the
    independent ones.

    The sensors' offsets and gains appear in it as errors of what the observer found, so that their uncertainty reaches
    the mass as that of every other parameter. ``smooth``: the friction over the deviation of the speeds.
    ``open_loops``: in all coordinates q of the mechanism, (n,), instead of ``near`` and of the positions in X, and
    without the sensors' errors: for those who follow what these do to the state.
    """
    X, near = ca.SX.sym('X', len(names)), ca.SX.sym('near', len(machine.system.dependent))
    deviation = ca.SX.sym('deviation', len(machine.cylinders)) if smooth else ca.SX(0, 1)
    system, reduced, circuit = machine.system, machine.reduced, machine.circuit
    part = state_parts(names, X if open_loops else without_sensor_errors(machine, names, X))
    z, zd, zdd, p = (part[kind] for kind in ('position', 'velocity', 'acceleration', 'pressure'))
    speeds, unknown = machine.piston_rates @ zd, ca.SX.sym('friction', len(machine.cylinders))
    force = circuit.hydraulic_forces(p) - unknown
    needed = ca.substitute(inertial_forces(system, reduced.R @ zdd + reduced.S @ reduced.c), system.qd, reduced.qd)
    g = reduced.R.T @ needed - machine.piston_rates.T @ force      # Mbar zdd - Qbar - S' F
    if part['swing'].numel():
        g = g + pull(machine, zdd, part['swing'], part['swing_rate']).force
    g = g[machine.actuated]
    g, concerns = by_cylinder(machine, g)
    g, concerns = g[list(machine.weighing)], concerns[list(machine.weighing)]
    levers = ca.jacobian(g, unknown)
    g = ca.substitute(g, unknown, circuit.friction_forces(speeds, p, deviation if smooth else None))
    signs = circuit.friction_signs(speeds, deviation) if smooth else ca.SX(0, 1)
    states = machine.parameters.states
    inclined = [states[f'base.{axis}'] for axis in machine.inclinations]
    rates = ca.jacobian(speeds, X)
    q = system.q if open_loops else machine.closed(near, z, 1)
    g, pistons, speeds, rates, signs, bounds, levers = ca.substitute(
        [g, system.q[machine.pistons], speeds, rates, signs, circuit.friction_bounds(p), levers],
        [system.q, reduced.zd, ca.vertcat(*inclined)], [q, zd, part['inclination']])
    return ForceBalance(system.q if open_loops else near, X, deviation, g, pistons, speeds, rates, signs, bounds,
                        levers, concerns)


def without_sensor_errors(machine: Machine, names: tuple[str, ...], X: ca.SX) -> ca.SX:
    """The state (nx,) that the same samples would have given with offsets and gains that differ from the file's.

    It is X itself at the file's numbers.
    """
    entries = ca.vertsplit(X)
    for name, channel in direct(machine).items():
        i, (gain, offset, zero), found = names.index(name), channel.nominal, errors_of(machine, channel)
        if any(isinstance(number, ca.SX) for number in found):
            entries[i] = (gain * (entries[i] - zero) + offset - found[1]) / found[0] + zero
    return ca.vertcat(*entries)
