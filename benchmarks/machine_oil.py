# SPDX-License-Identifier: Apache-2.0
"""Lumped hydraulics of a machine file in plain numbers, for an independent plant; SI.

- Chambers: piston side ``A1 z``, rod side ``A2 (stroke - z)``, with the piston position z = length - closed length and
  the areas of all ``count`` cylinders together.
- Pressure: ``dp/dt = (inflow - expansion) / C``, ``C = V / B_oil + V_chambers / B_cylinder + sum(V_hose / B_hose)``,
  V all volumes together, expansion ``A1 dz/dt`` on the piston side and ``-A2 dz/dt`` on the rod side.
- Orifice valve: spool u, ``du/dt = (command - u) / lag``, the command cut at its limit. Flow into a port
  ``g k |u| dp / sqrt(max(|dp|, laminar))`` with ``k = Qn / (un sqrt(pn))``, dp = supply - port; u > 0 joins pump to a
  and b to tank, otherwise a to tank and pump to b; g is the gain of that edge.
- Friction of one cylinder against its velocity v, with r = v / transition velocity:
  ``scale (Fc tanh(4 r) + (Fs - Fc) r / (r^2 / 4 + 3 / 4)^2 + viscous v + (|p1 - p2| kd + p2 kr) tanh(4 r))``.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt, tanh

from machine_reader import Cylinder, Machine, Valve

Table = Sequence[tuple[float, float]]


def command(table: Table, t: float) -> float:
    """Value, V, of a table of (s, V), linear in between and constant outside."""
    if t <= table[0][0]:
        return table[0][1]
    for (t0, u0), (t1, u1) in zip(table, table[1:]):
        if t <= t1:
            return u0 + (u1 - u0) * (t - t0) / (t1 - t0)
    return table[-1][1]


def spool_rate(valve: Valve, spool: float, wanted: float) -> float:
    """V/s."""
    return (min(max(wanted, -valve.limit), valve.limit) - spool) / valve.lag


def port_flows(valve: Valve, spool: float, a: float, b: float) -> tuple[float, float]:
    """Flows, m3/s, into the volumes at ports a and b, Pa."""
    if valve.kind != 'orifice' or valve.dead_band:
        raise ValueError('this plant has orifice valves without a dead band only')
    opening = abs(spool) * valve.flow / (valve.command * sqrt(valve.pressure))
    if spool > 0.0:
        drops = (valve.pump - a) * valve.gains['pump_a'], (valve.tank - b) * valve.gains['b_tank']
        roots = valve.pump - a, valve.tank - b
    else:
        drops = (valve.tank - a) * valve.gains['a_tank'], (valve.pump - b) * valve.gains['pump_b']
        roots = valve.tank - a, valve.pump - b
    return tuple(opening * drop / sqrt(max(abs(root), valve.laminar)) for drop, root in zip(drops, roots))


def friction(cylinder: Cylinder, v: float, p1: float, p2: float) -> float:
    """Friction, N, of one cylinder at velocity v, m/s, and pressures, Pa, of piston and rod side."""
    f = cylinder.friction
    r = v / f['transition_velocity']
    sign = tanh(4.0 * r)
    dry = f['coulomb'] * sign + (f['static'] - f['coulomb']) * r / (0.25 * r * r + 0.75) ** 2 + f['viscous'] * v
    return f['scale'] * (dry + (abs(p1 - p2) * f['pressure_difference'] + p2 * f['pressure_rod']) * sign)


def push(cylinder: Cylinder, v: float, p1: float, p2: float) -> float:
    """Force, N, with which the cylinders push their pins apart."""
    A1, A2 = cylinder.areas
    return A1 * p1 - A2 * p2 - cylinder.count * friction(cylinder, v, p1, p2)


def resting_pressures(cylinder: Cylinder, force: float, low: float, least: float) -> tuple[float, float]:
    """Pressures, Pa, of piston and rod side that push with ``force``, N, at rest.

    The rod side is at ``low``; where the piston side would be below ``least``, it is at ``low`` instead.
    """
    A1, A2 = cylinder.areas
    p1 = (force + A2 * low) / A1
    return (p1, low) if p1 >= least else (low, (A1 * low - force) / A2)


class Oil:
    """The circuit of a machine; state: a pressure, Pa, for each volume, then a spool, V, for each valve."""

    def __init__(self, machine: Machine, tables: dict[str, Table]) -> None:
        self.machine = machine
        self.volumes, self.valves = list(machine.volumes), list(machine.valves)
        self.tables = [tables[name] for name in self.valves]
        self.cylinders = list(machine.cylinders.values())
        places = {chamber: i for i, volume in enumerate(machine.volumes.values()) for chamber in volume.chambers}
        self.sides = [(places[name, 'piston'], places[name, 'rod']) for name in machine.cylinders]
        self.ports = [(self.volumes.index(v.a), self.volumes.index(v.b)) for v in machine.valves.values()]
        hoses = [volume.hoses for volume in machine.volumes.values()]
        self.fixed = [sum(v * (1.0 / machine.oil + 1.0 / B) for v, B in items) for items in hoses]
        self.walls = [1.0 / machine.oil + 1.0 / volume.wall for volume in machine.volumes.values()]

    def rates(self, t: float, state: Sequence[float], z: Sequence[float], zd: Sequence[float]) -> list[float]:
        """Rates of the state, Pa/s and V/s, at time, s, piston positions, m, and velocities, m/s."""
        n = len(self.volumes)
        capacity, inflow = list(self.fixed), [0.0] * n
        for cylinder, (i, j), x, v in zip(self.cylinders, self.sides, z, zd):
            A1, A2 = cylinder.areas
            capacity[i] += A1 * max(x, 0.0) * self.walls[i]
            capacity[j] += A2 * max(cylinder.stroke - x, 0.0) * self.walls[j]
            inflow[i] -= A1 * v
            inflow[j] += A2 * v
        spools = []
        for valve, table, (a, b), u in zip(self.machine.valves.values(), self.tables, self.ports, state[n:]):
            Qa, Qb = port_flows(valve, u, state[a], state[b])
            inflow[a] += Qa
            inflow[b] += Qb
            spools.append(spool_rate(valve, u, command(table, t)))
        return [Q / C for Q, C in zip(inflow, capacity)] + spools

    def pushes(self, state: Sequence[float], k: int, v: float) -> float:
        """Force, N, of cylinder ``k`` at its velocity, m/s."""
        i, j = self.sides[k]
        return push(self.cylinders[k], v, state[i], state[j])
