# SPDX-License-Identifier: Apache-2.0
"""A mechanism in MuJoCo: a tree of joints; what closes its loops is a soft constraint ``connect``."""

from __future__ import annotations

import time
from importlib import import_module
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from mbse_ros.description.basics import GROUND

from .peer_model import Link, NoPeerError, PeerModel, Pose

LEAST_INERTIA = 1e-12       # kg m2, of a point mass: MuJoCo wants some
CUT = {'revolute': 2, 'spherical': 2}       # joints that connect can close; in space a revolute one not
IN_TREE = {'prismatic': 0, 'slot': 0, 'universal': 0, **CUT}


class Setting(NamedTuple):
    """How MuJoCo integrates: time constant of a loop closure in steps, impedance of constraints (its softness)."""

    integrator: str = 'RK4'
    time_constant: float = 2.0
    impedance: float = 0.95


SETTINGS = tuple(Setting(*values) for values in product(('RK4', 'implicitfast'), (2.0, 4.0), (0.95, 0.9999)))


def mujoco_run(peer: PeerModel, dt: float, steps: int, setting: Setting) -> tuple[float, float]:
    """s of the processor for all steps, and the watched coordinate at their end; NoPeerError."""
    mj: Any = import_module('mujoco')
    model = mj.MjModel.from_xml_string(mjcf(peer, dt, setting))
    data = mj.MjData(model)
    _start(mj, model, data, peer)
    begin = time.process_time()
    mj.mj_step(model, data, nstep=steps)
    seconds = time.process_time() - begin
    mj.mj_kinematics(model, data)
    return seconds, peer.value({name: Pose(data.body(name).xpos.copy(), data.body(name).xmat.reshape(3, 3).copy())
                                for name in peer.bodies})


def _start(mj: Any, model: Any, data: Any, peer: PeerModel) -> None:
    """Velocities of the joints that are those of the bodies, and torques, which stay."""
    mj.mj_forward(model, data)
    rows, wanted = [], []
    for name, body in peer.bodies.items():
        J = np.zeros((2, 3, model.nv))
        mj.mj_jac(model, data, J[0], J[1], data.body(name).xpos, data.body(name).id)
        rows += [*J]
        wanted += [body.velocity, body.spin]
        data.body(name).xfrc_applied[5] = peer.torques.get(name, 0.0)
    data.qvel[:] = np.linalg.lstsq(np.vstack(rows), np.concatenate(wanted), rcond=None)[0]


def mjcf(peer: PeerModel, dt: float, setting: Setting) -> str:
    """The model as MJCF, with all coordinates zero at the start."""
    order, cut = _tree(peer)
    coils = ''.join(f'<spatial stiffness="{coil.stiffness!r}" damping="{coil.damping!r}" springlength="{coil.free!r}">'
                    f'<site site="coil{k}_0"/><site site="coil{k}_1"/></spatial>'
                    for k, coil in enumerate(peer.coils) if coil.ends)
    closed = ''.join(_connect(peer, link, dt, setting) for link in cut)
    # with the clamp (refsafe) on, a time constant below two steps is made longer
    return (f'<mujoco><compiler angle="radian"/><option timestep="{dt!r}" gravity="{_text(peer.gravity)}" '
            f'integrator="{setting.integrator}" tolerance="1e-14"><flag contact="disable" refsafe="disable"/></option>'
            f'<worldbody>{_sites(peer, GROUND)}{_children(peer, GROUND, order)}</worldbody>'
            f'<tendon>{coils}</tendon><equality>{closed}</equality></mujoco>')


def _tree(peer: PeerModel) -> tuple[list[tuple[str, str, Link]], list[Link]]:
    """(body before, body, joint between) from the ground on, and the joints that are left to close loops."""
    reached, order, left = {GROUND}, [], dict(peer.links)
    for link in left.values():
        if link.type not in IN_TREE:
            raise NoPeerError(f'MuJoCo has no joint of the type {link.type}')
    cost = IN_TREE if peer.planar else {**IN_TREE, 'revolute': 0}
    while len(reached) <= len(peer.bodies):
        near = [link for link in left.values() if (link.parent in reached) != (link.child in reached)]
        if not near:
            raise NoPeerError('a body that no joint holds')
        link = left.pop(min(near, key=lambda each: cost[each.type]).name)
        before, body = (link.parent, link.child) if link.parent in reached else (link.child, link.parent)
        reached.add(body)
        order.append((before, body, link))
    for link in left.values():
        if cost[link.type] == 0:
            raise NoPeerError(f'MuJoCo closes no loop by a joint of the type {link.type}')
    return order, list(left.values())


def _children(peer: PeerModel, before: str, order: list[tuple[str, str, Link]]) -> str:
    text = ''
    for parent, name, link in order:
        if parent == before:
            body, base = peer.bodies[name], peer.start[parent]
            place = base.rotation.T @ (body.pose.place - base.place)
            axes = base.rotation.T @ body.pose.rotation
            I = np.where(np.eye(3), np.maximum(body.inertia, LEAST_INERTIA), body.inertia)
            tensor = (I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2])
            text += (f'<body name="{name}" pos="{_text(place)}" xyaxes="{_text(axes[:, 0])} {_text(axes[:, 1])}">'
                     f'{_joints(peer, name, link)}<inertial pos="{_text(body.centre)}" mass="{body.mass!r}" '
                     f'fullinertia="{_text(tensor)}"/>{_sites(peer, name)}{_children(peer, name, order)}</body>')
    return text


def _joints(peer: PeerModel, name: str, link: Link) -> str:
    """Joints of a body to the one before it, in the order in which they move it; axes in its own frame."""
    outward = link.child == name
    own = peer.bodies[name].pose.rotation.T
    axis = own @ peer.start[link.parent].rotation @ link.axis
    axis2 = own @ peer.start[link.child].rotation @ link.axis2
    normal = own @ np.array([0.0, 0.0, 1.0])
    anchor, sign = (link.far, 1.0) if outward else (link.near, -1.0)
    if link.type == 'slot' and not outward:     # the point of the child, seen from the parent
        anchor = own @ (peer.start[link.child].at(link.far) - peer.bodies[name].pose.place)
    kinds = {'revolute': [('hinge', axis)], 'prismatic': [('slide', axis)], 'spherical': [('ball', axis)],
             'slot': [('slide', axis), ('hinge', normal)], 'universal': [('hinge', axis), ('hinge', axis2)]}[link.type]
    springs = ''.join(f' stiffness="{coil.stiffness!r}" springref="{sign * coil.free!r}" damping="{coil.damping!r}"'
                      for coil in peer.coils if coil.link == link.name)
    return ''.join(f'<joint type="{kind}" pos="{_text(anchor)}" axis="{_text(sign * direction)}"{springs}/>'
                   for kind, direction in (kinds if outward else reversed(kinds)))


def _sites(peer: PeerModel, name: str) -> str:
    """Ends of springs at a body."""
    return ''.join(f'<site name="coil{k}_{i}" pos="{_text(local)}"/>' for k, coil in enumerate(peer.coils)
                   for i, (body, local) in enumerate(coil.ends or ()) if body == name)


def _connect(peer: PeerModel, link: Link, dt: float, setting: Setting) -> str:
    one, point, other = (link.child, link.far, link.parent) if link.child != GROUND else (link.parent, link.near,
                                                                                          link.child)
    second = '' if other == GROUND else f' body2="{other}"'
    if any(coil.link == link.name for coil in peer.coils):
        raise NoPeerError('a spring at the joint that closes a loop')
    return (f'<connect body1="{one}"{second} anchor="{_text(point)}" solref="{setting.time_constant * dt!r} 1" '
            f'solimp="{min(0.9, setting.impedance)!r} {setting.impedance!r} 0.001"/>')


def _text(vector: Any) -> str:
    return ' '.join(repr(float(x)) for x in vector)
