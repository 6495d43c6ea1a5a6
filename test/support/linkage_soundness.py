# SPDX-License-Identifier: Apache-2.0
"""What becomes of a mechanism file of any kind: an error of the package, or a model that fulfils its equations."""

from __future__ import annotations

import numpy as np

from mbse_ros.description.load import parse_mechanism
from mbse_ros.description.model import MechanismDescription
from mbse_ros.dynamics.model import Model
from mbse_ros.errors import DescriptionError, MbseError

TOLERANCE = 1e-6     # relative; lengths from 1e-3 to 1e3 m meet in one file


class Unsound(Exception):
    """A model that was built but is wrong."""


def outcome(text: str) -> str:
    """What became of one file; raises what must not happen."""
    try:
        description = parse_mechanism(text)
    except DescriptionError:
        return 'refused by the reader'
    try:
        model = Model(description, backend='vm')
        accelerations = check(model)
    except MbseError as error:
        return f'refused: {type(error).__name__}'
    return 'sound, compared' if compared(description, model, accelerations) else 'sound'


def check(model: Model) -> np.ndarray:
    """Accelerations at the start, (n,), which fulfil ``M qdd + J' lam = Q`` and ``J qdd = c``."""
    start = model.start
    qdd = model.accelerations(start.q, start.qd)
    terms = model.terms(start.q, start.qd)
    if not np.all(np.isfinite(qdd)):
        raise Unsound('accelerations that are not finite')
    scale = max(1.0, float(np.abs(terms.J).max(initial=0.0)) * float(np.abs(qdd).max(initial=0.0)),
                float(np.abs(terms.c).max(initial=0.0)))
    if float(np.abs(terms.J @ qdd - terms.c).max(initial=0.0)) > TOLERANCE * scale:
        raise Unsound('accelerations that break the constraints')
    force = terms.Q - terms.M @ qdd
    rest = force - terms.J.T @ np.linalg.lstsq(terms.J.T, force, rcond=None)[0] if len(terms.J) else force
    if float(np.abs(rest).max(initial=0.0)) > TOLERANCE * max(1.0, float(np.abs(terms.M).max() * np.abs(qdd).max()),
                                                             float(np.abs(terms.Q).max())):
        raise Unsound('accelerations that break the equations of motion')
    return qdd


def compared(description: MechanismDescription, model: Model, accelerations: np.ndarray) -> bool:
    """Whether the named coordinates could be compared with those in other coordinates; raises where they differ."""
    other_type = 'reference_point' if description.coordinate_type == 'natural' else 'natural'
    names = list(description.coordinates)
    if description.dimension == 3 or not names:
        return False
    try:
        other = Model(description, other_type, backend='vm')
        there = other.accelerations(other.start.q, other.start.qd)
    except MbseError:
        return False
    here, at = model.system.indices(names), other.system.indices(names)
    if not np.allclose(model.start.q[here], other.start.q[at], rtol=0.0, atol=1e-8):
        return False         # another branch of the linkage
    if other.degrees_of_freedom != model.degrees_of_freedom:
        raise Unsound(f'{model.degrees_of_freedom} and {other.degrees_of_freedom} degrees of freedom')
    energy, energy_there = (item.energy(item.start.q, item.start.qd) for item in (model, other))
    if abs(energy.kinetic - energy_there.kinetic) > 1e-9 * max(1.0, energy.kinetic):
        return False         # velocities that the file leaves open were chosen in another way
    if abs(energy.potential - energy_there.potential) > 1e-6 * max(1.0, abs(energy.potential)):
        return False         # as above, of bodies that are not named
    scale = max(1.0, float(np.abs(accelerations).max()), float(np.abs(there).max()))
    if float(np.abs(accelerations[here] - there[at]).max()) > 1e-5 * scale:
        raise Unsound(f'accelerations {accelerations[here]} and {there[at]} of {names}')
    return True
