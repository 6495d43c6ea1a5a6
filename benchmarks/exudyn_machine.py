# SPDX-License-Identifier: Apache-2.0
"""A machine file as a plant in Exudyn, a general multibody program: a second opinion on the package's own plant.

    python benchmarks/exudyn_machine.py zx200 --payload 800 --duration 10 -o out.npz
    python benchmarks/exudyn_machine.py --compare out.npz other.npz

It shares no code with the package: the file is read by ``machine_reader``, the loops are assembled and the forces at
rest found by ``machine_pose``, the oil is in ``machine_oil`` (all equations there). Exudyn is optional (``pip install
exudyn``) and gives the mechanics in redundant coordinates, Euler parameters of every body.

Mechanics
- Every body of the file is a rigid body. A load is a point mass at the payload's point. A joint of the tree is a
  revolute joint of five constraints; one that closes a loop holds its two points together in the plane that its axis
  is normal to (the file's loops are plane, the other three constraints would say the same again).
- Barrel and rod of a cylinder with masses are two uniform slender rods of the closed length (masses of all ``count``
  cylinders together): one turns about the pin of the base, one about that of the eye, along one line. They have a
  moment of 1e-6 m^2 times their mass about it.
- The cylinder's force acts along the line between its pins. No end stops: the commands keep away from them.
- A joint without a cylinder (the swing) turns freely, without friction, or is held with ``--swing held``.

State at t = 0: the file's ``initial`` position, at rest, static balance by virtual work, load included. Rod sides
at 2 MPa; where the piston side would be below 1 MPa then, the piston side is at 2 MPa and the rod side follows. All
spools are at 0 V. Commands: ``COMMANDS`` of ``machine_commands``.

Integration: the trapezoidal rule with constraints of velocity (index 2), constant step; the oil in the same implicit
equations. `--step` 2.5e-4 s is the default.

Checked: halving the step changes lengths by 0.002 mm and pressures by 1.8 kPa at most (zx200, 800 kg, 10 s, 0.5 against
0.25 ms; patu655, 300 kg: 4e-5 mm, 0.14 kPa). A boom with one cylinder and a published solution (rtol 1e-9) of it agree
to 0.1 um and 0.2 kPa over 6 s. Loops stay closed to 4e-9 rad. Exudyn 1.13.6; about 5 s of computing a second.

Output: npz with ``t`` s, ``lengths`` (steps, cylinders) m pin to pin, ``angles`` (steps, joints) rad, ``pressures``
(steps, volumes) Pa, ``spools`` (steps, valves) V, and the names ``cylinders``, ``joints``, ``volumes``, ``valves``.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from machine_commands import COMMANDS
from machine_oil import Oil, resting_pressures
from machine_pose import assemble, frames, from_rpy, holding_forces, lengths, place, tree
from machine_reader import GROUND, Machine, read_machine

MACHINES = Path(__file__).resolve().parent.parent / 'config' / 'machines'
LOW, LEAST = 2e6, 1e6           # Pa, of the chambers at the start
PRESSURE = 1e6                  # Pa: unit of the pressures in Exudyn's state, so that its numbers are of one size
THIN = 1e-6                     # m2, moment of a slender rod about itself over its mass
PERIOD = 1e-3                   # s, of the output


def start(machine: Machine, payload: float, beside=lambda cylinder, z, rate: 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Joint angles, rad, and state of the oil (volumes and valves; Pa, V) at rest; ``beside``: see ``Plant``."""
    q = assemble(machine, machine.initial)
    angles = dict(zip(tree(machine), q))
    targets = {name: length - cylinder.closed
               for (name, cylinder), length in zip(machine.cylinders.items(), lengths(machine, q))}
    forces = holding_forces(machine, {**targets, **{name: angles[name] for name in free(machine)}}, payload)
    p = {}
    for name, cylinder in machine.cylinders.items():
        force = forces[name] + beside(cylinder, targets[name], 0.0)
        p[name, 'piston'], p[name, 'rod'] = resting_pressures(cylinder, force, LOW, LEAST)
    pressures = [p[volume.chambers[0]] for volume in machine.volumes.values()]
    return q, np.array([*pressures, *[0.0] * len(machine.valves)])


def free(machine: Machine) -> list[str]:
    """Joints that no cylinder moves: no cylinder and no loop leads from what is beyond the joint to what is before."""
    ties = [(c.base[0], c.eye[0]) for c in machine.cylinders.values()]
    ties += [(joint.parent[0], joint.child[0]) for joint in machine.joints.values() if joint.loop]
    out = []
    for name in tree(machine):
        beyond = {machine.joints[name].child[0]}
        for joint in machine.joints.values():
            if joint.parent[0] in beyond and not joint.loop:
                beyond.add(joint.child[0])
        if not any((one in beyond) != (other in beyond) for one, other in ties):
            out.append(name)
    return out


class Plant:
    """An Exudyn system of a machine with a load, kg, from rest. ``_carries``: the load is a part of its body."""

    _carries = True

    def __init__(self, machine: Machine, payload: float, swing: str = 'free') -> None:
        import exudyn as exu
        from exudyn.utilities import RigidBodyInertia

        self.exu, self.inertia, self.machine = exu, RigidBodyInertia, machine
        self.container = exu.SystemContainer()
        self.mbs = self.container.AddSystem()
        self.oil = Oil(machine, COMMANDS[machine.name])
        self.unit = np.array([PRESSURE] * len(machine.volumes) + [1.0] * len(machine.valves))
        q, state = start(machine, payload, self._beside)
        self.pose, self.bodies = frames(machine, q), {GROUND: self.mbs.CreateGround()}
        for name in machine.bodies:
            self._add_body(name, payload)
        held = free(machine) if swing == 'held' else []
        for name, joint in machine.joints.items():
            self._add_joint(joint, joint.kind == 'fixed' or name in held)
        self._add_more(payload)
        self.connectors = [self._add_cylinder(k) for k in range(len(machine.cylinders))]
        self._add_oil(state)
        self.sensor = self._add_sensor()
        self.mbs.Assemble()

    def _add_body(self, name: str, payload: float) -> None:
        body, (R, r) = self.machine.bodies[name], self.pose[name]
        inertia = self.inertia(mass=body.mass, com=np.zeros(3), inertiaTensor=body.inertia)
        inertia = inertia.Translated(body.center)
        if name == self.machine.payload[0] and payload and self._carries:
            load = self.inertia(mass=payload, com=np.zeros(3), inertiaTensor=np.zeros((3, 3)))
            inertia = inertia + load.Translated(self.machine.payload[1])
        self.bodies[name] = self.mbs.CreateRigidBody(name=name, referencePosition=r, referenceRotationMatrix=R,
                                                     inertia=inertia, gravity=self.machine.gravity)

    def _beside(self, cylinder, z: float, rate: float) -> float:
        """Force, N, against the way out beside the pistons of a cylinder at a position, m, and its rate, m/s."""
        return 0.0

    def _add_more(self, payload: float) -> None:
        """What another plant has besides, once bodies and joints are there."""

    def _add_joint(self, joint, fixed: bool) -> None:
        """``fixed`` locks all six; a revolute joint of the tree leaves the turn about z of its own axes."""
        axes = [1, 1, 1, 1, 1, 1] if fixed else [1, 1, 0, 0, 0, 0] if joint.loop else [1, 1, 1, 1, 1, 0]
        R, _ = self.pose[joint.parent[0]]
        self._generic(joint.parent[0], joint.child[0], place(self.machine, self.pose, joint.parent),
                      _axes(R @ joint.axis), axes)

    def _generic(self, one, other, position: np.ndarray, R: np.ndarray, axes: list[int]) -> None:
        bodies = [self.bodies.get(item, item) for item in (one, other)]
        self.mbs.CreateGenericJoint(itemNumbers=bodies, position=position, rotationMatrixAxes=R, constrainedAxes=axes,
                                    useGlobalFrame=True)

    def _marker(self, point: tuple[str, str]):
        from exudyn.utilities import MarkerBodyPosition
        return self.mbs.AddMarker(MarkerBodyPosition(bodyNumber=self.bodies[point[0]],
                                                     localPosition=self.machine.point(point)))

    def _add_cylinder(self, k: int):
        from exudyn.utilities import ObjectConnectorSpringDamper
        cylinder = self.oil.cylinders[k]
        if cylinder.barrel_mass or cylinder.rod_mass:
            self._add_rods(cylinder)
        data, unit, pushes, beside = self.mbs.systemData, self.unit, self.oil.pushes, self._beside

        def tension(mbs, t, item, length, rate, *_) -> float:
            return beside(cylinder, length - cylinder.closed, rate) - pushes(
                (data.GetODE1Coordinates() * unit).tolist(), k, rate)

        return self.mbs.AddObject(ObjectConnectorSpringDamper(
            markerNumbers=[self._marker(cylinder.base), self._marker(cylinder.eye)], referenceLength=0.0,
            springForceUserFunction=tension))

    def _add_rods(self, cylinder) -> None:
        """Barrel and rod, x axes from the base to the eye, y axes along the pins of the machine's plane."""
        base, eye = (place(self.machine, self.pose, point) for point in (cylinder.base, cylinder.eye))
        x = (eye - base) / np.linalg.norm(eye - base)
        y = self.pose[cylinder.base[0]][0] @ np.array([0.0, 1.0, 0.0])
        R = np.array([x, y, np.cross(x, y)]).T
        rods = []
        for mass, pin, point, side in ((cylinder.barrel_mass, base, cylinder.base, 1.0),
                                       (cylinder.rod_mass, eye, cylinder.eye, -1.0)):
            m, L = cylinder.count * max(mass, 1e-3), cylinder.closed
            I = m * np.diag([THIN, L * L / 12.0, L * L / 12.0])
            inertia = self.inertia(mass=m, com=np.zeros(3), inertiaTensor=I).Translated([side * L / 2.0, 0.0, 0.0])
            rods.append(self.mbs.CreateRigidBody(referencePosition=pin, referenceRotationMatrix=R, inertia=inertia,
                                                 gravity=self.machine.gravity))
            self._generic(point[0], rods[-1], pin, _axes(y), [1, 1, 1, 1, 1, 0])
        self._generic(rods[0], rods[1], eye, R, [0, 0, 1, 0, 1, 0])

    def _add_oil(self, state: np.ndarray) -> None:
        from exudyn.utilities import NodeGenericODE1, ObjectGenericODE1
        n, unit = len(state), self.unit
        closed = [c.closed for c in self.oil.cylinders]

        def rates(mbs, t, item, coordinates):
            length, rate = self._motion()
            z = [s - s0 for s, s0 in zip(length, closed)]
            return np.array(self.oil.rates(t, (np.array(coordinates) * unit).tolist(), z, rate)) / unit

        node = self.mbs.AddNode(NodeGenericODE1(numberOfODE1Coordinates=n, referenceCoordinates=np.zeros(n),
                                                initialCoordinates=state / unit))
        self.mbs.AddObject(ObjectGenericODE1(nodeNumbers=[node], rhsUserFunction=rates))

    def _motion(self) -> tuple[list[float], list[float]]:
        """Pin to pin lengths, m, and their rates, m/s."""
        output, kinds = self.mbs.GetObjectOutput, self.exu.OutputVariableType
        length, rate = [], []
        for connector in self.connectors:
            line, speed = output(connector, kinds.Displacement), output(connector, kinds.Velocity)
            s = float(np.sqrt(line @ line))
            length.append(s)
            rate.append(float(line @ speed) / s)
        return length, rate

    def _add_sensor(self):
        from exudyn.utilities import SensorUserFunction
        joints = [self.machine.joints[name] for name in tree(self.machine)]
        kind = self.exu.OutputVariableType.RotationMatrix

        def rotation(body: str) -> np.ndarray:
            return np.eye(3) if body == GROUND else self.mbs.GetObjectOutputBody(self.bodies[body], kind).reshape(3, 3)

        def record(mbs, t, sensors, factors, configuration):
            angles = [_angle(j, rotation(j.parent[0]), rotation(j.child[0])) for j in joints]
            return [*self._motion()[0], *angles, *(mbs.systemData.GetODE1Coordinates() * self.unit)]

        return self.mbs.AddSensor(SensorUserFunction(sensorNumbers=[], sensorUserFunction=record, storeInternal=True,
                                                     writeToFile=False))

    def run(self, duration: float, step: float) -> dict[str, np.ndarray]:
        """Time series over ``duration``, s, with a constant ``step``, s."""
        settings = self.exu.SimulationSettings()
        integration = settings.timeIntegration
        integration.numberOfSteps, integration.endTime = round(duration / step), duration
        integration.newton.useModifiedNewton = True
        integration.newton.relativeTolerance, integration.newton.absoluteTolerance = 1e-8, 1e-8
        integration.newton.numericalDifferentiation.relativeEpsilon = 1e-7
        settings.solution.sensors.writePeriod = PERIOD
        settings.solution.file.write = False
        settings.linearSolver.solverType = self.exu.LinearSolverType.EigenSparse
        if not self.mbs.SolveDynamic(settings, solverType=self.exu.DynamicSolverType.TrapezoidalIndex2):
            raise RuntimeError('Exudyn did not converge')
        return self._series(self.mbs.GetSensorStoredData(self.sensor))

    def _series(self, data: np.ndarray) -> dict[str, np.ndarray]:
        names = {'cylinders': list(self.machine.cylinders), 'joints': tree(self.machine),
                 'volumes': self.oil.volumes, 'valves': self.oil.valves}
        parts = np.split(data[:, 1:], np.cumsum([len(item) for item in names.values()])[:-1], axis=1)
        parts[1] = np.unwrap(parts[1], axis=0)
        return {'t': data[:, 0], **dict(zip(('lengths', 'angles', 'pressures', 'spools'), parts)),
                **{key: np.array(item) for key, item in names.items()}}


def _axes(z: np.ndarray) -> np.ndarray:
    """A rotation matrix (3, 3) whose third axis is along ``z``."""
    z = z / np.linalg.norm(z)
    x = np.cross(z, np.eye(3)[np.argmin(np.abs(z))])
    x = x / np.linalg.norm(x)
    return np.array([x, np.cross(z, x), z]).T


def _angle(joint, R0: np.ndarray, R: np.ndarray) -> float:
    """Angle, rad, about the joint's axis; R0, R (3, 3) of parent and child."""
    D = R0.T @ R @ from_rpy(joint.rpy).T
    twist = np.array([D[2, 1] - D[1, 2], D[0, 2] - D[2, 0], D[1, 0] - D[0, 1]])
    return float(np.arctan2(joint.axis @ twist / 2.0, (np.trace(D) - 1.0) / 2.0))


def compare(one: str, other: str) -> None:
    """Prints the largest differences of two runs at their common times, and where they are."""
    a, b = np.load(one), np.load(other)
    _, ia, ib = np.intersect1d(np.round(a['t'], 6), np.round(b['t'], 6), return_indices=True)
    for key, names, unit, scale in (('lengths', 'cylinders', 'mm', 1e3), ('angles', 'joints', 'mrad', 1e3),
                                    ('pressures', 'volumes', 'kPa', 1e-3)):
        difference = np.abs(a[key][ia] - b[key][ib]) * scale
        for k, name in enumerate(a[names]):
            worst = int(np.argmax(difference[:, k]))
            print(f'{key:10} {name:20} largest {difference[worst, k]:11.5f} {unit:4} at {a["t"][ia][worst]:7.3f} s, '
                  f'rms {np.sqrt(np.mean(difference[:, k] ** 2)):11.5f}')


def main() -> None:
    """Runs a machine, or compares two runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('machine', nargs='?', help='zx200, zx200_can, patu655, or a file')
    parser.add_argument('--payload', type=float, default=0.0, help='kg')
    parser.add_argument('--duration', type=float, default=10.0, help='s')
    parser.add_argument('--step', type=float, default=2.5e-4, help='s')
    parser.add_argument('--swing', choices=('free', 'held'), default='free', help='joints that no cylinder moves')
    parser.add_argument('--compare', nargs=2, metavar='NPZ')
    parser.add_argument('-o', '--output', default='')
    settings = parser.parse_args()
    if settings.compare:
        return compare(*settings.compare)
    if not settings.machine:
        parser.error('a machine or --compare')
    path = Path(settings.machine)
    machine = read_machine(path if path.suffix else MACHINES / f'{path}.yaml')
    clock = time.perf_counter()
    series = Plant(machine, settings.payload, settings.swing).run(settings.duration, settings.step)
    print(f'{machine.name}: {settings.duration:g} s in {time.perf_counter() - clock:.1f} s')
    for key, names, unit, scale in (('lengths', 'cylinders', 'mm', 1e3), ('pressures', 'volumes', 'MPa', 1e-6)):
        for k, name in enumerate(series[names]):
            x = series[key][:, k] * scale
            print(f'{name:20} start {x[0]:10.4f} end {x[-1]:10.4f} range {x.min():10.4f} to {x.max():10.4f} {unit}')
    if settings.output:
        np.savez_compressed(settings.output, **series)


if __name__ == '__main__':
    main()
