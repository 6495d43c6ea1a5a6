# SPDX-License-Identifier: Apache-2.0
"""The bodies of a mechanism as a tree of joints from the ground outwards, as robot models have it."""

from __future__ import annotations

from ..description.basics import GROUND
from ..description.model import MechanismDescription


def joint_tree(description: MechanismDescription) -> dict[str, tuple[str, str]]:
    """Of each body the body before it and the joint between them, from the ground outwards.

    Grown in the order of the file; a joint that closes a loop is not in it. A body that no joint reaches, except for a
    rod of constant length, hangs on the ground, its joint is ''.
    """
    found: dict[str, tuple[str, str]] = {}
    waiting = [joint for joint in description.joints.values() if joint.type != 'distance']
    while len(found) < len(description.bodies):
        known = {GROUND, *found}
        joint = next((j for j in waiting if (j.parent.body in known) != (j.child.body in known)), None)
        if joint is None:
            body = next(name for name in description.bodies if name not in found)
            found[body] = GROUND, ''
            continue
        near, far = joint.parent.body, joint.child.body
        if far in known:
            near, far = far, near
        found[far] = near, joint.name
    return found


def chain(description: MechanismDescription, body: str) -> tuple[str, ...]:
    """Joints between the ground and a body, from the ground outwards; '' stands for none."""
    tree, joints = joint_tree(description), []
    while body != GROUND:
        body, joint = tree[body]
        joints.append(joint)
    return tuple(reversed(joints))
