# SPDX-License-Identifier: Apache-2.0
"""Checks of a mechanism as a whole: what no single key shows."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from ..errors import DescriptionError
from .basics import GROUND, MISSING, PointRef
from .language.references import nominal
from .model import Body, Joint, MechanismDescription
from .start import rpy_rotation
from .tables import show

_MOMENTS = ('xx', 'yy', 'zz')
FARTHEST, NEAREST = 3.0, 0.03       # radius of gyration as a share of the size of a body, of real ones
COARSE = 0.05       # of the range: a sensor with more noise is of no use
QUICK, SLOW = 0.2, 300.0        # s of a full stroke at the nominal flow


def check_mechanism(mechanism: MechanismDescription, free: Collection[str]) -> None:
    """Raise DescriptionError for bodies that hang on nothing; ``free``: bodies that may, the file gives their place."""
    _check_connected(mechanism, free)
    _check_crosses(mechanism)
    for body in mechanism.bodies.values():
        if any(item is MISSING for item in body.inertia):
            _check_moments(mechanism, body)


def check_machine(machine: MechanismDescription) -> None:
    """Raise DescriptionError for pins that are out of their cylinder's reach where the file itself gives the place."""
    for name, cylinder in machine.cylinders.items():
        joints = {joint.type for joint in machine.joints.values()}
        between = _start_place(machine, cylinder.rod_eye) - _start_place(machine, cylinder.base)
        length = float(np.linalg.norm(between))         # of the pins at the guess of the start, m
        closed, longest = cylinder.closed_length.value, cylinder.closed_length.value + cylinder.stroke.value
        tree = len(machine.joints) == len(machine.bodies) and 'distance' not in joints and not machine.initial.position
        if tree and not closed <= length <= longest:
            raise DescriptionError(machine.file, f'cylinders.{name}', f'{length:.6g} m between the pins at the start',
                                   f'{closed:.6g} to {longest:.6g} m, closed_length to closed_length + stroke')


def odd_bodies(mechanism: MechanismDescription) -> Iterator[str]:
    """Bodies whose mass and moments of inertia do not fit their size: another unit."""
    for name, body in mechanism.bodies.items():
        moments = [item.value for item in body.inertia[:3] if item.value > 0.0]
        size = max((float(np.linalg.norm(np.subtract(nominal(point), nominal(body.center_of_mass))))
                    for point in body.points.values()), default=0.0) if body.center_of_mass else 0.0
        for moment in moments if size > 0.0 else ():
            radius = (moment / body.mass.value) ** 0.5
            if not NEAREST * size <= radius <= FARTHEST * size:
                yield (f'bodies.{name}: {body.mass.value:.4g} kg with {moment:.4g} kg*m^2 has a radius of gyration of '
                       f'{radius:.3g} m, expected {NEAREST * size:.2g} to {FARTHEST * size:.2g} m, as its points are '
                       f'up to {size:.3g} m from its centre of mass: are the units right?')
                break


def odd_sensors(machine: MechanismDescription) -> Iterator[str]:
    """Sensors of strokes and pressures whose noise is a large part of what they measure: another unit."""
    for name, sensor in machine.sensors.items():
        whole, unit = 0.0, 'Pa'
        if sensor.kind == 'encoder' and sensor.coordinate in machine.cylinders:
            whole, unit = machine.cylinders[sensor.coordinate].stroke.value, 'm'
        elif sensor.kind == 'pressure' and machine.hydraulics is not None:
            whole = max((supply.value for supply in machine.hydraulics.supplies.values()), default=0.0)
        if whole and sensor.stddev > COARSE * whole:
            yield (f'sensors.{name}.stddev: {show(sensor.stddev, unit)}, expected {show(COARSE * whole, unit)} or '
                   f'less, {100 * COARSE:g} % of {show(whole, unit)}: are the units right?')


def odd_valves(machine: MechanismDescription) -> Iterator[str]:
    """Valves that move a cylinder from end to end in no time, or hardly at all."""
    hydraulics = machine.hydraulics
    if hydraulics is None:
        return
    for name, valve in hydraulics.valves.items():
        swept = sum(machine.cylinders[cylinder].piston_area * machine.cylinders[cylinder].stroke.value
                    for cylinder, side in hydraulics.volumes[valve.a].chambers)
        if valve.nominal_flow is not None and not QUICK <= (time := swept / valve.nominal_flow.value) <= SLOW:
            yield (f'hydraulics.valves.{name}.nominal_flow: {show(valve.nominal_flow, "m^3/s")}, a full stroke in '
                   f'{time:.3g} s, expected {QUICK:g} to {SLOW:g} s: are the units right?')


def _start_place(machine: MechanismDescription, ref: PointRef) -> np.ndarray:
    if ref.body == GROUND:
        return np.array(nominal(machine.ground[ref.point]))
    body = machine.bodies[ref.body]
    return np.array(body.position) + np.array(body.rotation) @ np.array(nominal(body.points[ref.point]))


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


def _check_moments(mechanism: MechanismDescription, body: Body) -> None:
    """Moments may be left out only where all joints turn the body about the one axis whose moment is given."""
    chain = _chain(mechanism, body.name)
    turned = np.array(body.rotation).T
    rotations = {GROUND: np.eye(3), **{name: np.array(other.rotation) for name, other in mechanism.bodies.items()}}
    axes = [np.abs(turned @ rotations[joint.parent.body] @ np.array(joint.axis))
            for joint in chain or () if joint.type in ('revolute', 'cylindrical')]
    given = {axis for axis, item in zip(_MOMENTS, body.inertia) if item is not MISSING}
    needed = {_MOMENTS[int(axis.argmax())] if axis.max() > 1.0 - 1e-9 else 'all' for axis in axes}
    free = chain is None or any(joint.type not in ('revolute', 'prismatic', 'fixed') for joint in chain)
    if free or len(needed) > 1 or not needed <= given:
        raise DescriptionError(mechanism.file, f'bodies.{body.name}.inertia', sorted(given),
                               'xx, yy and zz; one is enough where all joints turn the body about that axis of its'
                               ' frame')


def _chain(mechanism: MechanismDescription, body: str) -> list[Joint] | None:
    """Joints by which a body hangs on the ground, first ones of the file first; None: on nothing."""
    known: dict[str, list[Joint]] = {GROUND: []}
    grown = True
    while grown and body not in known:
        grown = False
        for joint in mechanism.joints.values():
            ends = joint.parent.body, joint.child.body
            if (ends[0] in known) != (ends[1] in known) and joint.type != 'distance':
                near, far = ends if ends[0] in known else ends[::-1]
                known[far], grown = [*known[near], joint], True
    return known.get(body)


def _check_crosses(mechanism: MechanismDescription) -> None:
    """The arms of a universal joint's cross are perpendicular; near parallel they cannot become so."""
    for joint in mechanism.joints.values():
        if joint.type == 'universal':
            cosine = float(np.dot(joint.axis, rpy_rotation(nominal(joint.rpy)) @ np.array(joint.axis2)))
            if abs(cosine) > 0.9:
                raise DescriptionError(mechanism.file, f'joints.{joint.name}', list(joint.axis2),
                                       'an axis2 (in the frame of the child, turned by rpy) that is perpendicular to'
                                       ' axis at the start')
