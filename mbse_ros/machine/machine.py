# SPDX-License-Identifier: Apache-2.0
"""The model of one machine: a mechanism with cylinders, hydraulics, drives and sensors."""

from __future__ import annotations

from functools import cached_property

import casadi as ca
import numpy as np

from ..compiled import Kernel
from ..description.machine_parts import Hydraulics, Payload
from ..description.model import MechanismDescription, content
from ..dynamics.formulations.matrix_r import Reduced, reduce
from ..dynamics.model import Model
from ..dynamics.partitioned import newton_function
from ..errors import DescriptionError, PositionProblemError, SingularConfigurationError
from ..hydraulics.circuit import Circuit
from ..mechanism.assembly import MechanismSystem
from ..mechanism.sensors import sensor_model
from ..mechanism.values import acceleration_keys, state_keys
from ..report.solids import Solids, Tube
from .actuators import Actuators
from .channels import Channel, machine_channels
from .hanging import down, hook, swing_axes
from .parameters import Parameters

UNLIMITED = np.pi       # rad, half the range of a joint without limits
DEAD = 1e5              # |R| at a position found to 1e-15 m^2 where two branches meet
SEEN = 1e-6     # smallest share of a motion that counts as seen
POSITIONS = ('encoder', 'inclinometer', 'distance')
NEWTON = 2              # steps from the last coordinates to the exact ones within one step of a filter


class Machine:
    """What nodes and tools ask of a machine.

    The mechanism's ``model`` holds its coordinates q; ``system`` is it without redundant rows. ``coordinates`` (g,)
    names the independent ones z: what the state of the observer is made of. ``actuators`` are its cylinders and drives;
    a piston is, of a drive, the joint that it moves. Raises DescriptionError for a file without any, or
    whose sensors do not determine the position.
    """

    def __init__(self, description: MechanismDescription) -> None:
        if not description.is_machine:
            raise DescriptionError(description.file, 'cylinders', None,
                                   'the sections `cylinders` and `hydraulics`, or `drives`, of a machine (a mechanism '
                                   'without them: mbse simulate, mbse up linkage)')
        self.description = description
        self.all_channels: tuple[Channel, ...] = machine_channels(description)
        self.model = Model(description)
        self.system: MechanismSystem = self.model.partition().system
        self.circuit = Circuit(description, self.system.values)
        self.actuators = Actuators(self.circuit)
        self.parameters = Parameters(self.system.values, state_keys(description), description.calibration,
                                     {number.key: stated / number.stddev for sensor in description.sensors.values()
                                      if sensor.drift is not None
                                      for number, stated in zip(sensor.bias, sensor.drift.stated) if number.stddev})
        self.coordinates = self.model.independent
        if not self.coordinates:
            raise DescriptionError(description.file, 'joints', list(description.joints), 'a body that can move')
        self.pistons = self.system.indices(self.actuators.coordinates)
        self._check_positions()

    @property
    def name(self) -> str:
        """The machine's name."""
        return self.description.name

    @property
    def made_of(self) -> str:
        """All that functions of this machine follow from, except the package's code: its file, and what `Parameters`
        assumes."""
        return f'{content(self.description)} {self.parameters.mean.tobytes().hex()}'

    @property
    def cylinders(self) -> tuple[str, ...]:
        """Names of the cylinders, in the order of all vectors."""
        return self.circuit.cylinders

    @property
    def volumes(self) -> tuple[str, ...]:
        """Names of the control volumes, in the order of all vectors."""
        return self.circuit.volumes

    @property
    def valves(self) -> tuple[str, ...]:
        """Names of the valves."""
        return self.circuit.valves

    @cached_property
    def channels(self) -> tuple[str, ...]:
        """Measured channels, positions first, pressures last."""
        return tuple(channel.name for channel in self.all_channels)

    @cached_property
    def delays(self) -> dict[str, int]:
        """By how much the stamps of channels are later than what they measure, ns; of those that the file says so."""
        found = {channel.name: channel.delay_ns for channel in self.all_channels}
        return {name: delay for name, delay in found.items() if delay}

    @cached_property
    def commands(self) -> tuple[str, ...]:
        """Command channels the observer needs: those of the valves whose flow is modelled."""
        return tuple(f'command/{name}' for name in self.modelled_valves)

    @cached_property
    def modelled_valves(self) -> tuple[str, ...]:
        """Names of the valves whose flows follow from their spools."""
        valves = self.hydraulics.valves
        return tuple(name for name, valve in valves.items() if valve.kind != 'unknown')

    @cached_property
    def unknown_valves(self) -> tuple[str, ...]:
        """Names of the valves of which nothing is known."""
        return tuple(name for name in self.valves if name not in self.modelled_valves)

    @cached_property
    def measured_supplies(self) -> tuple[str, ...]:
        """Supplies that a sensor measures."""
        supplies = self.hydraulics.supplies
        return tuple(c.sensor.volume for c in self.all_channels if c.sensor.volume in supplies)

    @cached_property
    def inclinations(self) -> tuple[str, ...]:
        """Angles of the base that a sensor measures: 'roll', 'pitch'."""
        return tuple(c.sensor.axis for c in self.all_channels if c.sensor.axis)

    @cached_property
    def base_states(self) -> dict[str, str]:
        """What sensors measure of the base: names of entries of the observer's state, and keys of their symbols."""
        keys = acceleration_keys(self.description)
        return {f'inclination/{axis}': f'base.{axis}' for axis in self.inclinations} | {
            f'base_acceleration/{axis}': key for axis, key in zip('xyz', keys)}

    @cached_property
    def still_gravity(self) -> ca.SX:
        """Gravity (d,) in the machine's frame where its base is as the file has it, without what sensors measure."""
        states = ca.vertcat(ca.SX(0, 1), *(self.parameters.states[key] for key in self.base_states.values()))
        return ca.substitute(self.system.gravity, states, ca.SX.zeros(states.numel()))

    @property
    def stroke(self) -> np.ndarray:
        """Range of each piston position (actuators, 2), m; of a joint of a drive without end."""
        return self.actuators.stroke

    @cached_property
    def range(self) -> np.ndarray:
        """Range of each independent coordinate (g, 2): strokes, limits of joints, else half a turn or a metre around
        the start."""
        strokes, rows = dict(zip(self.cylinders, self.stroke.tolist())), []
        for place, name in zip(self.model.z, self.coordinates):
            coordinate = self.description.coordinates.get(name)
            joint = self.description.joints.get(coordinate.joint if coordinate else name)
            start = self.model.start.q[place]
            default = (start - UNLIMITED, start + UNLIMITED)
            rows.append(strokes.get(name) if name in strokes else (joint.limits if joint else None) or default)
        return np.array(rows, dtype=float)

    @property
    def hydraulics(self) -> Hydraulics:
        """The file's section of that name. Raises DescriptionError without it."""
        return self.circuit.hydraulics

    @property
    def payload_data(self) -> Payload:
        """What the file says of the one payload. Raises DescriptionError without a payload, and with several."""
        if self.description.payloads:
            raise DescriptionError(self.description.file, 'payloads', list(self.description.payloads),
                                   'a section `payload`: this is of one payload alone; several are weighed by '
                                   '`mbse estimate` and payload_node, with observer.weighing=apart')
        if self.description.payload is None:
            raise DescriptionError(self.description.file, 'payload', None, 'this section, to weigh a load')
        return self.description.payload

    @property
    def payload(self) -> ca.SX:
        """Symbols of the unknown masses (k,), kg, in the file's order. Raises DescriptionError without a payload."""
        payloads = self.description.every_payload or {'payload': self.payload_data}
        return ca.vertcat(*(self.parameters.states[payload.mass.key] for payload in payloads.values()))

    @cached_property
    def swings(self) -> tuple[str, ...]:
        """Horizontal axes of the machine's frame along which a load that hangs swings; none of a rigid load."""
        payload = self.description.payload
        if payload is None or payload.hanging is None:
            return ()
        return swing_axes(payload, self.system, self.reduced.R, self.parameters, self.model.start.q)

    @cached_property
    def reduced(self) -> Reduced:
        """The equations of motion in the independent coordinates."""
        return reduce(self.system)

    @cached_property
    def piston_rates(self) -> ca.SX:
        """Derivatives (actuators, g) of the piston positions by the independent coordinates, along the loops."""
        return self.reduced.R[self.pistons, :]

    @cached_property
    def actuated(self) -> list[int]:
        """Independent coordinates that an actuator moves."""
        pattern = np.array(ca.DM(self.piston_rates.sparsity(), 1.0).full()) if self.piston_rates.nnz() else np.zeros(
            self.piston_rates.shape)
        exact = [[not self.piston_rates[i, k].is_zero() and bool(pattern[i, k]) for k in range(pattern.shape[1])]
                 for i in range(pattern.shape[0])]
        return [k for k in range(len(self.coordinates)) if any(row[k] for row in exact)]

    @cached_property
    def moved(self) -> np.ndarray:
        """(actuators, a): whether a piston's position depends on an actuated coordinate."""
        S = self.piston_rates[:, self.actuated]
        return np.array([[not S[i, k].is_zero() for k in range(S.shape[1])] for i in range(S.shape[0])],
                        dtype=bool).reshape(S.shape)

    @cached_property
    def separable(self) -> bool:
        """Whether there are as many actuators as coordinates that they move, and one of these moves several."""
        return self.moved.shape[0] == self.moved.shape[1] and not (self.moved.sum(axis=0) == 1).all()

    @cached_property
    def push_needs(self) -> list[set[str]]:
        """Pressures and efforts, as entries of the state, that push in each equation of ``equations.by_actuator``."""
        acts = self.actuators.act if self.separable else (self.moved.T.astype(int) @ self.actuators.act) > 0
        return [{name for name, some in zip(self.actuators.entries, row) if some} for row in acts]

    @cached_property
    def weighing(self) -> tuple[int, ...]:
        """Equations of the force balance, by their place among those of ``equations.by_actuator``, that carry
        information on the mass: sensors measure all their pressures and efforts."""
        measured = set(self.measured_pushes)
        return tuple(k for k, needed in enumerate(self.push_needs) if needed and needed <= measured)

    @cached_property
    def measured_pushes(self) -> tuple[str, ...]:
        """Pressures of volumes and efforts of drives, as entries of the state, that a sensor measures."""
        channels = [channel.name for channel in self.all_channels]
        return tuple(name for name in channels if name in self.actuators.entries)

    @property
    def pressure_needs(self) -> list[set[str]]:
        """Of these the volumes."""
        return [{name.partition('/')[2] for name in needed if name.startswith('pressure/')}
                for needed in self.push_needs]

    @property
    def weighed(self) -> list[int]:
        """Independent coordinates of these equations, one each."""
        return [self.actuated[k] for k in self.weighing]

    @cached_property
    def measured_volumes(self) -> tuple[str, ...]:
        """Volumes whose pressure a sensor measures."""
        return tuple(c.sensor.volume for c in self.all_channels if c.sensor.volume in self.volumes)

    @cached_property
    def newton(self) -> ca.Function:
        """``(q, p) -> q`` one Newton step on the dependent coordinates, the independent ones kept; ``p`` parameters.

        At a solution its derivative is the exact derivative of the solution (implicit function theorem).
        """
        q, p = ca.SX.sym('q', self.system.n), self.parameters.symbol
        step = newton_function(self.system)
        if not step.is_a('SXFunction'):
            raise DescriptionError(self.description.file, 'joints', self.system.m, 'loops of at most 12 coordinates')
        return ca.Function('newton', [q, p], [step(q, 0.0, self.parameters.whole())[0]])

    def closed(self, dependent: ca.SX, z: ca.SX, iterations: int = NEWTON) -> ca.SX:
        """Coordinates q (n,) at independent ones (g,), from dependent ones (n - g,) nearby, as an expression."""
        q = self.joined(dependent, z)
        for _ in range(iterations):
            q = self.joined(self.newton(q, self.parameters.symbol)[self.system.dependent], z)
        return q

    def joined(self, dependent: ca.SX, z: ca.SX) -> ca.SX:
        """Coordinates q (n,) of their two parts."""
        entries = [ca.SX(0)] * self.system.n
        for place, k in zip(self.system.dependent, range(self.system.n)):
            entries[place] = dependent[k]
        for place, k in zip(self.model.z, range(len(self.coordinates))):
            entries[place] = z[k]
        return ca.vertcat(*entries)

    def position(self, z: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
        """All coordinates q (n,) at independent ones (g,), on the branch of ``start`` (n,), by default the file's.

        Raises PositionProblemError (out of reach), SingularConfigurationError (dead point).
        """
        q = self.model.position(np.atleast_1d(z), self.model.start.q if start is None else start)
        condition = self.model.partition().condition(q)
        if condition > DEAD:
            raise SingularConfigurationError(self.coordinates, condition)
        return q

    def outline(self, z: np.ndarray, start: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Polylines (k, 3), m, in the machine frame at independent coordinates (g,).

        One per body, one per cylinder ``cylinder/<name>`` (base, gland, rod eye), and ``payload`` (1, 3) where there is
        one; where it hangs, straight down on a line ``payload/rod`` (2, 3). Raises PositionProblemError where the
        cylinders cannot reach.
        """
        return self.outline_at(self.position(z, start))

    def outline_at(self, q: np.ndarray) -> dict[str, np.ndarray]:
        """The same at all coordinates (n,)."""
        (flat,) = self._points(q, self.model.parameters)
        points = dict(zip([*self.system.points, 'payload'], np.pad(flat, ((0, 0), (0, 3 - flat.shape[1])))))
        lines = {name: np.array([points[f'{name}.{p}'] for p in body.outline])
                 for name, body in self.description.bodies.items() if body.outline}
        for name, cylinder in self.description.cylinders.items():
            base, eye = points[str(cylinder.base)], points[str(cylinder.rod_eye)]
            length = max(float(np.linalg.norm(eye - base)), 1e-9)
            gland = base + (eye - base) * min(1.0, cylinder.closed_length.value / length)
            lines[f'cylinder/{name}'] = np.array([base, gland, eye])
        if self.description.payload is not None:
            lines['payload'] = points['payload'][None, :]
        if self.swings:
            lines['payload/rod'] = points['payload'] + np.outer([0.0, 1.0], self._rod)
            lines['payload'] = lines['payload/rod'][1:]
        return lines

    @cached_property
    def solids(self) -> Solids:
        """Shapes of what is drawn of it, for the lines of ``outline_at``."""
        lines, description = self.outline_at(self.model.start.q), self.description
        tubes = {name: Tube(one.bore.value, one.rod.value, one.count) for name, one in description.cylinders.items()}
        pins = [np.pad([item.value for item in point], (0, 3))[:3] for point in description.ground.values()]
        ground = min([0.0, *(float(row[:, 2].min()) for row in lines.values())])
        return Solids(lines, tubes, np.reshape(pins, (-1, 3)), ground)

    @cached_property
    def _rod(self) -> np.ndarray:
        """From the hook to a load that hangs (3,), m."""
        hanging = self.payload_data.hanging
        rod = (0.0 if hanging is None else hanging.value) * down(self.description)
        return np.pad(rod, (0, 3 - len(rod)))

    @cached_property
    def _points(self) -> Kernel:
        payload = self.description.payload
        places = list(self.system.points.values())
        if payload is not None:
            places.append(hook(payload, self.system))
        stacked = ca.horzcat(*places).T
        return Kernel(ca.Function('mbse_points', [self.system.q, self.system.values.symbol], [stacked]), 'vm')

    def _blind_motion(self) -> str:
        """Names of the independent coordinates that move where no position sensor changes, at the start, else ''."""
        system, model = self.system, self.model
        kinds = [sensor.kind for sensor in self.description.sensors.values()]
        outputs = sensor_model(system)
        owners = [name.partition('.')[0] for name in outputs.channels]
        rows = [i for i, name in enumerate(owners) if self.description.sensors[name].kind in POSITIONS]
        if not kinds or not rows:
            return ', '.join(self.coordinates)
        slopes = ca.Function('slopes', [system.q, system.qd, outputs.qdd, outputs.lam, system.u, system.t,
                                        system.values.symbol], [ca.jacobian(outputs.output[rows], system.q)])
        q = model.start.q
        n, m = system.n, system.m
        H = slopes(q, np.zeros(n), np.zeros(n), np.zeros(m), np.zeros(system.u.numel()), 0.0, model.parameters).full()
        R = np.column_stack([model.partition().velocity(q, unit) for unit in np.eye(len(self.coordinates))])
        _, seen, motions = np.linalg.svd(H @ R / np.maximum(np.abs(H).max(axis=1, keepdims=True), 1e-12))
        full = np.zeros(len(motions))
        full[:len(seen)] = seen
        unseen = motions[full <= SEEN * max(full.max(), 1.0)]
        moving = np.abs(unseen).max(axis=0) > 1e-3 if len(unseen) else np.zeros(len(self.coordinates), dtype=bool)
        return ', '.join(name for name, moves in zip(self.coordinates, moving) if moves)

    def _check_positions(self) -> None:
        """Raise DescriptionError where the measured positions leave a motion blind."""
        blind = self._blind_motion()
        if blind:
            raise DescriptionError(
                self.description.file, 'sensors', self.channels,
                f'a position sensor that sees the motion of {blind}: a stroke, an encoder of a joint, a distance or an '
                'inclinometer; or a fixed joint in its place')
        for name, (low, high), place in zip(self.cylinders, self.stroke, self.pistons):
            position = self.model.start.q[place]
            if not low <= position <= high:
                raise DescriptionError(self.description.file, f'cylinders.{name}',
                                       f'a piston at {position:.6g} m at the start',
                                       f'from 0 to {high:.6g} m, the stroke: other `start`s of joints, `initial`, '
                                       'closed_length or pins')


__all__ = ['Machine', 'PositionProblemError']
