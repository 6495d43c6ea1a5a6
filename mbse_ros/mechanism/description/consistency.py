# SPDX-License-Identifier: Apache-2.0
"""Checks that need the whole machine: the tree, the degrees of freedom, the inertias, the start."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...errors import DescriptionError
from .kinematics import Frames, cylinder_length, frames
from .model import GROUND, Joint, MachineDescription

_MOMENTS = ('xx', 'yy', 'zz')


def check_machine(machine: MachineDescription, moments: Mapping[str, set[str]]) -> None:
    """Raise DescriptionError for what no single key shows; `moments`: the keys of `inertia` that the file gives."""
    chains = {name: _chain(machine, name) for name in machine.bodies}
    _check_freedom(machine)
    found = frames(machine)
    for name, chain in chains.items():
        _check_inertia(machine, name, chain, moments[name], found)
    _check_start(machine, found)


def free_joints(machine: MachineDescription) -> list[Joint]:
    """The joints that have a coordinate."""
    return [joint for joint in machine.joints.values() if joint.type != 'fixed']


def _chain(machine: MachineDescription, body: str) -> list[Joint]:
    """Joints from a body down to the ground."""
    chain: list[Joint] = []
    place = body
    while place != GROUND:
        joints = [joint for joint in machine.joints.values() if joint.child.body == place]
        if len(joints) != 1:
            raise DescriptionError(machine.file, f'bodies.{place}', [joint.name for joint in joints],
                                   'a body that is the child of exactly one joint')
        if joints[0] in chain:
            raise DescriptionError(machine.file, f'joints.{joints[0].name}.parent', str(joints[0].parent),
                                   'joints that lead to the ground, not round in a circle')
        chain.append(joints[0])
        place = joints[0].parent.body
    return chain


def _check_freedom(machine: MachineDescription) -> None:
    joints = [joint.name for joint in free_joints(machine)]
    if len(joints) != len(machine.cylinders):
        raise DescriptionError(machine.file, 'cylinders', list(machine.cylinders),
                               f'one cylinder for each of the {len(joints)} degrees of freedom: {", ".join(joints)}')


def _check_inertia(machine: MachineDescription, name: str, chain: list[Joint], given: set[str], found: Frames) -> None:
    """Moments may be left out only where all joints turn the body about the one axis whose moment is given."""
    if given >= set(_MOMENTS):
        return
    turned = found[name][0].T
    axes = [np.abs(turned @ found[joint.parent.body][0] @ np.array(joint.axis))
            for joint in chain if joint.type == 'revolute']
    needed = {_MOMENTS[int(axis.argmax())] if axis.max() > 1.0 - 1e-9 else 'all' for axis in axes}
    if len(needed) > 1 or not needed <= given:
        raise DescriptionError(machine.file, f'bodies.{name}.inertia', sorted(given),
                               'xx, yy and zz; one is enough where all joints turn the body about that axis of its'
                               ' frame')


def _check_start(machine: MachineDescription, found: Frames) -> None:
    """The start lies inside every stroke."""
    for name, cylinder in machine.cylinders.items():
        length, shortest = cylinder_length(machine, found, name), cylinder.closed_length.value
        longest = shortest + cylinder.stroke.value
        if not shortest <= length <= longest:
            raise DescriptionError(machine.file, f'cylinders.{name}', f'{length:.6g} m between the pins at the start',
                                   f'{shortest:.6g} to {longest:.6g} m, closed_length to closed_length + stroke')
