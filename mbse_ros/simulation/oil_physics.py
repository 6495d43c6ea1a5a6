# SPDX-License-Identifier: Apache-2.0
"""What the oil of a real machine does beside its file: pumps that sag, ripple and follow the load, load-holding valves,
long hoses, air."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi

import casadi as ca
import numpy as np

from ..description.machine_parts import Valve
from ..machine import Machine
from ..machine.channels import ATMOSPHERE
from .physics import PlantPhysics

MPA = 1e6
PUMP_LAG = 0.1          # s, of a pump's pressure after what it follows
OPENED = 0.01           # of the nominal command: a spool from which on a port reports its load to the pump
HOLDING_LAG = 0.01      # s, of the poppet of a load-holding valve
HOLDING_SPAN = 0.5      # of its cracking pressure, from which on it is open, beyond it
OIL_SPEED = 5.0         # m/s in a hose at the nominal flow, by which its bore is chosen
OIL_DENSITY, OIL_VISCOSITY, HOSE_MODULUS = 870.0, 0.04, 7e8     # kg/m3, Pa s, Pa of hose and oil
POLYTROPIC = 1.4        # air in oil that is compressed fast
VAPOUR = 1e4            # Pa, below which a pressure hardly falls any more
States = Mapping[str, ca.SX]        # by name


class OilPhysics:
    """The expressions of ``PlantPhysics`` for the oil of one machine, pressures and flows in Pa and m3/s, pressures
    among the states in MPa. ``wanted``: owners of the states by kind."""

    def __init__(self, settings: PlantPhysics, machine: Machine) -> None:
        self.settings, self.machine, self.valves = settings, machine, tuple(machine.hydraulics.valves.values())
        self._ports = [port for valve in self.valves for port in (valve.a, valve.b)]
        self._moved = settings.sag > 0 or settings.sensing > 0
        self.pumps = tuple(dict.fromkeys(valve.pump for valve in self.valves)) if self._moved or settings.ripple else ()
        self.hoses = tuple(name for name in machine.volumes if name in self._ports) if settings.hose else ()
        self.wanted: dict[str, tuple[str, ...]] = {
            'pump': self.pumps if self._moved else (), 'ripple': ('sin', 'cos') if settings.ripple else (),
            'holding': machine.cylinders if settings.holding else (), 'hose': self.hoses, 'hose_flow': self.hoses}

    def start(self, pressure: np.ndarray) -> dict[str, float]:
        """States that are not zero at rest at pressures (volumes,), MPa."""
        still = [min(self._nominal(name), self.settings.sensing or np.inf) for name in self.pumps]
        return {'ripple/cos': 1.0, **{f'pump/{name}': value / MPA for name, value in zip(self.pumps, still)},
                **{f'hose/{name}': pressure[self.machine.volumes.index(name)] for name in self.hoses}}

    def supplies(self, states: States) -> dict[str, ca.SX] | None:
        """Pressures of the pumps; None: the file's."""
        if not self.pumps:
            return None
        values, ripple = self.machine.circuit.values, 0.0
        found = {name: states[f'pump/{name}'] * MPA if self._moved else values(self.machine.hydraulics.supplies[name])
                 for name in self.pumps}
        if self.settings.ripple:
            ripple = self.settings.ripple * states['ripple/sin']
        return {name: ca.SX(value + ripple) for name, value in found.items()}

    def at_valves(self, states: States, p: ca.SX) -> ca.SX:
        """Pressures (volumes,) at the valves' end of the hoses."""
        return ca.vertcat(*(states[f'hose/{name}'] * MPA if name in self.hoses else p[i]
                            for i, name in enumerate(self.machine.volumes))) if self.hoses else p

    def held(self, states: States, spools: ca.SX, flows: ca.SX) -> ca.SX:
        """Flows (2 a valve,), of which those that leave a piston side pass its load-holding valve, too: in series with
        the edge of the main valve, and as large as that at the nominal command."""
        if not self.settings.holding:
            return flows
        found = ca.vertsplit(flows)
        for name in self.machine.cylinders:
            opening = states[f'holding/{name}']
            for k in [k for k, port in enumerate(self._ports) if port == self._volume(name, 'piston')]:
                valve, edge = self.valves[k // 2], ('a_tank', 'b_tank')[k % 2]
                gain = self.machine.circuit.values(valve.gains[edge]) if edge in valve.gains else 1.0
                main = gain * ca.fabs(spools[k // 2]) / _command(valve)
                through = opening / ca.sqrt(opening ** 2 + main ** 2 + 1e-12)
                found[k] = ca.if_else(found[k] < 0, found[k] * through, found[k])
        return ca.vertcat(*found)

    def into_volumes(self, states: States, flows: ca.SX) -> ca.SX:
        """Flows (2 a valve,) whose sums are what enters the volumes: those of the valves, or of the hoses."""
        if not self.hoses:
            return flows
        found = [ca.SX(0)] * len(self._ports)
        for name in self.hoses:
            found[self._ports.index(name)] = states[f'hose_flow/{name}']
        return ca.vertcat(*found)

    def air(self, p: ca.SX) -> ca.SX | None:
        """Compressibility (volumes,), 1/Pa, of the air in the oil: a share at the atmosphere's pressure that is
        compressed without loss of heat; below ``VAPOUR`` it is what it is there."""
        if not self.settings.air:
            return None
        absolute = ca.fmax(p, VAPOUR)
        return self.settings.air * (ATMOSPHERE / absolute) ** (1.0 / POLYTROPIC) / (POLYTROPIC * absolute)

    def rates(self, states: States, p: ca.SX, flows: ca.SX, spools: ca.SX) -> dict[str, ca.SX]:
        """Rates of the states that there are, by name."""
        found = dict[str, ca.SX]()
        if self.settings.ripple:
            omega = 2.0 * pi * self.settings.ripple_rate
            found |= {'ripple/sin': omega * states['ripple/cos'], 'ripple/cos': -omega * states['ripple/sin']}
        at_valves = self.at_valves(states, p)
        for name in self.wanted['pump']:
            wanted = self._delivered(name, at_valves, flows, spools) / MPA
            found[f'pump/{name}'] = (wanted - states[f'pump/{name}']) / PUMP_LAG
        for name in self.wanted['holding']:
            piston, rod = (p[self.machine.volumes.index(self._volume(name, side))] for side in ('piston', 'rod'))
            crack = self.settings.holding * max(self._nominal(valve.pump) for valve in self.valves)
            opening = (piston + self.settings.holding_ratio * rod - crack) / (HOLDING_SPAN * crack)
            found[f'holding/{name}'] = (ca.fmin(ca.fmax(opening, 0), 1) - states[f'holding/{name}']) / HOLDING_LAG
        for name in self.hoses:
            own = [k for k, port in enumerate(self._ports) if port == name]
            inertance, capacity, resistance = self.hose(name)
            flow, i = states[f'hose_flow/{name}'], self.machine.volumes.index(name)
            found[f'hose/{name}'] = (sum(flows[k] for k in own) - flow) / capacity / MPA
            found[f'hose_flow/{name}'] = (at_valves[i] - p[i] - resistance * flow) / inertance
        return found

    def hose(self, volume: str) -> tuple[float, float, float]:
        """Of a volume's hose: inertance, kg/m4, capacity, m3/Pa, and resistance of laminar flow, Pa s/m3."""
        flow = max(_flow(valve) for valve in self.valves if volume in (valve.a, valve.b))
        length, area = self.settings.hose, flow / OIL_SPEED
        return (OIL_DENSITY * length / area, area * length / HOSE_MODULUS,
                8.0 * pi * OIL_VISCOSITY * length / area ** 2)

    def _delivered(self, pump: str, p: ca.SX, flows: ca.SX, spools: ca.SX) -> ca.SX:
        """Pressure that a pump goes to: the file's, or the largest load and a margin, less what it sags."""
        most, volumes = ca.SX(self._nominal(pump)), self.machine.volumes
        own = [(i, valve) for i, valve in enumerate(self.valves) if valve.pump == pump]
        if self.settings.sensing:
            load = ca.SX(0)
            for i, valve in own:
                a, b = (p[volumes.index(port)] for port in (valve.a, valve.b))
                load = ca.fmax(load, ca.if_else(ca.fabs(spools[i]) > OPENED * _command(valve),
                                                ca.if_else(spools[i] > 0, a, b), 0))
            most = ca.fmin(most, load + self.settings.sensing)
        drawn = sum(ca.fmax(ca.if_else(spools[i] > 0, flows[2 * i], flows[2 * i + 1]), 0) for i, _ in own)
        return most * (1.0 - self.settings.sag * ca.fmin(drawn / sum(_flow(valve) for _, valve in own), 1.0))

    def _volume(self, cylinder: str, side: str) -> str:
        """Volume of a chamber."""
        return next(name for name, item in self.machine.hydraulics.volumes.items() if (cylinder, side) in item.chambers)

    def _nominal(self, pump: str) -> float:
        """Pressure of a pump in the file."""
        return self.machine.hydraulics.supplies[pump].value


def _flow(valve: Valve) -> float:
    """Nominal flow of a valve with data, m3/s."""
    return valve.nominal_flow.value if valve.nominal_flow else 1.0


def _command(valve: Valve) -> float:
    """Nominal command of a valve with data, V."""
    return valve.nominal_command.value if valve.nominal_command else 1.0
