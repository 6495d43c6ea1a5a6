# SPDX-License-Identifier: Apache-2.0
"""Checks of a mechanism as a whole: what no single key shows."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ..errors import DescriptionError
from .model import GROUND, MechanismDescription
from .references import nominal
from .start import rpy_rotation

__all__ = ['check_mechanism']


def check_mechanism(mechanism: MechanismDescription, free: Collection[str]) -> None:
    """Raise DescriptionError for bodies that hang on nothing; ``free``: bodies that may, the file gives their place."""
    _check_connected(mechanism, free)
    _check_crosses(mechanism)


def _check_connected(mechanism: MechanismDescription, free: Collection[str]) -> None:
    """Every body is tied to the ground, or together with others to a body that is placed by `position`."""
    groups = {name: {name} for name in (GROUND, *mechanism.bodies)}
    for joint in mechanism.joints.values():
        one, two = groups[joint.parent.body], groups[joint.child.body]
        if one is not two:
            one |= two
            groups.update(dict.fromkeys(two, one))
    for name in mechanism.bodies:
        if GROUND in groups[name] or groups[name] & set(free):
            continue
        raise DescriptionError(mechanism.file, f'bodies.{name}', 'a body that nothing ties to the ground',
                               'a point that is {fixed: ...}, or joints that lead to the ground; a body that moves'
                               ' freely is written with a frame of its own: points as a mapping, and `position`')


def _check_crosses(mechanism: MechanismDescription) -> None:
    """The arms of a universal joint's cross are perpendicular; near parallel they cannot become so."""
    for joint in mechanism.joints.values():
        if joint.type == 'universal':
            cosine = float(np.dot(joint.axis, rpy_rotation(nominal(joint.rpy)) @ np.array(joint.axis2)))
            if abs(cosine) > 0.9:
                raise DescriptionError(mechanism.file, f'joints.{joint.name}', list(joint.axis2),
                                       'an axis2 (in the frame of the child, turned by rpy) that is perpendicular to'
                                       ' axis at the start')
