# SPDX-License-Identifier: Apache-2.0
"""Reference-point coordinates: each body's centre of mass and its orientation, an angle or Euler parameters."""

from __future__ import annotations

import casadi as ca
import numpy as np

from ...description.basics import GROUND
from ...description.model import Body, MechanismDescription
from ..inertia import center_of_mass
from ..values import Values
from .joint_rows import joint_rows
from .kinematics import BodyFrame, Kinematics, ground_frame


def reference_point(description: MechanismDescription, values: Values) -> Kinematics:
    """Kinematics of bodies that are free except for their joints' rows: 3 coordinates a body in a plane, 7 in space."""
    kinematics = Kinematics(description, values)
    kinematics.frames[GROUND] = ground_frame(description.dimension)
    for body in description.bodies.values():
        free_body(kinematics, body)
    for joint in description.joints.values():
        joint_rows(kinematics, joint)
    return kinematics


def free_body(kinematics: Kinematics, body: Body) -> None:
    """Coordinates and frame of a body without joints."""
    local = center_of_mass(body, kinematics.values)
    number = ca.Function('local', [kinematics.values.symbol], [local])(kinematics.values.mean).full().ravel()
    guess = np.array(body.position) + np.array(body.rotation) @ number
    place = ca.vertcat(*(kinematics.coordinate(f'{body.name}.{"xyz"[k]}', guess[k]) for k in range(len(guess))))
    turned = _planar if kinematics.description.dimension == 2 else _spatial
    rotation, omega, angle = turned(kinematics, body)
    kinematics.frames[body.name] = BodyFrame(place - rotation @ local, rotation, omega, angle)


def _planar(kinematics: Kinematics, body: Body) -> tuple[ca.SX, ca.SX, ca.SX]:
    angle = kinematics.coordinate(f'{body.name}.angle', np.arctan2(body.rotation[1][0], body.rotation[0][0]))
    rotation = ca.horzcat(ca.vertcat(ca.cos(angle), ca.sin(angle)), ca.vertcat(-ca.sin(angle), ca.cos(angle)))
    return rotation, kinematics.qd[-1], angle


def _spatial(kinematics: Kinematics, body: Body) -> tuple[ca.SX, ca.SX, None]:
    return *quaternion(kinematics, body.name, np.array(body.rotation), (body.name,)), None


def quaternion(kinematics: Kinematics, name: str, start: np.ndarray, bodies: tuple[str, ...]) -> tuple[ca.SX, ca.SX]:
    """Euler parameters as coordinates: rotation ``E G'`` and angular velocity ``2 G ed`` along the turned axes.

    Adds their unit length to the constraints, as a row of a body or of a joint between ``bodies``.
    """
    from transforms3d.quaternions import mat2quat  # here: slow to import
    e = ca.vertcat(*(kinematics.coordinate(f'{name}.e{k}', value) for k, value in enumerate(mat2quat(start))))
    ed = ca.vertcat(*kinematics.qd[-4:])
    tail, skew = e[1:], ca.skew(e[1:])
    E = ca.horzcat(-tail, e[0] * ca.SX.eye(3) + skew)
    G = ca.horzcat(-tail, e[0] * ca.SX.eye(3) - skew)
    kinematics.row(f'{name}.unit', name, ca.sumsqr(e) - 1, bodies)
    return E @ G.T, 2 * G @ ed
