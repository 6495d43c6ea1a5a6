# SPDX-License-Identifier: Apache-2.0
"""A mechanism in Exudyn: redundant coordinates of each body (three in a plane, Euler parameters in space), all joints
as constraints."""

from __future__ import annotations

import time
from importlib import import_module
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from mbse_ros.description.basics import GROUND

from .peer_model import Coil, Link, NoPeerError, PeerModel, Pose, Z


class Setting(NamedTuple):
    """How Exudyn integrates: by the trapezoidal rule on constraints of velocity or the generalised alpha method, whose
    Jacobian is kept (``modified``) or not; sparse or dense equations."""

    solver: str = 'TrapezoidalIndex2'
    modified: bool = True
    equations: str = 'EXUdense'


SETTINGS = tuple(Setting(*values) for values in product(('TrapezoidalIndex2', 'GeneralizedAlpha'), (True, False),
                                                        ('EXUdense', 'EigenSparse')))


def exudyn_run(peer: PeerModel, dt: float, steps: int, setting: Setting) -> tuple[float, float]:
    """s of the processor for all steps, and the watched coordinate at their end; NoPeerError."""
    exu: Any = import_module('exudyn')
    system = (_Plane if peer.planar else _Space)(exu, peer)
    system.mbs.Assemble()
    settings = exu.SimulationSettings()
    settings.timeIntegration.numberOfSteps, settings.timeIntegration.endTime = steps, steps * dt
    settings.timeIntegration.verboseMode, settings.timeIntegration.adaptiveStep = 0, False
    settings.timeIntegration.newton.useModifiedNewton = setting.modified
    settings.linearSolverType = getattr(exu.LinearSolverType, setting.equations)
    settings.solutionSettings.writeSolutionToFile = False
    settings.solutionSettings.sensorsWritePeriod = steps * dt
    begin = time.process_time()
    system.mbs.SolveDynamic(settings, solverType=getattr(exu.DynamicSolverType, setting.solver))
    return time.process_time() - begin, peer.value({name: system.pose(name) for name in peer.bodies})


class _System:
    """Bodies, joints and loads as objects of Exudyn."""

    def __init__(self, exu: Any, peer: PeerModel) -> None:
        self.exu, self.peer = exu, peer
        self.items: Any = import_module('exudyn.itemInterface')
        self.container = exu.SystemContainer()
        self.mbs = self.container.AddSystem()
        self.numbers = {GROUND: self.mbs.AddObject(self.items.ObjectGround())}
        for name in peer.bodies:
            self.numbers[name] = self.body(name)
        for link in peer.links.values():
            self.joint(link)
        for coil in peer.coils:
            self.coil(coil) if coil.ends else self.turning(coil, peer.links[coil.link])

    def body(self, name: str) -> Any:
        raise NotImplementedError

    def joint(self, link: Link) -> None:
        raise NotImplementedError

    def turning(self, coil: Coil, link: Link) -> None:
        raise NotImplementedError

    def local(self, body: str, point: np.ndarray) -> np.ndarray:
        """Point (3,) in the frame of Exudyn's body."""
        return point

    def marker(self, body: str, point: np.ndarray, rigid: bool = False) -> Any:
        """A place on a body, with its rotation where ``rigid``."""
        kind = self.items.MarkerBodyRigid if rigid else self.items.MarkerBodyPosition
        return self.mbs.AddMarker(kind(bodyNumber=self.numbers[body], localPosition=self.local(body, point).tolist()))

    def coil(self, coil: Coil) -> None:
        """Spring and damper between two points."""
        self.mbs.AddObject(self.items.ObjectConnectorSpringDamper(
            markerNumbers=[self.marker(*end) for end in coil.ends or ()], referenceLength=coil.free,
            stiffness=coil.stiffness, damping=coil.damping))

    def pose(self, name: str) -> Pose:
        """Where a body is now."""
        place, turn = (np.array(self.mbs.GetObjectOutputBody(
            self.numbers[name], getattr(self.exu.OutputVariableType, what),
            localPosition=self.local(name, np.zeros(3)).tolist())) for what in ('Position', 'RotationMatrix'))
        return Pose(place, turn.reshape(3, 3))


class _Plane(_System):
    """Bodies of three coordinates, at their centres of mass."""

    def body(self, name: str) -> Any:
        body, items = self.peer.bodies[name], self.items
        centre, angle = body.pose.at(body.centre), np.arctan2(*body.pose.rotation[1::-1, 0])
        node = self.mbs.AddNode(items.NodeRigidBody2D(
            referenceCoordinates=[*centre[:2], float(angle)],
            initialVelocities=[*body.centre_velocity[:2], float(body.spin[2])]))
        number = self.mbs.AddObject(items.ObjectRigidBody2D(physicsMass=body.mass, nodeNumber=node,
                                                            physicsInertia=float(body.inertia[2, 2])))
        mass = self.mbs.AddMarker(items.MarkerBodyMass(bodyNumber=number))
        self.mbs.AddLoad(items.LoadMassProportional(markerNumber=mass, loadVector=self.peer.gravity.tolist()))
        if name in self.peer.torques:
            turn = self.mbs.AddMarker(items.MarkerBodyRigid(bodyNumber=number))
            torque = self.peer.torques[name] * Z
            self.mbs.AddLoad(items.LoadTorqueVector(markerNumber=turn, loadVector=torque.tolist()))
        return number

    def local(self, body: str, point: np.ndarray) -> np.ndarray:
        return point if body == GROUND else point - self.peer.bodies[body].centre

    def joint(self, link: Link) -> None:
        if link.type == 'revolute':
            self.mbs.AddObject(self.items.ObjectJointRevolute2D(
                markerNumbers=[self.marker(link.parent, link.near), self.marker(link.child, link.far)]))
        elif link.type in ('prismatic', 'slot'):
            # the axis of the first marker, the normal of the second: of a slot the rail is the second
            start, normal = self.peer.start, np.cross(Z, link.axis)
            markers = [self.marker(link.parent, link.near, True), self.marker(link.child, link.far, True)]
            other = start[link.child].rotation.T @ start[link.parent].rotation
            slot = link.type == 'slot'
            self.mbs.AddObject(self.items.ObjectJointPrismatic2D(
                markerNumbers=markers[::-1] if slot else markers, constrainRotation=not slot,
                axisMarker0=(other @ link.axis if slot else link.axis).tolist(),
                normalMarker1=(normal if slot else other @ normal).tolist()))
        else:
            raise NoPeerError(f'no joint of the type {link.type} here')

    def turning(self, coil: Coil, link: Link) -> None:
        """On the angles of both nodes, which count from the start."""
        nodes = [self.mbs.GetObject(self.numbers[name])['nodeNumber'] for name in (link.parent, link.child)]
        markers = [self.mbs.AddMarker(self.items.MarkerNodeCoordinate(nodeNumber=node, coordinate=2)) for node in nodes]
        self.mbs.AddObject(self.items.ObjectConnectorCoordinateSpringDamper(
            markerNumbers=markers, stiffness=coil.stiffness, damping=coil.damping, offset=coil.free))


class _Space(_System):
    """Rigid bodies with Euler parameters; a joint is a generic one that locks some of six axes."""

    def body(self, name: str) -> Any:
        utilities: Any = import_module('exudyn.utilities')
        body = self.peer.bodies[name]
        if name in self.peer.torques:
            raise NoPeerError('a torque on a body in space')
        inertia = utilities.RigidBodyInertia(mass=body.mass, com=np.zeros(3), inertiaTensor=body.inertia)
        return self.mbs.CreateRigidBody(
            referencePosition=body.pose.place, referenceRotationMatrix=body.pose.rotation,
            initialVelocity=body.velocity, initialAngularVelocity=body.spin,
            inertia=inertia.Translated(body.centre), gravity=self.peer.gravity)

    def joint(self, link: Link) -> None:
        """Of a universal joint the arms are x and y; other joints have their axis along z."""
        locked = {'revolute': [1, 1, 1, 1, 1, 0], 'spherical': [1, 1, 1, 0, 0, 0], 'prismatic': [1, 1, 0, 1, 1, 1],
                  'universal': [1, 1, 1, 0, 0, 1]}.get(link.type)
        if locked is None:
            raise NoPeerError(f'no joint of the type {link.type} here')
        start = self.peer.start
        axis = start[link.parent].rotation @ link.axis
        if link.type == 'universal':
            arm = start[link.child].rotation @ link.axis2
            frame = np.column_stack([axis, arm, np.cross(axis, arm)])
        else:
            frame = _along(axis if axis.any() else Z)
        self.mbs.CreateGenericJoint(itemNumbers=[self.numbers[link.parent], self.numbers[link.child]],
                                    position=start[link.parent].at(link.near), rotationMatrixAxes=frame,
                                    constrainedAxes=locked, useGlobalFrame=True)

    def turning(self, coil: Coil, link: Link) -> None:
        start = self.peer.start
        frame = _along(start[link.parent].rotation @ link.axis)
        ends = ((link.parent, link.near), (link.child, link.far))
        turns = [start[body].rotation.T @ frame for body, _ in ends]
        self.mbs.AddObject(self.items.ObjectConnectorTorsionalSpringDamper(
            markerNumbers=[self.marker(*end, rigid=True) for end in ends], stiffness=coil.stiffness,
            damping=coil.damping, offset=coil.free, rotationMarker0=turns[0], rotationMarker1=turns[1]))


def _along(axis: np.ndarray) -> np.ndarray:
    """A frame (3, 3) whose z axis is this unit vector."""
    x = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    x = x / np.linalg.norm(x)
    return np.column_stack([x, np.cross(axis, x), axis])
