# SPDX-License-Identifier: Apache-2.0
"""What was understood from a mechanism or machine file, as tables of text for `mbse check`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from .age import age_text
from .assumptions import is_assumed
from .basics import GROUND, MISSING, Scalar, uncertain
from .language.references import unit_of
from .machine_parts import Cylinder, Drive, Hydraulics, Support, Valve, Volume
from .model import (
    FORCES,
    RATES,
    Body,
    Coordinate,
    Driver,
    Force,
    Joint,
    JointFriction,
    MechanismDescription,
    NonHolonomic,
    Sensor,
    Spring,
    fingerprint,
    sensor_unit,
)
from .sections.load_sensors import PER_DAY
from .tables import Section, TableRow, relative, row, show, vector_text

_MOMENTS = ('xx', 'yy', 'zz', 'xy', 'xz', 'yz')
_COORDINATES = {'natural': 'natural coordinates: x and y of the points',
                'reference_point': 'reference-point coordinates: place and rotation of each body',
                'relative': 'relative coordinates: the angles and displacements of the joints, loops cut'}
_SPRINGS = {'rad': ('N*m/rad', 'rad', 'N*m*s/rad'), 'm': ('N/m', 'm', 'N*s/m')}
_SENSORS = {'encoder': 'position of the coordinate', 'rate': 'velocity of the coordinate', 'position': 'position of',
            'velocity': 'velocity of', 'gyro': 'angular velocity of body', 'accelerometer': 'specific force at',
            'distance': 'distance', 'inclinometer': 'absolute angle of body', 'force': 'force of the driver',
            'pressure': 'pressure of', 'effort': 'effort of', 'current': 'current of',
            'inclination': 'inclination of the base:'}
_FRICTION = {'coulomb': 'N', 'static': 'N', 'transition_velocity': 'm/s', 'viscous': 'N*s/m',
             'pressure_difference': 'm^2', 'pressure_rod': 'm^2', 'scale': '', 'out_scale': '', 'in_scale': ''}
_PARALLEL = {'constant': 'N', 'linear': 'N/m', 'cubic': 'N/m^3', 'damping': 'N*s/m', 'about': 'm'}
_VALVE = {'nominal_flow': 'm^3/s', 'nominal_pressure': 'Pa', 'nominal_command': 'V', 'command_limit': 'V',
          'time_constant': 's', 'laminar_pressure': 'Pa', 'dead_band': 'V', 'make_up': 'Pa'}


def explain(mechanism: MechanismDescription) -> list[Section]:
    """Tables of all that was understood, with units and standard deviations."""
    sections = [_summary(mechanism), Section('parameters', tuple(
        TableRow(name, _number(item), item.text or item.source) for name, item in mechanism.parameters.items()))]
    sections += [Section(f'body {name}', tuple(_body(mechanism, body))) for name, body in mechanism.bodies.items()]
    sections += [
        Section('from the URDF', tuple(TableRow(about, text) for about, text in mechanism.remarks.items())),
        Section('joints', tuple(_joint(joint) for joint in mechanism.joints.values())),
        Section('named coordinates', tuple(_coordinate(mechanism, item) for item in mechanism.coordinates.values())),
        Section('quasi-velocities', tuple(TableRow(
            name, f'velocity of {item.point or item.body}', f'{item.unit}, along {list(item.along)} of its body'
            if item.along else item.unit) for name, item in mechanism.quasi_velocities.items())),
        Section('start', tuple(_initial(mechanism))),
        Section('springs and dampers', tuple(_spring(mechanism, item) for item in mechanism.springs.values())),
        Section('forces', tuple(_force(mechanism, item) for item in mechanism.forces.values())),
        Section('friction of joints', tuple(_joint_friction(item) for item in mechanism.friction.values())),
        Section('drivers', tuple(_driver(mechanism, item) for item in mechanism.drivers.values())),
        Section('non-holonomic constraints', tuple(_nonholonomic(item) for item in mechanism.nonholonomic.values())),
        *machine_sections(mechanism),
        Section('sensors', tuple(_sensor(mechanism, item) for item in mechanism.sensors.values())),
        Section('modules and levels', tuple(_levels(mechanism))),
        Section('uncertain numbers (1 sigma)', tuple(
            TableRow(key, f'{item.value:.7g} +- {item.stddev:.4g}',
                     f'SI; {relative(item)}' + '; assumed' * is_assumed(item))
            for key, item in uncertain(mechanism).items()))]
    return [section for section in sections if section.rows]


def _number(item: Scalar) -> str:
    return f'{item.value:.7g}' + (f' +- {item.stddev:.4g}' if item.stddev else '') + ' (SI)'


def _summary(mechanism: MechanismDescription) -> Section:
    planar = mechanism.dimension == 2
    masses = Scalar(sum(body.mass.value for body in mechanism.bodies.values()))
    rows = [TableRow('name', mechanism.name, mechanism.source),
            TableRow('fingerprint', fingerprint(mechanism), 'in each message of the graph'),
            TableRow('dimension', str(mechanism.dimension),
                     'a plane: x to the right, y up' if planar else 'space: z up'),
            TableRow('coordinates', mechanism.coordinate_type, _COORDINATES[mechanism.coordinate_type]),
            TableRow('independent', ', '.join(mechanism.independent) or 'auto',
                     '' if mechanism.independent else 'chosen where they determine the motion best'),
            TableRow('gravity', vector_text(mechanism.gravity, 'm/s^2')),
            TableRow('bodies', str(len(mechanism.bodies)), f'{show(masses, "kg")} in all')]
    rows += [TableRow(f'{GROUND}.{name}', vector_text(point, 'm'), 'fixed to the ground')
             for name, point in mechanism.ground.items()]
    what = 'machine' if mechanism.is_machine else 'mechanism'
    return Section(f'{what} {mechanism.name}', tuple(rows))


def _body(mechanism: MechanismDescription, body: Body) -> Iterable[TableRow]:
    yield TableRow('mass', show(body.mass, 'kg'), body.mass.text or body.mass.source)
    if body.uniform:
        first, second, *_ = body.points
        yield TableRow('centre of mass, inertia', 'of a uniform slender rod', f'from {first} to {second}')
    else:
        yield TableRow('centre of mass', vector_text(body.center_of_mass, 'm'), 'in the frame of the body')
        for name, moment in zip(_MOMENTS if mechanism.dimension == 3 else ('',), body.inertia):
            if moment is not MISSING:
                yield TableRow(f'inertia {name}'.strip(), show(moment, 'kg*m^2'), 'about the centre of mass')
    for name, point in body.points.items():
        yield TableRow(f'point {name}', vector_text(point, 'm'), ', '.join(item.text for item in point if item.text))
    yield TableRow('frame at the start', vector_text(tuple(map(Scalar, body.position)), 'm'),
                   'a guess, before the assembly')


def _joint(joint: Joint) -> TableRow:
    place = f'{joint.parent} to {joint.child}'
    if joint.length is not None:
        return TableRow(joint.name, f'rod without mass, {show(joint.length, "m")}', place)
    axis = f' ({", ".join(f"{item:g}" for item in joint.axis)})' if joint.axis else ''
    words = {'revolute': 'about', 'prismatic': 'along', 'slot': 'pin in a slot along', 'cylindrical': 'about and along',
             'universal': 'cross with the arm'}
    turned = any(item.value for item in joint.rpy)
    note = f', turned by {vector_text(joint.rpy, "rad")}' if turned else ''
    if joint.limits:
        unit = 'rad' if joint.type == 'revolute' else 'm'
        note += ', from {} to {}'.format(*(show(limit, unit) for limit in joint.limits))
    return TableRow(joint.name, f'{joint.type} {words[joint.type]}{axis}' if axis else joint.type, place + note)


def _coordinate(mechanism: MechanismDescription, item: Coordinate) -> TableRow:
    if item.kind == 'angle':
        relation = 'relative to ' + item.bodies[0] if len(item.bodies) == 2 else 'absolute, from x'
        text = f'angle of {item.bodies[-1]}', f'{relation}, counter-clockwise'
    elif item.kind == 'joint':
        turning = mechanism.joints[item.joint].type == 'revolute'
        text = f'{"angle" if turning else "displacement"} of joint {item.joint}', ''
    elif item.kind == 'piston':
        text = f'piston position of cylinder {item.name}', ''
    elif item.kind == 'distance':
        text = f'distance of {item.points[0]} and {item.points[1]}', ''
    else:
        text = f'{"xyz"[item.component]} of {item.points[0]}', ''
    return TableRow(item.name, text[0], text[1])


def _unit(mechanism: MechanismDescription, coordinate: str) -> str:
    return unit_of(mechanism.coordinates[coordinate], mechanism.joints)


def _initial(mechanism: MechanismDescription) -> Iterable[TableRow]:
    for name, item in mechanism.initial.position.items():
        yield TableRow(name, show(item, _unit(mechanism, name)), 'position')
    for name, item in mechanism.initial.velocity.items():
        quasi = mechanism.quasi_velocities.get(name)
        yield TableRow(name, show(item, quasi.unit if quasi else RATES[_unit(mechanism, name)]), 'velocity')
    if mechanism.initial.held:
        yield TableRow('held', 'yes', 'by constant inputs, in simulations')


def _spring(mechanism: MechanismDescription, item: Spring) -> TableRow:
    where = f'on {item.coordinate}' if item.points is None else f'{item.points[0]} to {item.points[1]}'
    units = _SPRINGS[_unit(mechanism, item.coordinate) if item.coordinate else 'm']
    stiffness, free, damping = map(show, (item.stiffness, item.free, item.damping), units)
    return TableRow(item.name, f'stiffness {stiffness}, damping {damping}', f'{where}, without force at {free}')


def _force(mechanism: MechanismDescription, item: Force) -> TableRow:
    where = (f'on coordinate {item.coordinate}' if item.coordinate else f'torque on {item.body}' if item.body
             else f'at {item.point}')
    if item.direction:
        where += f' along ({", ".join(f"{part:g}" for part in item.direction)})'
    unit = 'N' if item.point else FORCES[_unit(mechanism, item.coordinate)] if item.coordinate else 'N*m'
    if item.input:
        return TableRow(item.name, f'input {item.input}, {unit}', where)
    return TableRow(item.name, vector_text(item.value, unit) if item.point else show(item.value[0], unit), where)


def _joint_friction(item: JointFriction) -> TableRow:
    pin = f' on a pin of radius {show(item.radius, "m")}' if item.radius is not None else ''
    return TableRow(item.name, f'coefficient {show(item.coefficient, "")}{pin}',
                    f'joint {item.joint}, whole from {show(item.speed, "m/s")}')


def _driver(mechanism: MechanismDescription, item: Driver) -> TableRow:
    times = f', times {item.factor:.7g}' if item.factor != 1.0 else ''
    return TableRow(item.name, f'{item.coordinate} = {item.motion}',
                    f'{_unit(mechanism, item.coordinate)}, t in s{times}')


def _nonholonomic(item: NonHolonomic) -> TableRow:
    if item.radius is None:
        along = ', '.join(f'{part:g}' for part in item.along)
        return TableRow(item.name, f'no velocity of {item.point}', f'along ({along}) of its body')
    axis = f'disc about ({", ".join(f"{part:g}" for part in item.axis)}) of its body' if item.axis else 'any side'
    return TableRow(item.name, f'rolls about {item.point}, radius {show(item.radius, "m")}',
                    f'{axis}, on the level of {item.on or "the origin"}')


def _sensor(mechanism: MechanismDescription, item: Sensor) -> TableRow:
    on = (item.volume or item.drive or item.axis or item.coordinate or item.driver
          or (item.body if not item.points else ' and '.join(map(str, item.points))))
    coordinate = item.coordinate or (mechanism.drivers[item.driver].coordinate if item.driver else
                                     mechanism.drives[item.drive].coordinate if item.drive else '')
    unit = sensor_unit(item.kind, lambda: _unit(mechanism, coordinate))
    notes = [f'1 sigma {show(item.stddev, unit)}'] * bool(item.stddev) + ['without gravity'] * (not item.gravity)
    notes += [f'in steps of {show(item.resolution, unit)}'] * bool(item.resolution)
    notes += [f'from {show(item.range[0], unit)} to {show(item.range[1], unit)}'] if item.range else []
    notes += ['gauge: from the pressure of the atmosphere'] * item.gauge
    notes += [f'gain {show(item.gain, "")}'] if item.gain is not None else []
    notes += ['wraps at half a turn'] * item.wraps
    notes += [f'bias {", ".join(show(part, unit) for part in item.bias)}'] * bool(item.bias)
    notes += [f'stamps {show(item.delay, "s")} late'] if item.delay is not None else []
    if (drift := item.drift) is not None:
        rate, age = (show(Scalar(float(f'{value:.4g}')), unit) for value in (drift.rate, drift.stddev))
        notes += [f'drift {rate}{PER_DAY}: {age} of the deviation of its bias is due to age, {age_text(mechanism)}']
    axes = f', {len(item.axes)} axes' if item.axes else ''
    return TableRow(item.name, f'{_SENSORS[item.kind]} {on}{axes}', ', '.join(notes))


def _levels(mechanism: MechanismDescription) -> Iterable[TableRow]:
    for name, parts in mechanism.modules.items():
        yield TableRow(name, ', '.join(parts), 'module')
    for number, level in enumerate(mechanism.levels, 1):
        yield TableRow(f'level {number}', ', '.join(level.modules) or 'all joints that are left')


def machine_sections(machine: MechanismDescription) -> list[Section]:
    """Tables of the cylinders, drives, circuit, payload and base; empty for a mechanism without them."""
    sections = [Section(f'cylinder {name}', tuple(_cylinder(item))) for name, item in machine.cylinders.items()]
    sections += [Section(f'drive {name}', tuple(_drive(item))) for name, item in machine.drives.items()]
    if machine.hydraulics is not None and machine.hydraulics.volumes:
        sections.append(Section('hydraulics', tuple(_hydraulics(machine, machine.hydraulics))))
    rows = []
    for label, payload in machine.every_payload.items():
        (low, high), place = payload.limits, payload.point or vector_text(payload.center, 'm')
        hangs, turns = payload.hanging, payload.gyration_radius
        what = 'hangs and swings below' if hangs else 'of extent, its centre at' if turns else 'a point mass at'
        label = f'payload {label}' if machine.payloads else label
        rows.append(TableRow(label, f'{low:g} to {high:g} kg', f'{what} {place} of {payload.body}'))
        rows += [row(name, value, 'm') for name, value in (('hanging', hangs), ('gyration radius', turns)) if value]
    if machine.base is not None:
        rows += [row(f'base {name}', getattr(machine.base, name), 'rad') for name in ('roll', 'pitch')]
        rows += _support(machine.base.support)
    return [*sections, Section('payload and base', tuple(rows))]


def _support(support: Support | None) -> Iterable[TableRow]:
    if support is not None:
        corners = ', '.join(f'({x:g}, {y:g})' for x, y in support.corners)
        yield TableRow('support', f'{len(support.corners)} corners', f'{corners} m, at z = {support.height:g} m')
        if support.mass:
            center = ', '.join(f'{value:g}' for value in support.center_of_mass)
            yield TableRow('mass of the support', show(support.mass, 'kg'), f'at ({center}) m')


def _cylinder(cylinder: Cylinder) -> Iterable[TableRow]:
    closed, stroke = cylinder.closed_length.value, cylinder.stroke.value
    yield TableRow('pins', f'{cylinder.base} to {cylinder.rod_eye}',
                   f'{cylinder.count} side by side; numbers are of one, areas of all' if cylinder.count > 1 else '')
    for name in ('bore', 'rod', 'closed_length', 'stroke'):
        yield row(name, getattr(cylinder, name), 'm')
    yield TableRow('length', f'{show(closed, "m")} to {show(closed + stroke, "m")}', 'pin to pin')
    yield row('piston area', cylinder.piston_area, 'm^2')
    yield row('rod side area', cylinder.rod_area, 'm^2')
    for name in ('barrel_mass', 'rod_mass'):
        if getattr(cylinder, name) is not None:
            yield row(name.replace('_', ' '), getattr(cylinder, name), 'kg')
    for name, unit in _FRICTION.items():
        if getattr(cylinder.friction, name) is not None:
            yield row(f'friction {name}', getattr(cylinder.friction, name), unit)
    for name, unit in _PARALLEL.items() if cylinder.parallel else ():
        yield row(f'parallel {name}', getattr(cylinder.parallel, name), unit)
    if (error := cylinder.force_error) is not None:
        lasts = '' if error.time is None else f', for {show(Scalar(error.time), "s")}'
        yield TableRow('force error', f'{show(Scalar(error.stddev), "N")}{lasts}',
                       '1 sigma, of the force balance: what no number of this cylinder describes')
    for item in fields(cylinder.end_stop) if cylinder.end_stop else ():
        unit = {'stiffness': 'N/m', 'damping': 'N*s/m', 'length': 'm'}[item.name]
        yield row(f'end stop {item.name}', getattr(cylinder.end_stop, item.name), unit)


def _drive(drive: Drive) -> Iterable[TableRow]:
    force, turns = FORCES[drive.unit], drive.unit == 'rad'
    yield TableRow('joint', drive.coordinate)
    yield TableRow('largest effort', show(drive.largest, force))
    rate = 'N*m*s/rad' if turns else 'N*s/m'
    units = {'coulomb': force, 'static': force, 'transition_velocity': f'{drive.unit}/s', 'viscous': rate}
    for item in fields(drive.friction):
        if (number := getattr(drive.friction, item.name)) is not None:
            yield row(f'friction {item.name}', number, units.get(item.name, ''))
    if drive.rotor_inertia is not None:
        yield row('rotor inertia', drive.rotor_inertia, 'kg*m^2' if turns else 'kg')
    if drive.gear_ratio != 1.0:
        yield TableRow('gear ratio', f'{drive.gear_ratio:g}')
    if drive.torque_constant:
        yield TableRow('torque constant', show(drive.torque_constant, f'{force}/A'), 'of the motor, before the gear')
    if (error := drive.force_error) is not None:
        yield TableRow('force error', show(Scalar(error.stddev), force), '1 sigma, of the force balance')


def _hydraulics(machine: MechanismDescription, circuit: Hydraulics) -> Iterable[TableRow]:
    yield row('oil bulk modulus', circuit.oil_bulk_modulus, 'Pa')
    for name, pressure in circuit.supplies.items():
        yield row(f'supply {name}', pressure, 'Pa')
    for name, volume in circuit.volumes.items():
        low, high = volume_range(machine, volume)
        yield TableRow(f'volume {name}', f'{show(low, "m^3")} to {show(high, "m^3")}',
                       'chambers ' + ', '.join('.'.join(chamber) for chamber in volume.chambers))
        yield row(f'volume {name} cylinder bulk modulus', volume.cylinder_bulk_modulus, 'Pa')
        for index, hose in enumerate(volume.hoses):
            yield TableRow(f'volume {name} hose {index}', show(hose.volume, 'm^3'),
                           f'bulk modulus {show(hose.bulk_modulus, "Pa")}' + f'; {hose.volume.source}' * bool(
                               hose.volume.source))
    for name, valve in circuit.valves.items():
        yield from _valve(name, valve)


def volume_range(machine: MechanismDescription, volume: Volume) -> tuple[float, float]:
    """Smallest and largest size over the strokes of its cylinders, m^3, hoses included."""
    hoses = sum(hose.volume.value for hose in volume.hoses)
    sizes = [machine.cylinders[name].stroke.value * (machine.cylinders[name].piston_area if side == 'piston'
                                                     else machine.cylinders[name].rod_area)
             for name, side in volume.chambers]
    return hoses, hoses + sum(sizes)


def _valve(name: str, valve: Valve) -> Iterable[TableRow]:
    supply = f'pump {valve.pump}, tank {valve.tank}, ' if valve.pump else ''
    yield TableRow(f'valve {name}', valve.kind, f'{supply}a {valve.a}, b {valve.b}')
    for key, unit in _VALVE.items():
        number = getattr(valve, key)
        if number is not None:
            yield row(f'valve {name} {key}', number, unit)
    for edge, gain in valve.gains.items():
        yield row(f'valve {name} gain of {edge}', gain, '')
