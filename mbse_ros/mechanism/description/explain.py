# SPDX-License-Identifier: Apache-2.0
"""What was understood from a machine file, as tables of text for `mbse check`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields

from .consistency import free_joints
from .kinematics import cylinder_length, frames
from .listing import uncertain
from .model import GROUND, Body, Cylinder, Joint, MachineDescription, Quantity, Valve, Vector, Volume

_MOMENTS = ('xx', 'yy', 'zz', 'xy', 'xz', 'yz')
# Factor from SI to the unit that is shown.
_SHOWN = {'m': (1e3, 'mm'), 'rad': (180.0 / math.pi, 'deg'), 'm^2': (1e4, 'cm^2'), 'Pa': (1e-6, 'MPa'),
          'm/s': (1e3, 'mm/s'), 'm^3': (1e3, 'l'), 'm^3/s': (6e4, 'l/min'), 's': (1e3, 'ms')}
_FRICTION = {'coulomb': 'N', 'static': 'N', 'transition_velocity': 'm/s', 'viscous': 'N*s/m',
             'pressure_difference': 'm^2', 'pressure_rod': 'm^2', 'scale': ''}
_VALVE = {'nominal_flow': 'm^3/s', 'nominal_pressure': 'Pa', 'nominal_command': 'V', 'command_limit': 'V',
          'time_constant': 's', 'laminar_pressure': 'Pa'}


@dataclass(frozen=True)
class Row:
    """One line of a table: name, value with unit, and what else there is to say."""

    name: str
    value: str
    note: str = ''


@dataclass(frozen=True)
class Section:
    """One table."""

    title: str
    rows: tuple[Row, ...]


def explain(machine: MachineDescription) -> list[Section]:
    """Tables of all that was understood, with units and standard deviations, and of what follows from it."""
    sections = [_summary(machine)]
    sections += [Section(f'body {name}', tuple(_body(body))) for name, body in machine.bodies.items()]
    sections += [Section('joints', tuple(_joint(joint) for joint in machine.joints.values()))]
    sections += [Section(f'cylinder {name}', tuple(_cylinder(machine, item)))
                 for name, item in machine.cylinders.items()]
    sections += [Section('hydraulics', tuple(_hydraulics(machine))), _sensors(machine), _uncertain(machine)]
    return sections


def show(quantity: Quantity | float, unit: str) -> str:
    """Value with standard deviation in the unit people use, e.g. '143.66 +- 1.4366 kg'; `unit` is that of SI."""
    quantity = quantity if isinstance(quantity, Quantity) else Quantity(quantity)
    factor, name = _SHOWN.get(unit, (1.0, unit))
    spread = f' +- {quantity.stddev * factor:.4g}' if quantity.stddev else ''
    return f'{quantity.value * factor:.7g}{spread} {name}'.strip()


def _row(name: str, quantity: Quantity | float, unit: str, note: str = '') -> Row:
    return Row(name, show(quantity, unit), note or getattr(quantity, 'source', ''))


def _vector(name: str, vector: Vector, unit: str) -> Row:
    text = ', '.join(show(item, unit).rpartition(' ')[0] for item in vector)
    return Row(name, f'({text}) {_SHOWN.get(unit, (1.0, unit))[1]}', vector[0].source)


def _summary(machine: MachineDescription) -> Section:
    free = free_joints(machine)
    rows = [Row('name', machine.name, machine.source),
            Row('degrees of freedom', str(len(free)), ', '.join(joint.name for joint in free)),
            Row('independent coordinates', str(len(machine.cylinders)),
                'piston positions of ' + ', '.join(machine.cylinders)),
            _row('mass of all bodies', sum(body.mass.value for body in machine.bodies.values()), 'kg'),
            _vector('gravity', machine.gravity, 'm/s^2')]
    rows += [_vector(f'{GROUND}.{name}', point, 'm') for name, point in machine.ground_points.items()]
    low, high = machine.payload.limits
    rows.append(Row('payload', f'{low:g} to {high:g} kg', f'at {machine.payload.point}'))
    return Section(f'machine {machine.name}', tuple(rows))


def _body(body: Body) -> Iterable[Row]:
    yield _row('mass', body.mass, 'kg')
    yield _vector('centre of mass', body.center_of_mass, 'm')
    for name, moment in zip(_MOMENTS, body.inertia):
        if moment.value or moment.stddev:
            yield _row(f'inertia {name}', moment, 'kg*m^2', 'about the centre of mass')
    for name, point in body.points.items():
        yield _vector(f'point {name}', point, 'm')


def _joint(joint: Joint) -> Row:
    place = f'{joint.parent} to {joint.child}'
    if joint.type == 'fixed':
        return Row(joint.name, 'fixed', f'{place}, {_vector("", joint.rpy, "rad").value} roll, pitch, yaw')
    unit = 'rad' if joint.type == 'revolute' else 'm'
    axis = ', '.join(f'{item:g}' for item in joint.axis)
    low, high = (show(limit, unit) for limit in joint.limits)
    return Row(joint.name, f'{joint.type} about ({axis})' if unit == 'rad' else f'{joint.type} along ({axis})',
               f'{place}, from {low} to {high}, start {show(joint.start, unit)}')


def _cylinder(machine: MachineDescription, cylinder: Cylinder) -> Iterable[Row]:
    start = cylinder_length(machine, frames(machine), cylinder.name)
    closed, stroke = cylinder.closed_length.value, cylinder.stroke.value
    yield Row('pins', f'{cylinder.base} to {cylinder.rod_eye}')
    for name in ('bore', 'rod', 'closed_length', 'stroke'):
        yield _row(name, getattr(cylinder, name), 'm')
    yield Row('length', f'{show(closed, "m")} to {show(closed + stroke, "m")}', 'pin to pin')
    yield _row('piston position at start', start - closed, 'm', f'length {show(start, "m")}')
    yield _row('piston area', cylinder.piston_area, 'm^2')
    yield _row('rod side area', cylinder.rod_area, 'm^2')
    for name, unit in _FRICTION.items():
        yield _row(f'friction {name}', getattr(cylinder.friction, name), unit)
    for item in fields(cylinder.end_stop) if cylinder.end_stop else ():
        unit = {'stiffness': 'N/m', 'damping': 'N*s/m', 'length': 'm'}[item.name]
        yield _row(f'end stop {item.name}', getattr(cylinder.end_stop, item.name), unit)


def _hydraulics(machine: MachineDescription) -> Iterable[Row]:
    circuit = machine.hydraulics
    yield _row('oil bulk modulus', circuit.oil_bulk_modulus, 'Pa')
    for name, pressure in circuit.supplies.items():
        yield _row(f'supply {name}', pressure, 'Pa')
    for name, volume in circuit.volumes.items():
        low, high = volume_range(machine, volume)
        yield Row(f'volume {name}', f'{show(low, "m^3")} to {show(high, "m^3")}',
                  'chambers ' + ', '.join('.'.join(chamber) for chamber in volume.chambers))
        yield _row(f'volume {name} cylinder bulk modulus', volume.cylinder_bulk_modulus, 'Pa')
        for index, hose in enumerate(volume.hoses):
            yield Row(f'volume {name} hose {index}', show(hose.volume, 'm^3'),
                      f'bulk modulus {show(hose.bulk_modulus, "Pa")}')
    for name, valve in circuit.valves.items():
        yield from _valve(name, valve)


def volume_range(machine: MachineDescription, volume: Volume) -> tuple[float, float]:
    """Smallest and largest size over the strokes of its cylinders, m^3, hoses included."""
    hoses = sum(hose.volume.value for hose in volume.hoses)
    sizes = [machine.cylinders[name].stroke.value * (machine.cylinders[name].piston_area if side == 'piston'
                                                     else machine.cylinders[name].rod_area)
             for name, side in volume.chambers]
    return hoses, hoses + sum(sizes)


def _valve(name: str, valve: Valve) -> Iterable[Row]:
    supply = f'pump {valve.pump}, tank {valve.tank}, ' if valve.pump else ''
    yield Row(f'valve {name}', valve.kind, f'{supply}a {valve.a}, b {valve.b}')
    for key, unit in _VALVE.items():
        quantity = getattr(valve, key)
        if quantity is not None:
            yield _row(f'valve {name} {key}', quantity, unit)


def _sensors(machine: MachineDescription) -> Section:
    rows = [_row(f'position/{name}', noise, 'm', '1 sigma') for name, noise in machine.sensors.position.items()]
    rows += [_row(f'pressure/{name}', noise, 'Pa', '1 sigma') for name, noise in machine.sensors.pressure.items()]
    return Section('sensors', tuple(rows))


def _uncertain(machine: MachineDescription) -> Section:
    """What the payload's interval will account for."""
    rows = tuple(Row(key, f'{item.value:.7g} +- {item.stddev:.4g}', f'SI; {relative(item)}')
                 for key, item in uncertain(machine).items())
    return Section('uncertain parameters (1 sigma)', rows)


def relative(quantity: Quantity) -> str:
    """Standard deviation as a share of the value."""
    return f'{100.0 * quantity.stddev / abs(quantity.value):.3g} %' if quantity.value else 'of a value of 0'
