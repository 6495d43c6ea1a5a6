# SPDX-License-Identifier: Apache-2.0
"""The hydraulic circuit as a network of volumes, flows and cylinder chambers (paper 003, section 2.2, Eq. 18)."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..mechanism.description.model import MachineDescription
from ..mechanism.parameters import ParameterSet
from .fluid import pressure_rate
from .friction import brown_mcphee, pressure_friction
from .valve import flow_coefficient, port_flows


@dataclass(frozen=True)
class Circuit:
    """Pressures, flows and forces of a machine's hydraulics; SI, as CasADi expressions.

    Chambers are ordered piston, rod of each cylinder; flows a, b of each valve. ``T_pQ`` (volumes, flows) joins
    flows to volumes, ``T_Vcyl`` (volumes, chambers) chambers to volumes, ``T_sz`` (chambers, cylinders) gives the
    direction in which a chamber grows.
    """

    description: MachineDescription
    parameters: ParameterSet

    @property
    def cylinders(self) -> tuple[str, ...]:
        """Names of the cylinders."""
        return tuple(self.description.cylinders)

    @property
    def volumes(self) -> tuple[str, ...]:
        """Names of the control volumes."""
        return tuple(self.description.hydraulics.volumes)

    @property
    def valves(self) -> tuple[str, ...]:
        """Names of the valves."""
        return tuple(self.description.hydraulics.valves)

    @property
    def T_sz(self) -> np.ndarray:
        """(chambers, cylinders): +1 on the piston side, -1 on the rod side."""
        return np.kron(np.eye(len(self.cylinders)), [[1.0], [-1.0]])

    @property
    def T_Vcyl(self) -> np.ndarray:
        """(volumes, chambers): 1 where the chamber is part of the volume."""
        chambers = [(name, side) for name in self.cylinders for side in ('piston', 'rod')]
        volumes = self.description.hydraulics.volumes.values()
        return np.array([[float(chamber in volume.chambers) for chamber in chambers] for volume in volumes])

    @property
    def T_pQ(self) -> np.ndarray:
        """(volumes, flows): 1 where the flow enters the volume."""
        ports = [port for valve in self.description.hydraulics.valves.values() for port in (valve.a, valve.b)]
        return np.array([[float(port == volume) for port in ports] for volume in self.volumes])

    def areas(self) -> ca.SX:
        """Piston areas of the chambers (chambers,), m2."""
        areas = []
        for name, cylinder in self.description.cylinders.items():
            bore = self.parameters.value(f'cylinders.{name}.bore', cylinder.bore)
            rod = self.parameters.value(f'cylinders.{name}.rod', cylinder.rod)
            areas += [np.pi / 4 * bore ** 2, np.pi / 4 * (bore ** 2 - rod ** 2)]
        return ca.vertcat(*areas)

    def heights(self, z: ca.SX) -> ca.SX:
        """Heights of the chambers (chambers,), m; never below zero, so that no volume turns negative."""
        strokes = [self.parameters.value(f'cylinders.{name}.stroke', c.stroke)
                   for name, c in self.description.cylinders.items()]
        heights = [item for i, stroke in enumerate(strokes) for item in (z[i], stroke - z[i])]
        return ca.fmax(ca.vertcat(*heights), 0)

    def pressure_rates(self, z: ca.SX, zd: ca.SX, flows: ca.SX) -> ca.SX:
        """Rates (volumes,), Pa/s, from piston positions, m, velocities, m/s, and flows (flows,), m3/s (Eq. 18)."""
        hydraulics, areas = self.description.hydraulics, self.areas()
        oil = self.parameters.value('hydraulics.oil_bulk_modulus', hydraulics.oil_bulk_modulus)
        chamber_volumes = areas * self.heights(z)
        inflow = ca.SX(self.T_pQ) @ flows
        expansion = ca.SX(self.T_Vcyl) @ (areas * (ca.SX(self.T_sz) @ zd))
        rates = []
        for i, (name, volume) in enumerate(hydraulics.volumes.items()):
            key = f'hydraulics.volumes.{name}'
            wall = self.parameters.value(f'{key}.cylinder_bulk_modulus', volume.cylinder_bulk_modulus)
            parts = [(chamber_volumes[k], wall) for k in np.flatnonzero(self.T_Vcyl[i])]
            parts += [(self.parameters.value(f'{key}.hoses.{h}.volume', hose.volume),
                       self.parameters.value(f'{key}.hoses.{h}.bulk_modulus', hose.bulk_modulus))
                      for h, hose in enumerate(volume.hoses)]
            rates.append(pressure_rate(oil, parts, inflow[i], expansion[i]))
        return ca.vertcat(*rates)

    def valve_flows(self, name: str, spool: ca.SX, p: ca.SX) -> ca.SX:
        """Flows (2,), m3/s, into ports a and b of an orifice valve at a spool position, V, and pressures, Pa."""
        hydraulics = self.description.hydraulics
        valve, key = hydraulics.valves[name], f'hydraulics.valves.{name}'
        coefficient = flow_coefficient(*(self.parameters.value(f'{key}.{item}', getattr(valve, item))
                                         for item in ('nominal_flow', 'nominal_command', 'nominal_pressure')))
        pump, tank = (self.parameters.value(f'hydraulics.supplies.{s}', hydraulics.supplies[s])
                      for s in (valve.pump, valve.tank))
        limit = self.parameters.value(f'{key}.laminar_pressure', valve.laminar_pressure)
        a, b = (p[self.volumes.index(port)] for port in (valve.a, valve.b))
        return ca.vertcat(*port_flows(spool, pump, tank, a, b, coefficient, limit))

    def spool_rate(self, name: str, spool: ca.SX, command: ca.SX) -> ca.SX:
        """First-order lag of an orifice valve's spool, V/s (paper 003 Eq. 17); the command is cut at its limit."""
        valve = self.description.hydraulics.valves[name]
        limit = valve.command_limit.value
        lag = self.parameters.value(f'hydraulics.valves.{name}.time_constant', valve.time_constant)
        return (ca.fmin(ca.fmax(command, -limit), limit) - spool) / lag

    def hydraulic_forces(self, p: ca.SX) -> ca.SX:
        """Forces of the pressures along the cylinders (cylinders,), N (paper 003 Eq. 50)."""
        return ca.SX(self.T_sz.T) @ (self.areas() * (ca.SX(self.T_Vcyl.T) @ p))

    def friction_forces(self, zd: ca.SX, p: ca.SX) -> ca.SX:
        """Friction against the motion of each cylinder (cylinders,), N (paper 003 Eqs. 51-53)."""
        chamber_pressure = ca.SX(self.T_Vcyl.T) @ p
        forces = []
        for i, (name, cylinder) in enumerate(self.description.cylinders.items()):
            key, f = f'cylinders.{name}.friction', cylinder.friction
            c = {item: self.parameters.value(f'{key}.{item}', getattr(f, item)) for item in (
                'coulomb', 'static', 'transition_velocity', 'viscous', 'pressure_difference', 'pressure_rod', 'scale')}
            velocity = brown_mcphee(zd[i], c['coulomb'], c['static'], c['transition_velocity'], c['viscous'])
            pressure = pressure_friction(zd[i], chamber_pressure[2 * i], chamber_pressure[2 * i + 1],
                                         c['pressure_difference'], c['pressure_rod'], c['transition_velocity'])
            forces.append(c['scale'] * (velocity + pressure))
        return ca.vertcat(*forces)

    def end_stop_forces(self, z: ca.SX, zd: ca.SX) -> ca.SX:
        """Forces of the end dampers along the cylinders (cylinders,), N; zero inside the stroke or without dampers."""
        forces = []
        for i, cylinder in enumerate(self.description.cylinders.values()):
            stop, force = cylinder.end_stop, ca.SX(0)
            if stop is not None:
                low = stop.length.value - z[i]
                high = z[i] - (cylinder.stroke.value - stop.length.value)
                push = [ca.if_else(depth > 0, ca.fmax(stop.stiffness.value * depth + stop.damping.value * rate, 0), 0)
                        for depth, rate in ((low, -zd[i]), (high, zd[i]))]
                force = push[0] - push[1]
            forces.append(force)
        return ca.vertcat(*forces)
