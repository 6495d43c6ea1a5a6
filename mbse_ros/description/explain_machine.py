# SPDX-License-Identifier: Apache-2.0
"""Tables of what makes a mechanism a machine: cylinders, hydraulics, payload and base."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from .machine_parts import Cylinder, Valve, Volume
from .model import MechanismDescription
from .tables import Row, Section, row, show, vector_text

_FRICTION = {'coulomb': 'N', 'static': 'N', 'transition_velocity': 'm/s', 'viscous': 'N*s/m',
             'pressure_difference': 'm^2', 'pressure_rod': 'm^2', 'scale': ''}
_VALVE = {'nominal_flow': 'm^3/s', 'nominal_pressure': 'Pa', 'nominal_command': 'V', 'command_limit': 'V',
          'time_constant': 's', 'laminar_pressure': 'Pa', 'dead_band': 'V', 'make_up': 'Pa'}


def machine_sections(machine: MechanismDescription) -> list[Section]:
    """Tables of the cylinders, the circuit, the payload and the base; empty for a mechanism without them."""
    sections = [Section(f'cylinder {name}', tuple(_cylinder(item))) for name, item in machine.cylinders.items()]
    if machine.hydraulics is not None:
        sections.append(Section('hydraulics', tuple(_hydraulics(machine))))
    rows = []
    if machine.payload is not None:
        low, high = machine.payload.limits
        place = machine.payload.point or vector_text(machine.payload.center, 'm')
        rows.append(Row('payload', f'{low:g} to {high:g} kg', f'a point mass at {place} of {machine.payload.body}'))
    if machine.base is not None:
        rows += [row(f'base {name}', getattr(machine.base, name), 'rad') for name in ('roll', 'pitch')]
    return [*sections, Section('payload and base', tuple(rows))]


def _cylinder(cylinder: Cylinder) -> Iterable[Row]:
    closed, stroke = cylinder.closed_length.value, cylinder.stroke.value
    yield Row('pins', f'{cylinder.base} to {cylinder.rod_eye}',
              f'{cylinder.count} side by side; numbers are of one, areas of all' if cylinder.count > 1 else '')
    for name in ('bore', 'rod', 'closed_length', 'stroke'):
        yield row(name, getattr(cylinder, name), 'm')
    yield Row('length', f'{show(closed, "m")} to {show(closed + stroke, "m")}', 'pin to pin')
    yield row('piston area', cylinder.piston_area, 'm^2')
    yield row('rod side area', cylinder.rod_area, 'm^2')
    for name in ('barrel_mass', 'rod_mass'):
        if getattr(cylinder, name) is not None:
            yield row(name.replace('_', ' '), getattr(cylinder, name), 'kg')
    for name, unit in _FRICTION.items():
        yield row(f'friction {name}', getattr(cylinder.friction, name), unit)
    for item in fields(cylinder.end_stop) if cylinder.end_stop else ():
        unit = {'stiffness': 'N/m', 'damping': 'N*s/m', 'length': 'm'}[item.name]
        yield row(f'end stop {item.name}', getattr(cylinder.end_stop, item.name), unit)


def _hydraulics(machine: MechanismDescription) -> Iterable[Row]:
    circuit = machine.hydraulics
    yield row('oil bulk modulus', circuit.oil_bulk_modulus, 'Pa')
    for name, pressure in circuit.supplies.items():
        yield row(f'supply {name}', pressure, 'Pa')
    for name, volume in circuit.volumes.items():
        low, high = volume_range(machine, volume)
        yield Row(f'volume {name}', f'{show(low, "m^3")} to {show(high, "m^3")}',
                  'chambers ' + ', '.join('.'.join(chamber) for chamber in volume.chambers))
        yield row(f'volume {name} cylinder bulk modulus', volume.cylinder_bulk_modulus, 'Pa')
        for index, hose in enumerate(volume.hoses):
            yield Row(f'volume {name} hose {index}', show(hose.volume, 'm^3'),
                      f'bulk modulus {show(hose.bulk_modulus, "Pa")}')
    for name, valve in circuit.valves.items():
        yield from _valve(name, valve)


def volume_range(machine: MechanismDescription, volume: Volume) -> tuple[float, float]:
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
        number = getattr(valve, key)
        if number is not None:
            yield row(f'valve {name} {key}', number, unit)
    for edge, gain in valve.gains.items():
        yield row(f'valve {name} gain of {edge}', gain, '')
