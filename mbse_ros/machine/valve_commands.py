# SPDX-License-Identifier: Apache-2.0
"""Feed-forward of the valves: the commands at which cylinders move at wanted speeds, against the forces that they have
now or that ``feed_forward`` plans.

While the pistons move steadily, chambers ask for flows Qa into the volume at a valve's port a and Qb out of that at
port b. Both edges have one opening, and what the pump gives beyond the mechanical power P is lost in them:
``ps Qa - pt Qb - P = Qa drop(Qa / ua) + Qb drop(Qb / ub)`` with ``drop(x) = x^2`` of a turbulent edge and
``x sqrt(pl)`` below the laminar pressure pl (Pyrhönen et al., mass estimation, Eqs. 12 to 15); ua, ub: m3/s per Pa^0.5
of the edges, in proportion to the command beyond the dead band. So the pressures that the new speeds bring need not be
known. A compensated valve holds the drop of the edge from the pump as long as the pump has enough. A load that pulls
empties the chamber at the pump's edge; then the edge to the tank alone sets the speed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf, sqrt
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from ..description.basics import Scalar
from ..description.machine_parts import Valve
from ..errors import DescriptionError, SettingError
from .machine import Machine

LEAST = 1e-12       # m3/s: a flow below is none
DOUBLINGS = 60      # of an opening, within which one is found that is large enough


class SpeedCommands(NamedTuple):
    """``commands`` (v,), V, within the limits; ``shares`` (v,), 0 to 1, of the wanted speeds that they give. A valve
    whose pump cannot move its cylinders against their forces stays closed: share 0."""

    commands: np.ndarray
    shares: np.ndarray


class _Direction(NamedTuple):
    """One direction of a valve: coefficients of the edges from the pump and to the tank, m3/s per V and Pa^0.5;
    ``band`` and ``limit`` of the command, V; ``laminar``, Pa; ``held``, Pa: drop at the pump's edge that a compensator
    leaves, infinite without one."""

    inlet: float
    outlet: float
    band: float
    limit: float
    laminar: float
    held: float

    def drop(self, x: float) -> float:
        """Pa over an edge with a flow of ``x``, Pa^0.5, times its opening."""
        return max(x * x, x * sqrt(self.laminar))

    def root(self, drop: float) -> float:
        """The inverse; 0 of a drop below 0."""
        return min(sqrt(drop), drop / sqrt(self.laminar)) if drop > 0.0 else 0.0

    def opening(self, inflow: float, outflow: float, pump: float, tank: float, power: float) -> float:
        """V beyond the band for flows from the pump and to the tank, m3/s, that do a ``power``, W; infinite where the
        pump cannot."""
        spare = pump * inflow - tank * outflow - power

        def lost(u: float) -> float:
            return inflow * self.drop(inflow / (u * self.inlet)) + outflow * self.drop(outflow / (u * self.outlet))

        def at_pump(u: float) -> float:
            """Pa at the port to which the pump is joined, as the force and the other port have it."""
            return (power + outflow * (tank + self.drop(outflow / (u * self.outlet)))) / inflow

        u = inf
        if spare > 0.0:
            turbulent = sqrt((inflow ** 3 / self.inlet ** 2 + outflow ** 3 / self.outlet ** 2) / spare)
            u = _first(lambda u: spare - lost(u), turbulent)
        if inflow > LEAST and self.held < inf:
            held = inflow / (self.inlet * self.root(self.held))
            u = held if pump - at_pump(held) >= self.held else u
        if inflow > LEAST and outflow > LEAST and u < inf and at_pump(u) < tank:       # a load that pulls
            u = outflow / (self.outlet * self.root((tank * inflow - power) / outflow - tank))
        return u


class ValveFeedForward:
    """Of one machine, at the nominal numbers of its file. ``valves`` (v,) and ``cylinders`` (c,): names in the order of
    the arrays; ``moved`` (v, c): which a valve moves. Raises DescriptionError for a valve without numbers (kind
    unknown), and where two valves feed one volume: how they share a flow is not known."""

    def __init__(self, machine: Machine) -> None:
        self.machine, description = machine, machine.description
        self.valves, self.cylinders = machine.valves, machine.cylinders
        if not machine.valves:
            raise DescriptionError(description.file, 'hydraulics.valves', None, 'valves, of a machine with cylinders')
        ports = [port for valve in machine.hydraulics.valves.values() for port in (valve.a, valve.b)]
        for port in ports:
            if ports.count(port) > 1:
                raise DescriptionError(description.file, 'hydraulics.valves', port, 'a volume at the port of one valve')
        squares = [(item.count * np.pi / 4, item.bore.value ** 2, item.rod.value ** 2)
                   for item in description.cylinders.values()]
        areas = np.array([area for n, bore, rod in squares for area in (n * bore, n * (bore - rod))])
        circuit = machine.circuit
        self._expansion = circuit.T_Vcyl @ np.diag(areas) @ circuit.T_sz       # (volumes, cylinders), m2
        self.moved = np.array([np.abs(self._expansion[[machine.volumes.index(port) for port in (valve.a, valve.b)]]
                                      ).max(axis=0) > 0.0 for valve in machine.hydraulics.valves.values()])
        self._ways = [(self._direction(valve, 'pump_a', 'b_tank'), self._direction(valve, 'pump_b', 'a_tank'))
                      for valve in machine.hydraulics.valves.values()]

    def __call__(self, speeds: np.ndarray, pressures: np.ndarray | None = None, forces: np.ndarray | None = None,
                 supplies: Mapping[str, float] | None = None) -> SpeedCommands:
        """Commands for piston ``speeds`` (c,), m/s, steady ones.

        Against the forces of ``pressures`` of the volumes, Pa, as they are now, with the friction of the motion that
        there is; or against ``forces`` (c,), N, of the oil along the cylinders, friction included, that are planned.
        ``supplies``: measured pressures of supplies, Pa, in place of the file's. Raises SettingError for numbers that
        are not finite, neither or both of pressures and forces, and cylinders of one valve whose speeds ask for oil in
        both directions.
        """
        hydraulics, volumes = self.machine.hydraulics, self.machine.volumes
        speeds = _finite('speeds', speeds, len(self.cylinders))
        if (pressures is None) == (forces is None):
            raise SettingError('pressures', pressures, 'either pressures or forces')
        growth = self._expansion @ speeds
        works = np.zeros(0) if forces is None else _finite('forces', forces, len(self.cylinders)) * speeds
        p = np.zeros(0) if pressures is None else _finite('pressures', pressures, len(volumes))
        commands, shares = np.zeros(len(self.valves)), np.ones(len(self.valves))
        for k, (valve, ways) in enumerate(zip(hydraulics.valves.values(), self._ways)):
            a, b = volumes.index(valve.a), volumes.index(valve.b)
            flows = growth[a], -growth[b]
            if max(map(abs, flows)) < LEAST:
                continue
            if min(flows) < -LEAST and max(flows) > LEAST:
                raise SettingError('speeds', speeds.tolist(), f'one direction of all cylinders of {valve.name}')
            power = float(p[a] * flows[0] - p[b] * flows[1]) if len(p) else float(works[self.moved[k]].sum())
            out = sum(flows) > 0.0
            pump, tank = ((supplies or {}).get(name, hydraulics.supplies[name].value)
                          for name in (valve.pump, valve.tank))
            inflow, outflow = flows if out else (-flows[1], -flows[0])
            size, shares[k] = _command(ways[0 if out else 1], inflow, outflow, pump, tank, power)
            commands[k] = size if out else -size
        return SpeedCommands(commands, shares)

    def _direction(self, valve: Valve, inlet: str, outlet: str) -> _Direction:
        flow, command, drop, limit, laminar = (self._number(valve, number) for number in (
            valve.nominal_flow, valve.nominal_command, valve.nominal_pressure, valve.command_limit,
            valve.laminar_pressure))
        band = 0.0 if valve.dead_band is None else valve.dead_band.value
        coefficient = flow / ((command - band) * sqrt(drop))
        gains = [valve.gains[edge].value if edge in valve.gains else 1.0 for edge in (inlet, outlet)]
        return _Direction(gains[0] * coefficient, gains[1] * coefficient, band, limit, laminar,
                          drop if valve.kind == 'compensated' else inf)

    def _number(self, valve: Valve, number: Scalar | None) -> float:
        if number is None or valve.kind == 'unknown':
            raise DescriptionError(self.machine.description.file, f'hydraulics.valves.{valve.name}.kind', valve.kind,
                                   'orifice or compensated, with all its numbers: commands are found by its flow')
        return number.value


def _command(way: _Direction, inflow: float, outflow: float, pump: float, tank: float, power: float
             ) -> tuple[float, float]:
    """Size of the command, V, within its limit, and the share of the flows that it gives."""
    most = way.limit - way.band

    def opening(share: float) -> float:
        return way.opening(share * inflow, share * outflow, pump, tank, share * power)

    u = opening(1.0)
    if u <= most:
        return way.band + u, 1.0
    if u == inf:
        return 0.0, 0.0
    return way.limit, float(brentq(lambda share: opening(share) - most, 1e-6, 1.0))


def _first(rises: Callable[[float], float], start: float) -> float:
    """Where a function that rises is 0, from ``start`` on, at which it is 0 or below."""
    if rises(start) >= 0.0:
        return start
    end = start
    for _ in range(DOUBLINGS):
        end *= 2.0
        if rises(end) >= 0.0:
            break
    return float(brentq(rises, start, end, xtol=1e-12 * end))


def _finite(name: str, given: np.ndarray, count: int) -> np.ndarray:
    found = np.asarray(given, dtype=float)
    if found.shape != (count,) or not np.isfinite(found).all():
        raise SettingError(name, given, f'{count} finite numbers')
    return found
