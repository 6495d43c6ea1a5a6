# SPDX-License-Identifier: Apache-2.0
"""The true machine: multibody dynamics, chambers, friction and spools as one stiff system, integrated by RK4.

Pyrhönen et al., mass estimation, section 4 ('artificial plant'), in any independent coordinates. State: dependent
coordinates, independent ones, their velocities, pressures (MPa), spools (V). A coordinate that no cylinder moves has a
drive that follows a speed; the efforts of drives that the file describes are what that takes, friction included.
"""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca
import numpy as np

from ..compiled import Kernel, Scan
from ..description.sections.load_payload import MASS
from ..dynamics.partition import choose_independent
from ..errors import DescriptionError, DivergenceError, SettingError
from ..machine import Machine
from .added_physics import AddedPhysics
from .pendulum import PendulumMachine
from .physics import NOTHING, PlantPhysics, of_payload

MPA = 1e6
SOIL = 'soil'
STEP_NS = 100_000      # 0.1 ms: 1e-6 relative against an adaptive reference (see test_simulation_plant)
DRAGGED = 0.05         # m/s of the contact point, above which the soil pushes with all its force
DRIVE_LAG = 0.15       # s, of the speed of a driven coordinate
SETTLED = 12            # times that friction by an effort is found from it: within 1e-6 of it up to a share of 0.3
PIN_FRICTION = 0.02    # 1/s, of the swing of a load that hangs: its amplitude falls to 1/e in 100 s
LARGEST_WRITTEN = 3_000     # scalar operations of the rates that are written out; beyond they are called
Masses = float | Mapping[str, float]    # of the payload, kg; of several by their names


class Plant:
    """Simulated machine whose valves all have data; advances by whole steps of 0.1 ms.

    Controls (u,): commands of the valves, V, then speeds of the ``drives``, SI. ``parameters`` are the true values of
    the uncertain numbers (default: nominal); ``slow``: what is not one of them but has a symbol, by its key: the
    payload's mass, kg, and measured inclinations, rad; 'soil': force against the motion of the payload's `contact`, N.
    ``physics``: what it has beyond its file, with states behind the others. Raises DescriptionError when a valve has no
    data.
    """

    def __init__(self, machine: Machine, backend: str = 'auto', physics: PlantPhysics = NOTHING) -> None:
        if machine.unknown_valves:
            raise DescriptionError(machine.description.file, 'hydraulics.valves', 'unknown',
                                   'valves of kind orifice or compensated: a plant needs their data')
        drives = machine.description.drives
        if not machine.volumes and not drives:
            raise DescriptionError(machine.description.file, 'hydraulics', None, 'this section, of a plant')
        if drives and physics != NOTHING:
            raise SettingError('physics', machine.name, 'a machine of cylinders alone: this one has drives')
        self.machine, g, self._cylinders = machine, len(machine.coordinates), len(machine.cylinders)
        for name, drive in drives.items():
            if drive.coordinate not in machine.coordinates:
                raise DescriptionError(machine.description.file, f'drives.{name}.joint', drive.coordinate, 'one of '
                                       f'{", ".join(machine.coordinates)}, to be simulated: what sets the others')
        led = {drive.coordinate for drive in drives.values()}
        self._actuated = [k for k in machine.actuated if machine.coordinates[k] not in led]
        passive = machine.passive if isinstance(machine, PendulumMachine) else ()
        self._passive = [k for k in range(g) if machine.coordinates[k] in passive]
        self._free = [k for k in range(g) if k not in (*self._actuated, *self._passive)]
        self.drives = tuple(machine.coordinates[k] for k in self._free)
        self.slow = (*machine.parameters.states, SOIL)
        self.added = AddedPhysics(physics, machine)
        self._sizes = [len(machine.system.dependent), g, g, len(machine.volumes), len(machine.valves),
                       len(self.added.names)]
        ends = np.cumsum(self._sizes).tolist()
        self._parts = tuple(zip([0, *ends], ends))
        rhs = self._rhs()
        self._scan = Scan(self._step_function(rhs), backend)
        self._end = Kernel(rhs, 'vm' if backend == 'vm' else 'auto', rare=True)     # once in many steps
        self._static = self._static_balance() if self._cylinders else None
        self._efforts = self._effort_function() if drives else None
        self._read = Kernel(self._readings(), 'vm') if physics.reads else None
        self._driven = self._accelerometer() if machine.description.base_accelerometer is not None else None

    def start(self, position: np.ndarray, payload: Masses, parameters: np.ndarray, rod_pressure: float = 2e6,
              swing: float = 0.0, **slow: float) -> np.ndarray:
        """State (nx,) at rest and in balance at piston positions (cylinders,), m; rod sides at ``rod_pressure``, Pa, or
        the piston side of a cylinder that pulls so hard that too little would be left there. A load that hangs is let
        go at ``swing``, rad, from the vertical.

        Raises PositionProblemError where the cylinders cannot reach.
        """
        q = self._at_pistons(np.asarray(position, dtype=float))
        if isinstance(self.machine, PendulumMachine):
            q = self.machine.hanging(q, swing)
        force, areas = (np.zeros(0), np.zeros(0)) if self._static is None else (
            np.atleast_1d(item) for item in self._static(q, self._slow(payload, slow), parameters))
        chambers = np.empty(2 * len(self.machine.cylinders))
        chambers[1::2] = rod_pressure
        chambers[0::2] = (force + areas[1::2] * rod_pressure) / areas[0::2]
        pulled = chambers[0::2] < rod_pressure / 2
        chambers[0::2][pulled] = rod_pressure
        chambers[1::2][pulled] = ((areas[0::2] * rod_pressure - force) / areas[1::2])[pulled]
        volumes = self.machine.circuit.T_Vcyl
        pressures = volumes @ chambers / volumes.sum(axis=1)
        system, z = self.machine.system, self.machine.model.z
        return np.concatenate([q[system.dependent], q[z], np.zeros(len(z)), pressures / MPA,
                               np.zeros(len(self.machine.valves)),
                               self.added.start(of_payload(payload), pressures / MPA)])

    def advance(self, x: np.ndarray, controls: np.ndarray, steps: int, payload: Masses, parameters: np.ndarray,
                **slow: float) -> tuple[np.ndarray, np.ndarray]:
        """State and acceleration (g,), SI, after ``steps`` steps under held controls.

        Raises DivergenceError when the state leaves the finite numbers.
        """
        known = self._slow(payload, slow)
        x, _ = self._scan(x, np.broadcast_to(controls, (steps, len(controls))),
                          np.concatenate([[STEP_NS * 1e-9], known, parameters]))
        _, x[:self._sizes[0]], acceleration = self._end(x, controls, known, parameters)
        if not np.isfinite(x).all():
            raise DivergenceError('plant', steps, 'the state left the finite numbers')
        return x, acceleration

    def split(self, x: np.ndarray) -> list[np.ndarray]:
        """Dependent coordinates, independent ones, velocities, pressures (Pa) and spools of a state."""
        dependent, z, zd, p, spools, _ = (x[start:end] for start, end in self._parts)
        return [dependent, z, zd, p * MPA, spools]

    def read(self, x: np.ndarray, parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Independent coordinates (g,) and pressures (volumes,), Pa, as sensors see them at a state."""
        _, z, _, p, _ = self.split(x)
        if self._read is None:
            return z, p
        z, p = map(np.atleast_1d, self._read(x, parameters))
        return z, p

    def efforts(self, x: np.ndarray, acceleration: np.ndarray, payload: Masses, parameters: np.ndarray,
                **slow: float) -> np.ndarray:
        """Of the drives that the file describes (drives,), N m or N, at a state and accelerations (g,), SI."""
        if self._efforts is None:
            return np.zeros(0)
        return np.atleast_1d(self._efforts(x, acceleration, self._slow(payload, slow), parameters)[0])

    def driven(self, x: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """Accelerations (k,) of the base along the axes of its accelerometer at a state, m/s2; none without one."""
        return np.zeros(0) if self._driven is None else np.atleast_1d(self._driven(x, parameters)[0])

    def coordinates(self, x: np.ndarray) -> np.ndarray:
        """All coordinates q (n,) of a state."""
        q = np.empty(self.machine.system.n)
        q[self.machine.system.dependent], q[self.machine.model.z] = self.split(x)[:2]
        return q

    def _slow(self, payload: Masses, slow: dict[str, float]) -> np.ndarray:
        described = self.machine.description.payloads
        masses = {described[name].mass.key: mass for name, mass in payload.items()} if isinstance(
            payload, Mapping) else {MASS: payload}
        known = {**masses, SOIL: slow.get(SOIL, 0.0), **{f'base.{name}': value for name, value in slow.items()}}
        return np.array([known.get(name, 0.0) for name in self.slow])

    def _at_pistons(self, position: np.ndarray) -> np.ndarray:
        """All coordinates at piston positions, those that no cylinder moves at their start.

        Of cylinders that share a coordinate, as two side by side, one leads.
        """
        model, machine = self.machine.model, self.machine
        start, free = model.start.q, [model.z[k] for k in (*self._free, *self._passive)]
        wanted = dict(zip([*machine.pistons[:self._cylinders], *free], [*position, *start[free]]))
        places = list(wanted)
        if len(places) > len(model.z):
            places = choose_independent(model.residual(start)[1], free, places, model.names)
        return model.partition(tuple(places)).position(np.array([wanted[place] for place in places]), start)

    def _step_function(self, rhs: ca.Function) -> ca.Function:
        """Classical Runge-Kutta step, each stage's dependent coordinates from those of the stage before."""
        kind = ca.SX if rhs.n_instructions() < LARGEST_WRITTEN else ca.MX
        controls, count = len(self.machine.valves) + len(self.drives), self.machine.parameters.symbol.numel()
        x, u = kind.sym('x', sum(self._sizes)), kind.sym('u', controls)
        p = kind.sym('p', 1 + len(self.slow) + count)
        h, slow, parameters = p[0], p[1:1 + len(self.slow)], p[1 + len(self.slow):]
        own, near, total, k = x[self._sizes[0]:], x[:self._sizes[0]], 0, None
        for share, weight in ((0, 1), (1 / 2, 2), (1 / 2, 2), (1, 1)):
            stage = own if k is None else own + h * share * k
            xd, near, _ = rhs(ca.vertcat(near, stage), u, slow, parameters)
            k = xd[self._sizes[0]:]
            total = total + weight * k
        end = ca.vertcat(near, own + h / 6 * total)
        return ca.Function('mbse_plant', [x, u, p], [end, kind(0, 1)], ['x', 'u', 'p'], ['x_next', 'y'])

    def _rhs(self) -> ca.Function:
        """``(x, u, slow, parameters) -> (xd, consistent dependent coordinates, zdd)``."""
        machine, circuit = self.machine, self.machine.circuit
        x, u = ca.SX.sym('x', sum(self._sizes)), ca.SX.sym('u', len(machine.valves) + len(self.drives))
        near, z, zd, p, spools, states = ca.vertsplit(x, [0, *np.cumsum(self._sizes).tolist()])
        q, pressure, added = machine.closed(near, z), p * MPA, self.added
        place = [machine.system.q, machine.reduced.zd], [q, zd]
        Mbar, Qbar, S = ca.substitute([machine.reduced.Mbar, machine.reduced.Qbar, self._strokes], *place)
        s, sd = q[machine.pistons[:self._cylinders]], S @ zd
        resisting, bristles = added.resistance(states, s, sd, pressure)
        force = circuit.hydraulic_forces(pressure) - resisting + circuit.end_stop_forces(s, sd)
        soil = ca.SX.sym('soil')
        (pushed,) = ca.substitute([self._dragged(soil)], *place)
        rubbed = ca.SX.zeros(zd.numel())
        for k in self._passive:
            rubbed[k] = -PIN_FRICTION * Mbar[k, k] * zd[k]
        Mbar, forces, bend = added.inertia(states, place, Mbar, Qbar + S.T @ force + pushed + rubbed)
        zdd = self._accelerations(Mbar, forces, zd, u[len(machine.valves):])
        flows = self._all_flows(states, spools, pressure)
        lag = ca.vertcat(*(circuit.spool_rate(name, spools[i], u[i]) for i, name in enumerate(machine.valves)))
        oil, named = added.oil, added.named(states)
        rates = circuit.pressure_rates(s, sd, oil.into_volumes(named, flows), oil.air(pressure)) / MPA
        more = added.rates(states, bristles, bend @ ca.vertcat(1, zdd) if bend.numel() else ca.SX(), pressure, rates,
                           flows, spools)
        xd = ca.vertcat(ca.SX.zeros(near.numel()), zd, zdd, rates, lag, more)
        slow = ca.vertcat(*machine.parameters.states.values(), soil)
        return ca.Function('mbse_plant_rhs', [x, u, slow, machine.parameters.symbol],
                           added.accelerated(states, [xd, q[machine.system.dependent], zdd]), {'cse': True})

    @property
    def _strokes(self) -> ca.SX:
        """Derivatives (cylinders, g) of the piston positions by the independent coordinates."""
        return self.machine.piston_rates[:self._cylinders, :]

    def _effort_function(self) -> Kernel:
        """``(x, zdd, slow, parameters) -> efforts`` of the drives: what the equations of motion ask for, and friction,
        of which a part may grow with the effort itself."""
        machine, actuators = self.machine, self.machine.actuators
        x, zdd = ca.SX.sym('x', sum(self._sizes)), ca.SX.sym('zdd', len(machine.coordinates))
        near, z, zd, p, *_ = ca.vertsplit(x, [0, *np.cumsum(self._sizes).tolist()])
        q = machine.joined(near, z)
        at = [machine.system.q, machine.reduced.zd], [q, zd]
        needed, speeds, S = ca.substitute(
            [machine.reduced.Mbar @ zdd - machine.reduced.Qbar, machine.piston_rates @ machine.reduced.zd,
             self._strokes], *at)
        positions, pushes = q[machine.pistons], ca.vertcat(p * MPA, ca.SX.zeros(len(machine.description.drives)))

        def resisting(efforts: ca.SX) -> ca.SX:
            return actuators.resisting_forces(positions, speeds, ca.vertcat(p * MPA, efforts))
        if self._cylinders:
            force = actuators.forces(pushes)[:self._cylinders] - resisting(pushes[p.numel():])[:self._cylinders]
            needed = needed - S.T @ force
        places = [machine.coordinates.index(drive.coordinate) for drive in machine.description.drives.values()]
        efforts = needed[places]
        for _ in range(SETTLED):
            efforts = needed[places] + resisting(efforts)[self._cylinders:]
        slow = ca.vertcat(*machine.parameters.states.values(), ca.SX.sym('soil'))
        return Kernel(ca.Function('mbse_efforts', [x, zdd, slow, machine.parameters.symbol], [efforts]), 'vm')

    def _readings(self) -> ca.Function:
        """``(x, parameters) -> (independent coordinates, pressures in Pa)`` as sensors see them."""
        machine, x = self.machine, ca.SX.sym('x', sum(self._sizes))
        near, z, zd, p, spools, states = ca.vertsplit(x, [0, *np.cumsum(self._sizes).tolist()])
        q, pressure = machine.joined(near, z), p * MPA
        (S,) = ca.substitute([self._strokes], [machine.system.q, machine.reduced.zd], [q, zd])
        found = self.added.read(states, S.T @ machine.circuit.hydraulic_forces(pressure), z, pressure,
                                self._all_flows(states, spools, pressure))
        return ca.Function('mbse_readings', [x, machine.parameters.symbol], list(found))

    def _accelerometer(self) -> Kernel:
        x, symbol = ca.SX.sym('x', sum(self._sizes)), self.machine.parameters.symbol
        start, end = self._parts[-1]
        return Kernel(ca.Function('mbse_driven', [x, symbol], [ca.densify(self.added.driven(x[start:end]))]), 'vm')

    def _dragged(self, force: ca.SX) -> ca.SX:
        """Generalised force (g,) of a soil that pushes against the motion of the contact point with ``force``, N."""
        machine = self.machine
        payload = machine.description.payload
        if payload is None or not payload.contact:
            return ca.SX.zeros(len(machine.coordinates))
        J = ca.jacobian(machine.system.points[payload.contact], machine.system.q) @ machine.reduced.R
        velocity = J @ machine.reduced.zd
        return -J.T @ velocity * force / ca.sqrt(ca.sumsqr(velocity) + DRAGGED ** 2)

    def _accelerations(self, Mbar: ca.SX, forces: ca.SX, zd: ca.SX, speeds: ca.SX) -> ca.SX:
        """``zdd`` (g,): drives follow their speeds, whatever force it takes."""
        moved, free = [*self._actuated, *self._passive], self._free
        given = (speeds - zd[free]) / DRIVE_LAG if free else ca.SX(0, 1)
        rest = forces[moved] - (Mbar[moved, free] @ given if free else 0)
        found = ca.vertsplit(ca.solve(ca.densify(Mbar[moved, moved]), rest)) if moved else []
        entries = dict(zip(moved, found)) | dict(zip(free, ca.vertsplit(given) if free else []))
        return ca.vertcat(*(entries[k] for k in range(len(moved) + len(free))))

    def _all_flows(self, states: ca.SX, spools: ca.SX, p: ca.SX) -> ca.SX:
        """Flows (2 a valve,); every plant has anti-cavitation valves, also where the file says nothing of them."""
        circuit, oil, named, found = self.machine.circuit, self.added.oil, self.added.named(states), []
        supplies, p = oil.supplies(named), oil.at_valves(named, p)
        for i, (name, valve) in enumerate(self.machine.hydraulics.valves.items()):
            flows = circuit.valve_flows(name, spools[i], p, supplies)
            found.append(flows if valve.make_up is not None else flows + circuit.make_up_flows(name, p))
        return oil.held(named, spools, ca.vertcat(*found))

    def _static_balance(self) -> Kernel:
        """``(q, slow, parameters) -> (forces of the cylinders at rest, chamber areas)``.

        Cylinders that share a coordinate share its load by the least squares of their forces. A load that hangs is
        let go.
        """
        machine, moved, loose = self.machine, self._actuated, self._passive
        needed = ca.substitute(-machine.reduced.Qbar, machine.reduced.zd, ca.SX.zeros(machine.reduced.zd.numel()))
        if loose:
            M = machine.reduced.Mbar
            needed = needed - M[:, loose] @ ca.solve(ca.densify(M[loose, loose]), needed[loose])
        S = self._strokes[:, moved]
        still = ca.SX.zeros(len(machine.cylinders))
        force = S @ ca.solve(S.T @ S, needed[moved]) + machine.circuit.parallel_forces(
            machine.system.q[machine.pistons[:self._cylinders]], still)
        slow = ca.vertcat(*machine.parameters.states.values(), ca.SX.sym('soil'))
        return Kernel(ca.Function('mbse_static', [machine.system.q, slow, machine.parameters.symbol],
                                  [force, machine.circuit.areas()]), 'vm')
