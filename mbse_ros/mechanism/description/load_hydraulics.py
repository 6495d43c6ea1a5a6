# SPDX-License-Identifier: Apache-2.0
"""The sections `cylinders` and `hydraulics` of a machine file."""

from __future__ import annotations

from ...description.entry import Entry
from .load_mechanism import Points, point_ref
from .model import Cylinder, EndStop, Friction, Hose, Hydraulics, Quantity, Valve, Volume
from ...description.quantity import Kind, not_negative, positive, read_number, read_quantity

_SIDES = ('piston', 'rod')
_MODULUS = Kind('Pa', 1e6)   # a smaller one is a forgotten unit
_ORIFICE = {'nominal_flow': positive('m^3/s'), 'nominal_pressure': Kind('Pa', 1e3), 'nominal_command': positive('V'),
            'command_limit': positive('V'), 'time_constant': positive('s'), 'laminar_pressure': positive('Pa')}


def read_cylinder(name: str, entry: Entry, points: Points) -> Cylinder:
    """One hydraulic cylinder."""
    parts = entry.mapping(['base', 'rod_eye', 'bore', 'rod', 'closed_length', 'stroke', 'friction'], ['end_stop'])
    base, rod_eye = point_ref(parts['base'], points), point_ref(parts['rod_eye'], points)
    if base.body == rod_eye.body:
        raise parts['rod_eye'].error(f'a point of another body than the base, {base.body}')
    bore, rod = (read_quantity(parts[key], Kind('m', 1e-3, 5.0)) for key in ('bore', 'rod'))
    if rod.value >= bore.value:
        raise parts['rod'].error(f'a rod thinner than the bore, {bore.value:g} m')
    closed, stroke = (read_quantity(parts[key], positive('m', 100.0)) for key in ('closed_length', 'stroke'))
    end_stop = _end_stop(parts['end_stop'], stroke.value) if 'end_stop' in parts else None
    return Cylinder(name, base, rod_eye, bore, rod, closed, stroke, _friction(parts['friction']), end_stop)


def _friction(entry: Entry) -> Friction:
    """Pressure terms default to none, the common scale to 1."""
    parts = entry.mapping(['coulomb', 'static', 'transition_velocity', 'viscous'],
                          ['pressure_difference', 'pressure_rod', 'scale'])
    coulomb, static = (read_quantity(parts[key], not_negative('N')) for key in ('coulomb', 'static'))
    if static.value < coulomb.value:
        raise parts['static'].error(f'no less than the Coulomb friction, {coulomb.value:g} N')
    area = [read_quantity(parts[key], not_negative('m^2')) if key in parts else Quantity(0.0)
            for key in ('pressure_difference', 'pressure_rod')]
    scale = read_quantity(parts['scale'], not_negative('1')) if 'scale' in parts else Quantity(1.0)
    return Friction(coulomb, static, read_quantity(parts['transition_velocity'], positive('m/s')),
                    read_quantity(parts['viscous'], not_negative('N*s/m')), *area, scale)


def _end_stop(entry: Entry, stroke: float) -> EndStop:
    parts = entry.mapping(['stiffness', 'damping', 'length'])
    return EndStop(read_quantity(parts['stiffness'], positive('N/m')),
                   read_quantity(parts['damping'], not_negative('N*s/m')),
                   read_quantity(parts['length'], positive('m', 0.5 * stroke)))


def read_hydraulics(entry: Entry, cylinders: dict[str, Cylinder]) -> Hydraulics:
    """The circuit; every chamber belongs to one volume, every volume to a valve."""
    parts = entry.mapping(['oil_bulk_modulus', 'volumes', 'valves'], ['supplies'])
    supplies = {name: read_quantity(item, not_negative('Pa', 1e9))
                for name, item in (parts['supplies'].named('supplies').items() if 'supplies' in parts else ())}
    free = {f'{name}.{side}': (name, side) for name in cylinders for side in _SIDES}
    volumes = {name: _volume(name, item, free, cylinders) for name, item in parts['volumes'].named('volumes').items()}
    if free:
        raise parts['volumes'].error('volumes that hold every chamber; missing: ' + ', '.join(free), list(volumes))
    valves = {name: _valve(name, item, supplies, volumes) for name, item in parts['valves'].named('valves').items()}
    fed = {port for valve in valves.values() for port in (valve.a, valve.b)}
    if fed != set(volumes):
        raise parts['valves'].error('valves that feed every volume; not fed: '
                                    + ', '.join(name for name in volumes if name not in fed), list(valves))
    return Hydraulics(read_quantity(parts['oil_bulk_modulus'], _MODULUS), supplies, volumes, valves)


def _volume(name: str, entry: Entry, free: dict[str, tuple[str, str]], cylinders: dict[str, Cylinder]) -> Volume:
    """One volume; takes its chambers out of `free`."""
    parts = entry.mapping(['chambers', 'cylinder_bulk_modulus', 'hoses'])
    chambers = []
    for item in parts['chambers'].items('chambers'):
        word = item.choice([f'{cylinder}.{side}' for cylinder in cylinders for side in _SIDES], 'a chamber')
        if word not in free:
            raise item.error('each chamber in one volume, once')
        chambers.append(free.pop(word))
    hoses = tuple(_hose(item) for item in parts['hoses'].items('hoses'))
    if not chambers or not hoses:
        raise parts['hoses' if chambers else 'chambers'].error('at least one; a volume must never be empty')
    return Volume(name, tuple(chambers), read_quantity(parts['cylinder_bulk_modulus'], _MODULUS), hoses)


def _hose(entry: Entry) -> Hose:
    parts = entry.mapping(['volume', 'bulk_modulus'])
    return Hose(read_quantity(parts['volume'], positive('m^3')), read_quantity(parts['bulk_modulus'], _MODULUS))


def _valve(name: str, entry: Entry, supplies: dict[str, Quantity], volumes: dict[str, Volume]) -> Valve:
    parts = entry.mapping(['kind', 'ports'], _ORIFICE)
    kind = parts['kind'].choice(['orifice', 'unknown'], 'a kind of valve')
    orifice = kind == 'orifice'
    parts = entry.mapping(['kind', 'ports', *(_ORIFICE if orifice else ())], _ORIFICE)
    ports = parts['ports'].mapping(['a', 'b', *(('pump', 'tank') if orifice else ())], ['pump', 'tank'])
    names = {port: item.choice(supplies if port in ('pump', 'tank') else volumes,
                               'a supply' if port in ('pump', 'tank') else 'a volume')
             for port, item in ports.items()}
    if names['a'] == names['b']:
        raise ports['b'].error('another volume than port a')
    if orifice and supplies[names['pump']].value <= supplies[names['tank']].value:
        raise ports['pump'].error('a supply of higher pressure than the tank')
    values = {key: read_quantity(parts[key], kind) for key, kind in _ORIFICE.items() if key in parts}
    return Valve(name, parts['kind'].text(), names['a'], names['b'], names.get('pump', ''), names.get('tank', ''),
                 **values)
