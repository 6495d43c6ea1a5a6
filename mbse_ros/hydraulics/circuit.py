# SPDX-License-Identifier: Apache-2.0
"""The hydraulic circuit as a network of volumes, flows and cylinder chambers (Pyrhönen et al., mass estimation,
section 2.2, Eq. 18), with its parts: lumped fluid, friction of cylinders (Brown-McPhee with pressure terms), and
directional valves, whose flow has a laminar part and is switched between pump and tank by the spool's sign.

The functions take numbers or CasADi expressions alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import casadi as ca
import numpy as np

from ..description.basics import Scalar
from ..description.machine_parts import Cylinder, Hydraulics, Valve
from ..description.model import MechanismDescription
from ..errors import DescriptionError
from ..mechanism.values import Values

SPREAD = 5.0        # tanh(4 v / (SPREAD sigma)) rises at 0 as the mean sign of a normally distributed velocity does
STEEL = 1e8, 1e5, 0.0       # N/m, N s/m, m: an end of a stroke without a damper


def flow_coefficient(nominal_flow: Any, nominal_command: Any, nominal_pressure: Any) -> Any:
    """Flow coefficient Cv, m3/(s V Pa^0.5) (Pyrhönen et al., mass estimation, Eq. 14)."""
    return nominal_flow / (nominal_command * ca.sqrt(nominal_pressure))


def turbulent_root(drop: Any, limit: Any) -> Any:
    """Signed square root of a pressure drop, linear below ``limit`` (Pyrhönen et al., mass estimation, Eq. 15 without
    its factor).

    Both branches are ``drop / sqrt(max(|drop|, limit))``, whose derivative is finite everywhere.
    """
    return drop / ca.sqrt(ca.fmax(ca.fabs(drop), limit))


def port_flows(spool: Any, pump: Any, tank: Any, a: Any, b: Any, coefficient: Any, limit: Any) -> tuple[Any, Any]:
    """Flows into ports a and b, m3/s; spool > 0 joins pump to a and b to tank (Pyrhönen et al., mass estimation,
    Eqs. 12, 13, 15)."""
    source_a = ca.if_else(spool > 0, pump, tank)
    source_b = ca.if_else(spool > 0, tank, pump)
    opening = ca.fabs(spool) * coefficient
    return opening * turbulent_root(source_a - a, limit), opening * turbulent_root(source_b - b, limit)


def edge_flows(opening: Any, pump: Any, tank: Any, a: Any, b: Any, limit: Any, gains: Mapping[str, Any],
               held: Any = None) -> tuple[Any, Any]:
    """As ``port_flows`` with a gain of each of the four edges, by name (1 where it is missing).

    ``opening``, m3/s per Pa^0.5, signed as the spool. ``held``, Pa: the largest drop from the pump that a pressure
    compensator leaves over the spool; None: an orifice.
    """
    size = ca.fabs(opening)
    supplied = [pump - port for port in (a, b)]
    if held is not None:
        supplied = [ca.fmin(drop, held) for drop in supplied]
    forward = (gains.get('pump_a', 1) * turbulent_root(supplied[0], limit),
               gains.get('b_tank', 1) * turbulent_root(tank - b, limit))
    backward = (gains.get('a_tank', 1) * turbulent_root(tank - a, limit),
                gains.get('pump_b', 1) * turbulent_root(supplied[1], limit))
    return tuple(size * ca.if_else(opening > 0, one, other) for one, other in zip(forward, backward))


def beyond(spool: Any, band: Any) -> Any:
    """The spool, V, beyond its dead band; 0 inside."""
    return ca.sign(spool) * ca.fmax(ca.fabs(spool) - band, 0)


def smoothed(transition: Any, deviation: Any) -> Any:
    """Transition velocity, m/s, of the mean friction at a velocity that is known to ``deviation``, m/s."""
    return transition if isinstance(deviation, int) else ca.sqrt(transition ** 2 + (SPREAD * deviation) ** 2)


def brown_mcphee(velocity: Any, coulomb: Any, static: Any, transition: Any, viscous: Any) -> Any:
    """Friction force, N, against ``velocity``, m/s (Pyrhönen et al., mass estimation, Eq. 51)."""
    ratio = velocity / transition
    stribeck = ratio / (ratio ** 2 / 4 + 0.75) ** 2
    return coulomb * ca.tanh(4 * ratio) + (static - coulomb) * stribeck + viscous * velocity


def directed(velocity: Any, out: Any, back: Any, transition: Any) -> Any:
    """Factor on the friction of a piston that moves out or in; in between as smooth as the sign of the velocity."""
    return (out + back) / 2 + (out - back) / 2 * ca.tanh(4 * velocity / transition)


def pressure_friction(velocity: Any, piston: Any, rod: Any, difference: Any, rod_side: Any, transition: Any) -> Any:
    """Part of the friction, N, that grows with the pressures, Pa; coefficients in m2 (Pyrhönen et al., mass estimation,
    Eq. 52).

    The sign of the velocity is smoothed to tanh(4 v / vs), as Pyrhönen et al., mass estimation, section 4 does in its
    plant.
    """
    return (ca.fabs(piston - rod) * difference + rod * rod_side) * ca.tanh(4 * velocity / transition)


def effective_compressibility(oil_modulus: Any, parts: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Total volume, m3, and effective compressibility 1/Be, 1/Pa, of parts (volume, wall modulus).

    Pyrhönen et al., mass estimation, Eq. 10.
    """
    total = sum(volume for volume, _ in parts)
    return total, 1 / oil_modulus + sum(volume / modulus for volume, modulus in parts) / total


def pressure_rate(oil_modulus: Any, parts: Sequence[tuple[Any, Any]], inflow: Any, expansion: Any) -> Any:
    """Pressure rate of a control volume, Pa/s, from its inflow and expansion, m3/s (Pyrhönen et al., mass estimation,
    Eq. 9).

    ``V / Be`` of Eqs. 9 and 10 is ``sum(V_k) / B_oil + sum(V_k / B_k)``: no quotient of volumes is left.
    """
    capacity = sum(volume for volume, _ in parts) / oil_modulus + sum(volume / modulus for volume, modulus in parts)
    return (inflow - expansion) / capacity


@dataclass(frozen=True)
class Circuit:
    """Pressures, flows and forces of a machine's hydraulics; SI, as CasADi expressions.

    Chambers are ordered piston, rod of each cylinder; flows a, b of each valve. ``T_pQ`` (volumes, flows) joins
    flows to volumes, ``T_Vcyl`` (volumes, chambers) chambers to volumes, ``T_sz`` (chambers, cylinders) gives the
    direction in which a chamber grows.
    """

    description: MechanismDescription
    values: Values

    @property
    def hydraulics(self) -> Hydraulics:
        """The file's section of that name. Raises DescriptionError without it."""
        if self.description.hydraulics is None:
            raise DescriptionError(self.description.file, 'hydraulics', None, 'this section, of a machine')
        return self.description.hydraulics

    @property
    def cylinders(self) -> tuple[str, ...]:
        """Names of the cylinders."""
        return tuple(self.description.cylinders)

    @property
    def volumes(self) -> tuple[str, ...]:
        """Names of the control volumes."""
        return tuple(self.hydraulics.volumes)

    @property
    def valves(self) -> tuple[str, ...]:
        """Names of the valves."""
        return tuple(self.hydraulics.valves)

    @property
    def T_sz(self) -> np.ndarray:
        """(chambers, cylinders): +1 on the piston side, -1 on the rod side."""
        return np.kron(np.eye(len(self.cylinders)), [[1.0], [-1.0]])

    @property
    def T_Vcyl(self) -> np.ndarray:
        """(volumes, chambers): 1 where the chamber is part of the volume."""
        chambers = [(name, side) for name in self.cylinders for side in ('piston', 'rod')]
        volumes = self.hydraulics.volumes.values()
        return np.array([[float(chamber in volume.chambers) for chamber in chambers] for volume in volumes]
                        ).reshape(len(volumes), len(chambers))

    @property
    def T_pQ(self) -> np.ndarray:
        """(volumes, flows): 1 where the flow enters the volume."""
        ports = [port for valve in self.hydraulics.valves.values() for port in (valve.a, valve.b)]
        return np.array([[float(port == volume) for port in ports] for volume in self.volumes]
                        ).reshape(len(self.volumes), len(ports))

    def areas(self) -> ca.SX:
        """Areas of the chambers (chambers,), m2, of all cylinders side by side."""
        areas = []
        for cylinder in self.description.cylinders.values():
            bore, rod = self.values(cylinder.bore), self.values(cylinder.rod)
            each = cylinder.count * np.pi / 4
            areas += [each * bore ** 2, each * (bore ** 2 - rod ** 2)]
        return ca.vertcat(*areas)

    def heights(self, z: ca.SX) -> ca.SX:
        """Heights of the chambers (chambers,), m; never below zero, so that no volume turns negative."""
        strokes = [self.values(cylinder.stroke) for cylinder in self.description.cylinders.values()]
        heights = [item for i, stroke in enumerate(strokes) for item in (z[i], stroke - z[i])]
        return ca.fmax(ca.vertcat(*heights), 0)

    def pressure_rates(self, z: ca.SX, zd: ca.SX, flows: ca.SX, air: ca.SX | None = None) -> ca.SX:
        """Rates (volumes,), Pa/s, from piston positions, m, velocities, m/s, and flows (flows,), m3/s (Eq. 18).

        ``air`` (volumes,), 1/Pa: compressibility of the air in the oil of each volume.
        """
        hydraulics, areas = self.hydraulics, self.areas()
        oil = self.values(hydraulics.oil_bulk_modulus)
        chamber_volumes = areas * self.heights(z)
        inflow = ca.SX(self.T_pQ) @ flows
        expansion = ca.SX(self.T_Vcyl) @ (areas * (ca.SX(self.T_sz) @ zd))
        rates = []
        for i, volume in enumerate(hydraulics.volumes.values()):
            wall = self.values(volume.cylinder_bulk_modulus)
            parts = [(chamber_volumes[k], wall) for k in np.flatnonzero(self.T_Vcyl[i])]
            parts += [(self.values(hose.volume), self.values(hose.bulk_modulus)) for hose in volume.hoses]
            modulus = oil if air is None else 1 / (1 / oil + air[i])
            rates.append(pressure_rate(modulus, parts, inflow[i], expansion[i]))
        return ca.vertcat(*rates)

    def valve_flows(self, name: str, spool: ca.SX, p: ca.SX, supplies: Mapping[str, ca.SX] | None = None) -> ca.SX:
        """Flows (2,), m3/s, into ports a and b of a valve at a spool position, V, and pressures, Pa.

        ``supplies``: pressures of measured supplies, Pa, instead of the file's.
        """
        hydraulics, values = self.hydraulics, self.values
        valve = hydraulics.valves[name]
        flow, command, drop = (values(self._given(valve, number)) for number in (
            valve.nominal_flow, valve.nominal_command, valve.nominal_pressure))
        pump, tank = ((supplies or {}).get(s, values(hydraulics.supplies[s])) for s in (valve.pump, valve.tank))
        limit = values(self._given(valve, valve.laminar_pressure))
        a, b = (p[self.volumes.index(port)] for port in (valve.a, valve.b))
        made_up = 0 if valve.make_up is None else self.make_up_flows(name, p, supplies)
        if valve.kind == 'orifice' and valve.dead_band is None and not valve.gains:
            coefficient = flow_coefficient(flow, command, drop)
            return ca.vertcat(*port_flows(spool, pump, tank, a, b, coefficient, limit)) + made_up
        band = 0.0 if valve.dead_band is None else values(valve.dead_band)
        opening = beyond(spool, band) * flow_coefficient(flow, command - band, drop)
        gains = {edge: values(gain) for edge, gain in valve.gains.items()}
        return made_up + ca.vertcat(*edge_flows(opening, pump, tank, a, b, limit, gains,
                                                drop if valve.kind == 'compensated' else None))

    def make_up_flows(self, name: str, p: ca.SX, supplies: Mapping[str, ca.SX] | None = None,
                      default: float = 1e5) -> ca.SX:
        """Flows (2,), m3/s, that the anti-cavitation valves of a valve's ports draw from the tank, in proportion to
        what is missing there; ``default``, Pa, where the file gives no ``make_up``."""
        hydraulics, values = self.hydraulics, self.values
        valve = hydraulics.valves[name]
        at = default if valve.make_up is None else values(valve.make_up)
        tank = (supplies or {}).get(valve.tank, values(hydraulics.supplies[valve.tank]))
        lack = ca.vertcat(*(ca.fmax(tank - p[self.volumes.index(port)], 0) for port in (valve.a, valve.b)))
        return values(self._given(valve, valve.nominal_flow)) / at * lack

    def spool_rate(self, name: str, spool: ca.SX, command: ca.SX) -> ca.SX:
        """First-order lag of a modelled valve's spool, V/s (Pyrhönen et al., mass estimation, Eq. 17); the command is
        cut at its limit."""
        valve = self.hydraulics.valves[name]
        limit = self._given(valve, valve.command_limit).value
        lag = self.values(self._given(valve, valve.time_constant))
        return (ca.fmin(ca.fmax(command, -limit), limit) - spool) / lag

    def hydraulic_forces(self, p: ca.SX) -> ca.SX:
        """Forces of the pressures along the cylinders (cylinders,), N (Pyrhönen et al., mass estimation, Eq. 50)."""
        return ca.SX(self.T_sz.T) @ (self.areas() * (ca.SX(self.T_Vcyl.T) @ p))

    def friction_forces(self, zd: ca.SX, p: ca.SX, deviation: ca.SX | None = None) -> ca.SX:
        """Friction against the motion of each cylinder (cylinders,), N (Pyrhönen et al., mass estimation, Eqs. 51-53).

        ``deviation`` (cylinders,), m/s: standard deviations of the velocities, over which the friction is smoothed.
        """
        chamber_pressure = ca.SX(self.T_Vcyl.T) @ p
        forces = []
        for i, cylinder in enumerate(self.description.cylinders.values()):
            c = self.friction_numbers(cylinder)
            transition = smoothed(c['transition_velocity'], 0 if deviation is None else deviation[i])
            velocity = brown_mcphee(zd[i], c['coulomb'], c['static'], transition, c['viscous'])
            pressure = pressure_friction(zd[i], chamber_pressure[2 * i], chamber_pressure[2 * i + 1],
                                         c['pressure_difference'], c['pressure_rod'], transition)
            scale = c['scale'] if cylinder.friction.out_scale is None is cylinder.friction.in_scale else (
                c['scale'] * directed(zd[i], c['out_scale'], c['in_scale'], transition))
            forces.append(cylinder.count * scale * (velocity + pressure))
        return ca.vertcat(*forces)

    def parallel_forces(self, z: ca.SX, zd: ca.SX) -> ca.SX:
        """Forces of what works beside the pistons (cylinders,), N, against their way out."""
        forces = []
        for i, cylinder in enumerate(self.description.cylinders.values()):
            c = {} if cylinder.parallel is None else {
                item.name: self.values(getattr(cylinder.parallel, item.name)) for item in fields(cylinder.parallel)}
            moved = z[i] - c['about'] if c else 0
            forces.append(cylinder.count * (c['constant'] + c['linear'] * moved + c['cubic'] * moved ** 3
                                            + c['damping'] * zd[i]) if c else ca.SX(0))
        return ca.vertcat(*forces)

    def resisting_forces(self, z: ca.SX, zd: ca.SX, p: ca.SX, deviation: ca.SX | None = None) -> ca.SX:
        """All that works against the motion of each cylinder (cylinders,), N: friction, and what is beside it."""
        friction = self.friction_forces(zd, p, deviation)
        beside = any(cylinder.parallel is not None for cylinder in self.description.cylinders.values())
        return friction + self.parallel_forces(z, zd) if beside else friction

    def friction_signs(self, zd: ca.SX, deviation: ca.SX) -> ca.SX:
        """Mean sign of each cylinder's friction (cylinders,), -1 to 1, at velocities known to ``deviation``, m/s."""
        return ca.vertcat(*(
            ca.tanh(4 * zd[i] / smoothed(self.values(cylinder.friction.transition_velocity), deviation[i]))
            for i, cylinder in enumerate(self.description.cylinders.values())))

    def friction_bounds(self, p: ca.SX) -> ca.SX:
        """Largest friction of each cylinder at standstill (cylinders,), N."""
        chamber_pressure, bounds = ca.SX(self.T_Vcyl.T) @ p, []
        for i, cylinder in enumerate(self.description.cylinders.values()):
            c = self.friction_numbers(cylinder)
            pressed = pressure_friction(1.0, chamber_pressure[2 * i], chamber_pressure[2 * i + 1],
                                        c['pressure_difference'], c['pressure_rod'], 1e-3)
            scale = c['scale'] if cylinder.friction.out_scale is None is cylinder.friction.in_scale else (
                c['scale'] * ca.fmax(c['out_scale'], c['in_scale']))
            bounds.append(cylinder.count * scale * (ca.fmax(c['static'], c['coulomb']) + pressed))
        return ca.vertcat(*bounds)

    def end_stop_forces(self, z: ca.SX, zd: ca.SX) -> ca.SX:
        """Forces of the end dampers along the cylinders (cylinders,), N; zero inside the stroke. Where the file has no
        dampers the ends are of steel."""
        forces = []
        for i, cylinder in enumerate(self.description.cylinders.values()):
            stop = cylinder.end_stop
            stiffness, damping, length = STEEL if stop is None else (
                stop.stiffness.value, stop.damping.value, stop.length.value)
            push = [ca.if_else(depth > 0, ca.fmax(stiffness * depth + damping * rate, 0), 0)
                    for depth, rate in ((length - z[i], -zd[i]), (z[i] - (cylinder.stroke.value - length), zd[i]))]
            forces.append(cylinder.count * (push[0] - push[1]))
        return ca.vertcat(*forces)

    def friction_numbers(self, cylinder: Cylinder) -> dict[str, ca.SX | float]:
        """Numbers of a cylinder's friction; those of a direction that the file leaves out are 1."""
        found = {item.name: getattr(cylinder.friction, item.name) for item in fields(cylinder.friction)}
        return {name: 1.0 if number is None else self.values(number) for name, number in found.items()}

    def _given(self, valve: Valve, number: Scalar | None) -> Scalar:
        """A number of a valve; raises DescriptionError where the file leaves it out."""
        if number is None:
            raise DescriptionError(self.description.file, f'hydraulics.valves.{valve.name}', None,
                                   f'all numbers of a valve of kind {valve.kind}, whose flow is modelled')
        return number
