# SPDX-License-Identifier: Apache-2.0
"""Newton and Euler's equations of all bodies with the joints' reactions: NumPy alone, six coordinates a body.

Independent of the package: it knows the description, and where the bodies are. Constraints are written as velocities
(points and axes that may not move against each other); their rates come from complex steps of the poses. A plane is
the xy plane of space.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mbse_ros.description.model import GROUND, Body, Coordinate, Joint, MechanismDescription, PointRef, Scalar

STEP = 1e-30
EZ = np.array([0.0, 0.0, 1.0])


def solid(values: tuple[Scalar, ...]) -> np.ndarray:
    """Numbers of a vector, with z = 0 in a plane."""
    return np.array([*(item.value for item in values), 0.0][:3])


def rotation(rpy: tuple[Scalar, ...]) -> np.ndarray:
    """(3, 3) of one angle about z, or of roll, pitch, yaw."""
    angles = [item.value for item in rpy] or [0.0]
    result = np.eye(3)
    for axis, angle in zip((2,) if len(angles) == 1 else (0, 1, 2), angles):
        i, j = (axis + 1) % 3, (axis + 2) % 3
        turn = np.eye(3)
        turn[np.ix_([i, j], [i, j])] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        result = turn @ result
    return result


def unit(axis: tuple[float, ...]) -> np.ndarray:
    return np.array([*axis, 0.0, 0.0, 0.0][:3])


def cross_axes(axis: np.ndarray) -> list[np.ndarray]:
    """Two directions across an axis."""
    return list(np.linalg.svd(axis[None])[2][1:])


@dataclass
class Pose:
    """Centre of mass, rotation, and what lies in the body: complex where it is a step."""

    centre: np.ndarray
    rotation: np.ndarray
    local: np.ndarray       # of the centre of mass

    def at(self, point: np.ndarray) -> np.ndarray:
        return self.centre + self.rotation @ (point - self.local)


def centre_and_inertia(body: Body) -> tuple[np.ndarray, np.ndarray]:
    """Centre of mass and tensor (3, 3) in the frame; of a plane only about z."""
    if body.uniform:
        first, second = [solid(p) for p in body.points.values()][:2]
        span = second - first
        return (first + second) / 2, body.mass.value / 12 * (span @ span * np.eye(3) - np.outer(span, span))
    numbers = [item.value for item in body.inertia]
    if len(numbers) == 1:
        return solid(body.center_of_mass), np.diag([1.0, 1.0, numbers[0]])
    xx, yy, zz, xy, xz, yz = numbers
    return solid(body.center_of_mass), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


class Maximal:
    """A mechanism at given poses: origins (bodies, 3), rotations (bodies, 3, 3), and twists (bodies, 6), the velocity
    of the centre of mass and omega, along the machine's axes; ``coordinates`` are the values of the named ones."""

    def __init__(self, description: MechanismDescription, origins: np.ndarray, rotations: np.ndarray,
                 coordinates: dict[str, float]) -> None:
        self.d, self.coordinates = description, coordinates
        self.names = list(description.bodies)
        self.mass = {name: centre_and_inertia(body) for name, body in description.bodies.items()}
        self.poses = {GROUND: Pose(np.zeros(3), np.eye(3), np.zeros(3))}
        for name, origin, turn in zip(self.names, origins, rotations):
            local = self.mass[name][0]
            self.poses[name] = Pose(origin + turn @ local, turn, local)

    def moved(self, twists: np.ndarray) -> Maximal:
        """A complex step along the motion."""
        other = Maximal.__new__(Maximal)
        other.__dict__.update(self.__dict__)
        other.poses = dict(self.poses)
        for name, twist in zip(self.names, twists):
            pose = self.poses[name]
            spin = np.cross(twist[3:], pose.rotation.T).T
            other.poses[name] = Pose(pose.centre + 1j * STEP * twist[:3], pose.rotation + 1j * STEP * spin, pose.local)
        return other

    def place(self, point: PointRef) -> np.ndarray:
        points = self.d.ground if point.body == GROUND else self.d.bodies[point.body].points
        return self.poses[point.body].at(solid(points[point.point]))

    def along(self, body: str, place: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Row (6 bodies,): velocity of a point of the body, now at ``place``, along a direction."""
        row = np.zeros(6 * len(self.names), dtype=complex)
        if body != GROUND:
            first = 6 * self.names.index(body)
            row[first:first + 3] = direction
            row[first + 3:first + 6] = np.cross(place - self.poses[body].centre, direction)
        return row

    def turning(self, body: str, direction: np.ndarray) -> np.ndarray:
        """Row: angular velocity of the body along a direction."""
        row = np.zeros(6 * len(self.names), dtype=complex)
        if body != GROUND:
            first = 6 * self.names.index(body) + 3
            row[first:first + 3] = direction
        return row

    def joint_rows(self, joint: Joint) -> list[np.ndarray]:
        """What the joint keeps from moving."""
        p, c, planar = joint.parent.body, joint.child.body, self.d.dimension == 2
        parent, child = self.poses[p].rotation, self.poses[c].rotation
        here, there = self.place(joint.parent), self.place(joint.child)

        def tied(direction: np.ndarray, at_parent: np.ndarray) -> np.ndarray:
            return self.along(c, there, direction) - self.along(p, at_parent, direction)

        def kept(direction: np.ndarray) -> np.ndarray:
            return self.turning(c, direction) - self.turning(p, direction)
        if joint.type == 'distance':
            return [tied(there - here, here)]
        rows = []
        axis = unit(joint.axis)
        sides = [np.cross(EZ, axis)] if planar else cross_axes(axis) if joint.axis else []
        if joint.type in ('revolute', 'spherical', 'universal', 'fixed'):
            rows += [tied(direction, here) for direction in np.eye(3)[:2 if planar else 3]]
        if joint.type in ('prismatic', 'slot', 'cylindrical'):
            rows += [tied(parent @ side, there) for side in sides]      # against the parent's point that is there now
        if joint.type in ('prismatic', 'fixed'):
            rows += [kept(EZ)] if planar else [kept(direction) for direction in np.eye(3)]
        if joint.type in ('revolute', 'cylindrical') and not planar:
            rows += [kept(parent @ side) for side in sides]
        if joint.type == 'universal':
            rows.append(kept(np.cross(parent @ axis, child @ unit(joint.axis2))))
        return rows

    def coordinate_row(self, coordinate: Coordinate) -> np.ndarray:
        """Row: rate of a named coordinate."""
        if coordinate.kind == 'angle':
            first, second = (GROUND, *coordinate.bodies)[-2:]
            return self.turning(second, EZ) - self.turning(first, EZ)
        if coordinate.kind == 'component':
            return self.along(coordinate.points[0].body, self.place(coordinate.points[0]),
                              np.eye(3)[coordinate.component])
        if coordinate.kind == 'distance':
            return self.distance_row(*coordinate.points)[0]
        joint = self.d.joints[coordinate.joint]
        p, c, there = joint.parent.body, joint.child.body, self.place(joint.child)
        axis = self.poses[p].rotation @ (unit(joint.axis) if joint.axis else EZ)
        if joint.type in ('prismatic', 'slot', 'cylindrical'):
            return self.along(c, there, axis) - self.along(p, there, axis)
        return self.turning(c, axis) - self.turning(p, axis)

    def distance_row(self, first: PointRef, second: PointRef) -> tuple[np.ndarray, complex]:
        """Row: rate of the distance of two points; and the distance."""
        here, there = self.place(first), self.place(second)
        length = np.sqrt(np.sum((there - here) ** 2))
        direction = (there - here) / length
        return self.along(second.body, there, direction) - self.along(first.body, here, direction), length

    def constraint_rows(self) -> np.ndarray:
        """Rows of all joints, of the plane, and of the drivers (the last ones)."""
        rows = [row for joint in self.d.joints.values() for row in self.joint_rows(joint)]
        if self.d.dimension == 2:
            rows += [row for name in self.names for row in (
                self.along(name, self.poses[name].centre, EZ), *(self.turning(name, e) for e in np.eye(3)[:2]))]
        rows += [self.coordinate_row(self.d.coordinates[driver.coordinate]) for driver in self.d.drivers.values()]
        return np.array(rows).reshape(-1, 6 * len(self.names))

    def forces(self, twists: np.ndarray, inputs: dict[str, float]) -> tuple[np.ndarray, np.ndarray]:
        """Mass matrix and forces (6 bodies,): weight, gyroscopic, springs, dampers, loads."""
        size = 6 * len(self.names)
        M, Q, V = np.zeros((size, size)), np.zeros(size), twists.ravel()
        for k, name in enumerate(self.names):
            turn, omega = self.poses[name].rotation, twists[k, 3:]
            tensor, mass = turn @ self.mass[name][1] @ turn.T, self.d.bodies[name].mass.value
            M[6 * k:6 * k + 3, 6 * k:6 * k + 3], M[6 * k + 3:6 * k + 6, 6 * k + 3:6 * k + 6] = mass * np.eye(3), tensor
            Q[6 * k:6 * k + 3] += mass * solid(self.d.gravity)
            Q[6 * k + 3:6 * k + 6] -= np.cross(omega, tensor @ omega)
        for spring in self.d.springs.values():
            if spring.points:
                row, length = self.distance_row(*spring.points)
            else:
                row = self.coordinate_row(self.d.coordinates[spring.coordinate])
                length = self.coordinates[spring.coordinate]
            row = row.real
            Q -= row * (spring.stiffness.value * (np.real(length) - spring.free.value) + spring.damping.value * row @ V)
        return M, Q + self.loads(inputs)

    def loads(self, inputs: dict[str, float]) -> np.ndarray:
        """Constant forces and inputs (6 bodies,)."""
        total = np.zeros(6 * len(self.names))
        for force in self.d.forces.values():
            value = inputs[force.input] if force.input else None
            if force.coordinate:
                row = self.coordinate_row(self.d.coordinates[force.coordinate])
                total += row.real * (force.value[0].value if value is None else value)
                continue
            vector = solid(force.value) if value is None else value * unit(force.direction)
            if force.point is not None:
                total += self.along(force.point.body, self.place(force.point), vector).real
            else:
                planar = self.d.dimension == 2
                about = EZ * (force.value[0].value if value is None else value) if planar else vector
                total += self.turning(force.body, about).real
        return total

    def accelerations(self, twists: np.ndarray, inputs: dict[str, float],
                      driven: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rates of the twists (bodies, 6), and forces of the drivers; ``driven``: accelerations that they prescribe."""
        M, Q = self.forces(twists, inputs)
        J, V = self.constraint_rows().real, twists.ravel()
        c = -(self.moved(twists).constraint_rows() @ V).imag / STEP
        c[len(c) - len(driven):] += driven
        size, m = len(V), len(c)
        scale = np.linalg.norm(J, axis=1)
        J, c = J / scale[:, None], c / scale
        matrix = np.block([[M, J.T], [J, np.zeros((m, m))]])
        found = np.linalg.lstsq(matrix, np.concatenate([Q, c]), rcond=1e-12)[0]
        return found[:size].reshape(-1, 6), -(found[size:] / scale)[m - len(driven):]

    def gap(self, joint: Joint) -> float:
        """How far a joint is from closed, m or rad."""
        parent, child = self.poses[joint.parent.body].rotation, self.poses[joint.child.body].rotation
        between = parent.T @ (self.place(joint.child) - self.place(joint.parent))
        relative = parent.T @ child @ rotation(joint.rpy).T
        axis = unit(joint.axis) if joint.axis else EZ
        gaps = []
        if joint.type == 'distance':
            gaps.append(np.linalg.norm(between) - joint.length.value)
        elif joint.type in ('prismatic', 'slot', 'cylindrical'):
            gaps.append(between - axis * (axis @ between))
        else:
            gaps.append(between)
        if joint.type in ('prismatic', 'fixed'):
            gaps.append(relative - np.eye(3))
        if joint.type in ('revolute', 'cylindrical'):
            gaps.append(relative @ axis - axis)
        if joint.type == 'universal':
            gaps.append(axis @ parent.T @ child @ unit(joint.axis2))
        return max(float(np.max(np.abs(gap))) for gap in gaps)

    def coordinate_value(self, coordinate: Coordinate) -> float:
        """Value of a named coordinate; angles up to full turns."""
        if coordinate.kind == 'component':
            return self.place(coordinate.points[0])[coordinate.component]
        if coordinate.kind == 'distance':
            return float(self.distance_row(*coordinate.points)[1].real)
        if coordinate.kind == 'angle':
            first, second = (self.poses[name].rotation for name in (GROUND, *coordinate.bodies)[-2:])
            relative, axis = first.T @ second, EZ
        else:
            joint = self.d.joints[coordinate.joint]
            parent = self.poses[joint.parent.body].rotation
            axis = unit(joint.axis) if joint.axis else EZ
            if joint.type in ('prismatic', 'slot', 'cylindrical'):
                return float(axis @ parent.T @ (self.place(joint.child) - self.place(joint.parent)))
            relative = parent.T @ self.poses[joint.child.body].rotation @ rotation(joint.rpy).T
        side = cross_axes(axis)[0]
        return float(np.arctan2(np.cross(side, relative @ side) @ axis, side @ relative @ side))
