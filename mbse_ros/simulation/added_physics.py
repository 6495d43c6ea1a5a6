# SPDX-License-Identifier: Apache-2.0
"""What a plant has beyond its file: line losses, friction with bristles, cold oil, a base that is accelerated, a boom
that bends, play of pins, slow pressure sensors; and what ``oil_physics`` has."""

from __future__ import annotations

from math import pi

import casadi as ca
import numpy as np

from ..errors import DescriptionError
from ..hydraulics.circuit import pressure_friction
from ..machine import Machine
from ..machine.hanging import down, hook
from .oil_physics import MPA, OilPhysics
from .physics import GRAVITY, PlantPhysics

BRISTLE_TIME = 1e-3     # s, of the damping of the bristles over their stiffness
DAMPING = 0.03          # share of the critical damping of a boom that bends
LIVE = 0.02             # of the largest payload: of the boom's own mass this much bends with the load
USUAL = 0.2             # of the largest payload: the load at which the boom bends with its frequency
PUSHED = 1e3            # N, or N m of a joint, that take a pin from one side of its play to the other


class AddedPhysics:
    """The expressions of ``PlantPhysics`` for one machine. ``names`` (k,): its states, pressures in MPa.

    Raises DescriptionError for a boom that bends without one payload.
    """

    def __init__(self, settings: PlantPhysics, machine: Machine) -> None:
        self.settings, self.machine, self.oil = settings, machine, OilPhysics(settings, machine)
        if settings.bending and machine.description.payload is None:
            raise DescriptionError(machine.description.file, 'payload', None, 'this section, of a boom that bends')
        wanted = {'bristle': machine.cylinders if settings.bristles else (),
                  'bend': ('offset', 'rate') if settings.bending else (), **self.oil.wanted,
                  'cold': ('friction',) if settings.cold else (),
                  'base': ('sin', 'cos') if settings.base_acceleration else (),
                  'lagged': machine.volumes if settings.sensor_lag else (),
                  'hysteresis': machine.volumes if settings.hysteresis else ()}
        self.names = tuple(f'{kind}/{owner}' for kind, owners in wanted.items() for owner in owners)

    def start(self, payload: float, pressure: np.ndarray) -> np.ndarray:
        """States (k,) at rest under a payload, kg, at pressures (volumes,), MPa."""
        values = self.oil.start(pressure) | {'base/cos': 1.0, 'cold/friction': self.settings.cold}
        values |= {f'lagged/{name}': value for name, value in zip(self.machine.volumes, pressure)}
        if self.settings.bending:
            pull = float(np.array([item.value for item in self.machine.description.gravity]) @ self._up)
            values['bend/offset'] = self._live(payload) * pull / self._stiffness
        return np.array([values.get(name, 0.0) for name in self.names])

    def resistance(self, states: ca.SX, s: ca.SX, sd: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Forces against the motion of the cylinders (cylinders,), N, and rates of the bristles.

        LuGre (C. Canudas de Wit et al., A new model for control of systems with friction, IEEE Trans. Automatic Control
        40, 1995), with the file's numbers for its friction at constant velocity.
        """
        circuit, forces, rates = self.machine.circuit, [], []
        more = states[self._place('cold')[0]] if self.settings.cold else 0.0
        if not self.settings.bristles:
            resisting = circuit.resisting_forces(s, sd, p)
            return resisting + more * circuit.friction_forces(sd, p) if self.settings.cold else resisting, ca.SX(0, 1)
        chamber = ca.SX(circuit.T_Vcyl.T) @ p
        for i, cylinder in enumerate(self.machine.description.cylinders.values()):
            c = circuit.friction_numbers(cylinder)
            times = (1.0 + more) * cylinder.count * c['scale'] * ca.if_else(sd[i] > 0, c['out_scale'], c['in_scale'])
            level = times * (c['coulomb'] + (c['static'] - c['coulomb']) * ca.exp(
                -(sd[i] / c['transition_velocity']) ** 2) + pressure_friction(
                    1.0, chamber[2 * i], chamber[2 * i + 1], c['pressure_difference'], c['pressure_rod'], 1e-3))
            bristle, stiffness = states[self._place('bristle')[i]], self.settings.bristles
            rates.append(sd[i] - stiffness * ca.fabs(sd[i]) / level * bristle)
            forces.append(stiffness * (bristle + BRISTLE_TIME * rates[-1]) + times * c['viscous'] * sd[i])
        return ca.vertcat(*forces) + circuit.parallel_forces(s, sd), ca.vertcat(*rates)

    def named(self, states: ca.SX) -> dict[str, ca.SX]:
        """States by name."""
        return dict(zip(self.names, ca.vertsplit(states))) if self.names else {}

    def inertia(self, states: ca.SX, place: tuple[list[ca.SX], list[ca.SX]], Mbar: ca.SX, Q: ca.SX
                ) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Mass matrix (g, g), forces (g,) and a row (1 + g,) of the accelerations of the offset: its constant part and
        what it takes of those of the coordinates.

        The load is on a spring that the boom is. With the offset w along the vertical n, and J, the load's row of it:
        ``Mbar zdd + m J' wdd = Q`` and ``m J zdd + m wdd = m g n - k w - d wd - m Jdot zd``. Here wdd is eliminated.
        """
        if not self.settings.bending:
            return Mbar, Q, ca.SX(1, 0)
        machine, payload = self.machine, self.machine.payload_data
        height = ca.dot(ca.SX(self._up), hook(payload, machine.system))
        zd, R = machine.reduced.zd, machine.reduced.R
        row = ca.jacobian(height, machine.system.q) @ R
        turned = ca.jtimes(row.T, machine.system.q, R @ zd).T @ zd
        row, turned, weight = ca.substitute([row, turned, ca.dot(ca.SX(self._up), machine.system.gravity)], *place)
        offset, rate = (states[k] for k in self._place('bend'))
        mass = self._live(machine.payload[0])
        damping = 2.0 * DAMPING * self._stiffness / (2.0 * pi * self.settings.bending)
        pull = mass * (weight - turned) - self._stiffness * offset - damping * rate
        return Mbar - mass * row.T @ row, Q - row.T * pull, ca.horzcat(pull / mass, -row)

    def accelerated(self, states: ca.SX, expressions: list[ca.SX]) -> list[ca.SX]:
        """Expressions with the gravity of a frame that is accelerated along x."""
        if not self.settings.base_acceleration:
            return expressions
        parameters = self.machine.parameters
        x = parameters.symbol[parameters.names.index(GRAVITY)]
        return ca.substitute(expressions, [x], [
            x - self.settings.base_acceleration * states[self._place('base')[0]]])      # type: ignore[no-any-return]

    def driven(self, states: ca.SX) -> ca.SX:
        """Accelerations (k,) of the base along the axes of its accelerometer, m/s2."""
        gravity, sensor = self.machine.still_gravity, self.machine.description.base_accelerometer
        (moving,) = self.accelerated(states, [gravity])
        return ca.SX(np.array(sensor.axes if sensor is not None else np.zeros((0, 3)))) @ (gravity - moving)

    def read(self, states: ca.SX, forces: ca.SX, z: ca.SX, p: ca.SX, flows: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Positions (g,) and pressures (volumes,), Pa, as sensors see them; ``forces`` (g,) that push the coordinates,
        ``flows`` of all valves, m3/s."""
        side = ca.vertcat(*(ca.tanh(forces[k] / PUSHED) if k in self.machine.actuated else 0.0
                            for k in range(z.numel())))
        lagged = [states[k] * MPA for k in self._place('lagged')]
        pressure = ca.vertcat(*lagged) if lagged else self._at_sensors(states, p, flows)
        for i, k in enumerate(self._place('hysteresis')):
            pressure[i] -= states[k] * MPA
        return z + self.settings.play / 2.0 * side, pressure

    def rates(self, states: ca.SX, bristles: ca.SX, bend: ca.SX, p: ca.SX, pressure_rates: ca.SX, flows: ca.SX,
              spools: ca.SX) -> ca.SX:
        """Rates (k,) of the states; ``bend``: acceleration of the offset; pressures in Pa, ``pressure_rates`` MPa/s."""
        found: dict[str, ca.SX] = dict(zip((n for n in self.names if n.startswith('bristle/')), ca.vertsplit(bristles)))
        named = self.named(states)
        found |= self.oil.rates(named, p, flows, spools)
        if self.settings.bending:
            found |= {'bend/offset': named['bend/rate'], 'bend/rate': bend}
        if self.settings.base_acceleration:
            omega = 2.0 * pi * self.settings.base_rate
            found |= {'base/sin': omega * named['base/cos'], 'base/cos': -omega * named['base/sin']}
        if self.settings.cold:
            found['cold/friction'] = -named['cold/friction'] / self.settings.cold_time
        signal = ca.vertcat(*(found.get(f'hose/{name}', pressure_rates[i])
                              for i, name in enumerate(self.machine.volumes)))
        if self.settings.sensor_lag:
            seen = self._at_sensors(states, p, flows) / MPA
            signal = (seen - states[self._place('lagged')]) / self.settings.sensor_lag
            found |= dict(zip((n for n in self.names if n.startswith('lagged/')), ca.vertsplit(signal)))
        for i, name in enumerate(self.machine.volumes if self.settings.hysteresis else ()):
            found[f'hysteresis/{name}'] = signal[i] - ca.fabs(signal[i]) * named[f'hysteresis/{name}'] / (
                self.settings.hysteresis / MPA)
        return ca.vertcat(*(found[name] for name in self.names)) if self.names else ca.SX(0, 1)

    @property
    def _up(self) -> np.ndarray:
        return -down(self.machine.description)

    @property
    def _stiffness(self) -> float:
        """Of the boom at the load, N/m."""
        limit = self.machine.payload_data.limits[1]
        return (USUAL + LIVE) * limit * (2.0 * pi * self.settings.bending) ** 2

    def _live(self, payload: float | ca.SX) -> float | ca.SX:
        """Mass that bends the boom, kg."""
        return payload + LIVE * self.machine.payload_data.limits[1]

    def _at_sensors(self, states: ca.SX, p: ca.SX, flows: ca.SX) -> ca.SX:
        """Pressures at the valves' end of the lines, Pa."""
        s, circuit, nominal = self.settings, self.machine.circuit, []
        for valve in self.machine.hydraulics.valves.values():
            nominal += [valve.nominal_flow.value if valve.nominal_flow else 1.0] * 2
        share = ca.SX(circuit.T_pQ) @ (flows / ca.DM(nominal))
        lost = s.line_loss * share + s.line_turbulence * share * ca.fabs(share)
        return self.oil.at_valves(self.named(states), p) + lost

    def _place(self, kind: str) -> list[int]:
        return [k for k, name in enumerate(self.names) if name.startswith(f'{kind}/')]
