# SPDX-License-Identifier: Apache-2.0
"""A machine with another tool than that of its file: the body that carries the load has another mass, centre of mass
and inertia."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..description.basics import MISSING, Scalar
from ..description.machine_parts import Attachment, Calibration
from ..description.model import Body, MechanismDescription
from ..description.sections.load_bodies import plausible_inertia
from ..errors import DescriptionError

PLACES = (0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)      # of the elements of an inertia in its tensor


def with_attachment(description: MechanismDescription, item: Attachment) -> MechanismDescription:
    """The same machine with a tool that is heavier, or lighter, by what is attached.

    The bodies are joined: masses add up, the centre of mass is theirs together, inertia by the parallel axis theorem.
    Deviations add up as squares. Where pins, teeth and the load are stays as in the file. Raises DescriptionError for a
    machine without one payload, for a body whose numbers are arithmetic, and where too little of the body is left.
    """
    if description.attachment is not None:
        raise DescriptionError(item.file, item.key, item.name, f'no other attachment: {description.name} has '
                               f'{description.attachment.name} already')
    payload = description.payload
    if payload is None:
        raise DescriptionError(description.file, 'payload', None, 'this section: an attachment is a part of the body '
                               'that carries the load')
    body = description.bodies[payload.body]
    if body.uniform or any(number.text for number in (body.mass, *body.center_of_mass, *body.inertia)):
        raise DescriptionError(description.file, f'bodies.{body.name}', body.name, 'a body with mass, center_of_mass '
                               f'and inertia in plain numbers (not uniform): attachment {item.name} changes them')
    if not body.mass.value + item.mass > 0.0:
        raise DescriptionError(item.file, item.key, f'{item.mass:g} kg', f'more than {-body.mass.value:g} kg: what is '
                               f'taken off {body.name}, which weighs {body.mass.value:g} kg')
    center = item.center or tuple((number.value, number.stddev) for number in payload.center)
    if len(center) != description.dimension:
        raise DescriptionError(item.file, f'{item.key}.center_of_mass', [value for value, _ in center],
                               f'{description.dimension} numbers, as {description.name} is in {description.dimension} '
                               'dimensions')
    joined = _joined(body, item, np.array(center))
    return replace(description, bodies={**description.bodies, body.name: joined}, attachment=item,
                   calibration=_calibration(description.calibration, body, joined))


def _joined(body: Body, item: Attachment, center: np.ndarray) -> Body:
    """A body with a mass at ``center`` (d, 2), m: values and deviations."""
    mass, own = body.mass.value + item.mass, np.array([[n.value, n.stddev] for n in body.center_of_mass])
    apart = center[:, 0] - own[:, 0]
    toward, beyond = item.mass / mass * apart, body.mass.value / mass * apart       # from the joint centre to both
    # an error of either mass moves the joint centre, too: the body's mass has its error at that centre
    spread = np.sqrt((body.mass.value * own[:, 1]) ** 2 + (item.mass * center[:, 1]) ** 2
                     + (toward * body.mass.stddev) ** 2 + (beyond * item.stddev) ** 2) / mass
    places = [_changed(n, n.value + step, stddev) for n, step, stddev in zip(body.center_of_mass, toward, spread)]
    return replace(body, mass=_changed(body.mass, mass, float(np.hypot(body.mass.stddev, item.stddev))),
                   center_of_mass=tuple(places),
                   inertia=_inertia(body, item, body.mass.value * item.mass / mass, apart))


def _inertia(body: Body, item: Attachment, reduced: float, apart: np.ndarray) -> tuple[Scalar, ...]:
    """About the joint centre: the two masses as one, ``reduced``, kg, at their distance (d,), m."""
    if len(apart) == 2:
        more = np.array([reduced * float(apart @ apart)])
    else:
        tensor = reduced * (float(apart @ apart) * np.eye(3) - np.outer(apart, apart))
        more = np.array([tensor[place] for place in PLACES])
    given = [number.source != MISSING.source for number in body.inertia]
    found = tuple(_changed(number, number.value + extra, number.stddev) if there else number
                  for number, extra, there in zip(body.inertia, more, given))
    values = [number.value for number in found]
    if min(values[:3]) < 0.0 or item.mass < 0.0 and len(values) > 3 and all(given) and not plausible_inertia(*values):
        raise DescriptionError(item.file, item.key, f'{item.mass:g} kg', f'less mass taken off {body.name}, or nearer '
                               f'to its centre of mass: a body with the inertia {values} cannot be')
    return found


def _changed(number: Scalar, value: float, stddev: float) -> Scalar:
    return replace(number, value=float(value), stddev=float(stddev))


def _calibration(found: Calibration | None, before: Body, after: Body) -> Calibration | None:
    """A calibration's errors, of which those of the body are larger now by a part that no other number shares."""
    pairs = [(before.mass, after.mass), *zip(before.center_of_mass, after.center_of_mass)]
    shares = {old.key: old.stddev / new.stddev for old, new in pairs if 0.0 < old.stddev < new.stddev}
    if found is None or not shares.keys() & set(found.keys):
        return found
    rows = np.zeros((len(found.keys), len(found.keys)))
    for k, row in enumerate(found.rows):
        rows[k, :k + 1] = np.array(row) / np.linalg.norm(row)
    share = np.array([shares.get(key, 1.0) for key in found.keys])
    correlation = rows @ rows.T * np.outer(share, share)
    np.fill_diagonal(correlation, 1.0)
    factor = np.linalg.cholesky(correlation)
    return replace(found, rows=tuple(tuple(row[:k + 1].tolist()) for k, row in enumerate(factor)))
