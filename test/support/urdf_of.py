# SPDX-License-Identifier: Apache-2.0
"""URDFs: of a machine of the package, as a public one would be (the chain alone, without rods and links), and of the
UR10e with the frames of its public description; and the answers to what they lack."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from new_machines import measured, pins_of
from transforms3d.euler import euler2mat, mat2euler

from mbse_ros.description.from_urdf.answers import read_robot_answers
from mbse_ros.description.from_urdf.layout import robot_layout
from mbse_ros.description.from_urdf.write import robot_text
from mbse_ros.description.language.references import nominal
from mbse_ros.description.load import load_mechanism, parse_mechanism
from mbse_ros.description.model import Body, MechanismDescription

Tips = Mapping[str, tuple[str, str]]
CRANE = {'load': '500 kg', 'tool': 'tip', 'cylinder_masses': 'included', 'masses': '1 %', 'positions': 'strokes'}
PINS = {'boom_base': '0.26 m, -1.04 m', 'boom_eye': '0.3202 m, 2.5907 m, below',
        'boom_cylinder': '100 mm, 56 mm, 0.82 m, 1.355 m'}
MIMIC = '<mimic joint="boom_joint" multiplier="0.5"/>'
LIMIT = '<limit lower="{:.9g}" upper="{:.9g}" effort="{}" velocity="1"/>'


def words(values: Any) -> str:
    return ' '.join(f'{value:.12g}' for value in values)


def link_of(body: Body, origin: np.ndarray) -> str:
    """The inertial of a link whose frame is where the joint before it is."""
    xx, yy, zz, *products = nominal(body.inertia)
    xx, yy = xx or zz, yy or zz     # what only swings has one in its file
    return inertial(body.mass.value, np.array(nominal(body.center_of_mass)) - origin, (xx, yy, zz), products)


def inertial(mass: float, center: Any, moments: Any, products: Any = (0.0, 0.0, 0.0), rpy: Any = (0, 0, 0)) -> str:
    names = ('ixx', 'iyy', 'izz', 'ixy', 'ixz', 'iyz')
    tensor = ' '.join(f'{name}="{value}"' for name, value in zip(names, (*moments, *products)))
    return (f'<inertial><origin xyz="{words(center)}" rpy="{words(rpy)}"/><mass value="{mass}"/><inertia {tensor}/>'
            '</inertial>')


def joint(name: str, parent: str, child: str, xyz: Any, rpy: Any = (0, 0, 0), more: str = '', kind: str = 'fixed'
          ) -> str:
    return (f'  <joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="{words(xyz)}" rpy="{words(rpy)}"/>{more}</joint>\n')


def urdf_of(machine: MechanismDescription, tips: Tips, without: Collection[str] = ()) -> str:
    """``tips``: fixed links by body and point; ``without``: bodies that are not in it."""
    places, parts = {'ground': np.zeros(3)}, [f'<robot name="{machine.name}">\n  <link name="ground_link"/>\n']

    def at(body: str, point: str) -> np.ndarray:
        points = machine.ground if body == 'ground' else machine.bodies[body].points
        return np.array(nominal(points[point])) - places[body]

    for item in machine.joints.values():
        child, parent = item.child.body, item.parent.body
        if child in places or child in without:
            continue
        places[child] = np.zeros(3)
        places[child] = at(child, item.child.point)
        rpy = nominal(item.rpy)
        axis = f'<axis xyz="{words(euler2mat(*rpy).T @ np.array(item.axis))}"/>'
        limit = LIMIT.format(*item.limits, 1000) if item.limits else ''
        parts += [f'  <link name="{child}">{link_of(machine.bodies[child], places[child])}</link>\n', joint(
            item.name, 'ground_link' if parent == 'ground' else parent, child, at(parent, item.parent.point), rpy,
            axis + limit, item.type if limit else 'continuous')]
    for tip, (body, point) in tips.items():
        parts += [f'  <link name="{tip}"/>\n', joint(f'{tip}_joint', body, tip, at(body, point))]
    return ''.join([*parts, '</robot>\n'])


def excavator(folder: Path) -> dict[str, Any]:
    """zx200 without rocker and link, and the answers to its URDF, measured without an error."""
    path = folder / 'zx200.urdf'
    path.write_text(urdf_of(load_mechanism('zx200'), {'bucket_tip': ('bucket', 'teeth')}, ('rocker', 'link')))
    pins, answers = pins_of('zx200'), measured(pins_of('zx200'))
    arm, bucket = pins['arm'], pins['bucket']
    kept = ('boom_base', 'boom_eye', 'boom_cylinder', 'arm_base', 'arm_cylinder', 'bucket_base', 'rocker_pin', 'rocker',
            'link', 'bucket_cylinder')
    return {'urdf': str(path), 'load': '2.5 t', 'masses': '1 %', 'boom_cylinders': '2', 'positions': 'strokes',
            **{key: answers[key] for key in kept},
            'arm_eye': [math.dist(arm[end], arm['arm_cylinder_eye']) for end in ('boom_pin', 'bucket_pin')],
            'link_pin': [math.dist(bucket[end], bucket['link_pin']) for end in ('arm_pin', 'teeth')]}


def ur10e() -> str:
    """Its frames, joints and limits as in Universal_Robots_ROS2_Description; masses and centres of ur10e.yaml, which
    are in the frames of the DH table, by the poses of both where all joints are at 0."""
    own, pi = load_mechanism('ur10e'), math.pi
    table, here = (np.zeros(3), np.eye(3)), (np.zeros(3), np.eye(3))
    names = ('shoulder', 'upper_arm', 'forearm', 'wrist_1', 'wrist_2', 'wrist_3')
    parts = ['<robot name="ur10e">\n', *(f'  <link name="{name}"/>\n' for name in (
        'base_link', 'base_link_inertia', 'flange', 'tool0', 'ft_frame')), joint(
            'base_link-base_link_inertia', 'base_link', 'base_link_inertia', (0, 0, 0), (0, 0, pi))]
    places = ((0, 0, 0.1807), (0, 0, 0), (-0.6127, 0, 0), (-0.57155, 0, 0.17415), (0, -0.11985, -2.458e-11),
              (0, 0.11655, -2.39e-11))
    turns = ((0, 0, 0), (pi / 2, 0, 0), (0, 0, 0), (0, 0, 0), (pi / 2, 0, 0), (pi / 2, pi, pi))
    before = 'base_link_inertia'
    for name, place, turn, item in zip(names, places, turns, own.drives.values()):
        hung, body = own.joints[item.name], own.bodies[name]
        limits, outer = hung.limits, own.bodies[hung.parent.body].points if hung.parent.body != 'ground' else own.ground
        turned = table[1] @ euler2mat(*nominal(hung.rpy))
        table = (table[0] + table[1] @ nominal(outer[hung.parent.point]) - turned @ nominal(
            body.points[hung.child.point]), turned)
        here = here[0] + here[1] @ place, here[1] @ euler2mat(*turn)
        center = here[1].T @ (table[0] + turned @ nominal(body.center_of_mass) - here[0])
        xx, yy, zz, *products = nominal(body.inertia)
        weight = inertial(body.mass.value, center, (xx, yy, zz), products, mat2euler(here[1].T @ turned))
        parts += [f'  <link name="{name}_link">{weight}</link>\n', joint(
            item.name, before, f'{name}_link', place, turn, '<axis xyz="0 0 1"/>' + LIMIT.format(
                *limits, item.largest) + '<dynamics damping="0" friction="0"/>', 'revolute')]
        before = f'{name}_link'
    parts += [joint('wrist_3-flange', before, 'flange', (0, 0, 0), (0, -pi / 2, -pi / 2)),
              joint('flange-tool0', 'flange', 'tool0', (0, 0, 0), (pi / 2, 0, pi / 2)),
              joint('wrist_3-ft_frame', before, 'ft_frame', (0, 0, 0), (pi, 0, 0))]
    return ''.join([*parts, '</robot>\n'])


def crane(folder: Path, axis: str = '0 -1 0', limits: str = '<limit lower="-0.3" upper="1.2" effort="1" velocity="1"/>',
          turn: str = '0 0 0', end: str = '2.9 0 0.02') -> str:
    """A boom on a column; ``axis`` in the frame of the boom."""
    own = inertial(150.0, (1.2, 0, 0.05), (5.0, 67.0, 67.0))
    path = folder / 'crane.urdf'
    path.write_text(f'<robot name="crane"><link name="base_link"/><link name="boom">{own}</link><link name="tip"/>'
                    '<joint name="boom_joint" type="revolute"><parent link="base_link"/><child link="boom"/>'
                    f'<origin xyz="0 0 1" rpy="{turn}"/><axis xyz="{axis}"/>{limits}</joint>'
                    f'<joint name="end" type="fixed"><parent link="boom"/><child link="tip"/><origin xyz="{end}"/>'
                    '</joint></robot>')
    return str(path)


def made(answers: dict[str, Any]) -> MechanismDescription:
    given = read_robot_answers(answers)
    return parse_mechanism(robot_text(given, robot_layout(given)), 'text')
