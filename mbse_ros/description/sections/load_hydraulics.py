# SPDX-License-Identifier: Apache-2.0
"""The sections `hydraulics` (supplies, volumes and valves) and `cylinders`, of which each also becomes a coordinate of
its name, the position of its piston."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from ..basics import ZERO, Scalar
from ..language.entry import Entry
from ..language.quantity import ValueKind, not_negative, positive
from ..language.references import References
from ..language.scalar import Numbers
from ..machine_parts import EDGES, BalanceError, Cylinder, EndStop, Friction, Hose, Hydraulics, Parallel, Valve, Volume
from ..model import Coordinate
from ..typical import (
    COLDEST,
    HOTTEST,
    NAME,
    SIDES,
    VISCOSITY,
    typical_friction,
    typical_oil,
    typical_valve,
    typical_volume,
    with_supplies,
)

T = TypeVar('T')
_MODULUS = ValueKind('Pa', 1e6)   # a smaller one is a forgotten unit
_ORIFICE = {'nominal_flow': positive('m^3/s'), 'nominal_pressure': ValueKind('Pa', 1e3),
            'nominal_command': positive('V'),
            'command_limit': positive('V'), 'time_constant': positive('s'), 'laminar_pressure': positive('Pa')}
VALVE_KINDS = ('orifice', 'compensated', 'unknown')
_MORE = [*_ORIFICE, 'dead_band', 'make_up', 'gains']
MOST = 8        # cylinders side by side
PARALLEL = {'constant': ValueKind('N', -1e8, 1e8), 'linear': ValueKind('N/m', -1e9, 1e9),
            'cubic': ValueKind('N/m^3', -1e12, 1e12), 'damping': ValueKind('N*s/m', -1e8, 1e8)}
_FRICTION = {'coulomb': not_negative('N'), 'static': not_negative('N'), 'transition_velocity': positive('m/s'),
             'viscous': not_negative('N*s/m')}
LASTING = ValueKind('s', 1e-3, 60.0)        # of an error of the force balance
NO_FRICTION = Friction(ZERO, ZERO, Scalar(1.0), ZERO, ZERO, ZERO, Scalar(1.0))


def read_hydraulics(entry: Entry, numbers: Numbers, cylinders: dict[str, Cylinder]) -> Hydraulics:
    """The circuit; every chamber belongs to one volume, every volume to a valve. What is missing is typical."""
    parts = entry.mapping([], ['oil_bulk_modulus', 'oil', 'volumes', 'valves', 'supplies'])
    supplies = parts['supplies'].each('supplies', lambda _, item: numbers.scalar(item, not_negative('Pa', 1e9))
                                      ) if 'supplies' in parts else {}
    free = {f'{name}.{side}': (name, side) for name in cylinders for side in SIDES}
    volumes = parts['volumes'].each('volumes', lambda name, item: _volume(name, item, numbers, free, cylinders)
                                    ) if 'volumes' in parts else {}
    for name, side in free.values() if entry.sound else ():
        volume = typical_volume(cylinders[name], side)
        if volume.name in volumes:
            raise parts['volumes'].error(f'another name, {name}.{side} is in no volume, and its own has this name',
                                         volume.name, volume.name)
        volumes[volume.name] = volume
    for name in supplies:
        if name in volumes:
            parts['supplies'].wrong('another name, there is a volume of this name', name, name)
    valves = parts['valves'].each('valves', lambda name, item: _valve(name, item, numbers, supplies, volumes)
                                  ) if 'valves' in parts else {}
    if entry.sound:
        supplies = _typical_valves(entry, valves, volumes, supplies, cylinders)
    return Hydraulics(entry.tried(lambda: _oil(parts, numbers), typical_oil()), supplies, volumes, valves)


def _typical_valves(entry: Entry, valves: dict[str, Valve], volumes: dict[str, Volume], supplies: dict[str, Scalar],
                    cylinders: dict[str, Cylinder]) -> dict[str, Scalar]:
    """Put a typical valve at each cylinder whose volumes both have none; the supplies, with those that it needs."""
    of_chamber = {chamber: volume.name for volume in volumes.values() for chamber in volume.chambers}
    fed = {port for valve in valves.values() for port in (valve.a, valve.b)}
    for name, cylinder in cylinders.items():
        a, b = (of_chamber[name, side] for side in SIDES)
        if a != b and not {a, b} & fed:
            supplies, pump, tank = with_supplies(supplies)
            valve = typical_valve(cylinder, a, b, pump, tank)
            if valve.name in valves:
                entry.wrong(f'another name, {name} has no valve, and its own has this name', valve.name, 'valves')
            valves[valve.name] = valve
            fed |= {a, b}
    if fed != set(volumes):
        entry.wrong('valves that feed every volume; not fed: '
                    + ', '.join(name for name in volumes if name not in fed), list(valves), 'valves')
    return supplies


def _oil(parts: dict[str, Entry], numbers: Numbers) -> Scalar:
    """Bulk modulus of the oil: as given, or by the name of a grade and a temperature."""
    if 'oil_bulk_modulus' in parts:
        if 'oil' in parts:
            raise parts['oil'].error('only one of the keys oil, oil_bulk_modulus')
        return numbers.scalar(parts['oil_bulk_modulus'], _MODULUS)
    if 'oil' not in parts:
        return typical_oil()
    what = f"a grade and a temperature, such as 'hlp46 at 40 degC', {COLDEST:g} to {HOTTEST:g} degC"
    words = re.fullmatch(r'(\w+)(?:\s+at\s+(-?\d+(?:\.\d+)?)\s*(?:degC|°C))?', parts['oil'].text(what))
    if words is None:
        raise parts['oil'].error(what)
    grade, celsius = parts['oil'].choice(VISCOSITY, 'an oil', words[1]), float(words[2] or 40.0)
    if not COLDEST <= celsius <= HOTTEST:
        raise parts['oil'].error(what)
    return typical_oil(grade, celsius, f'{grade} at {celsius:g} degC, Hayward 1970')


def _volume(name: str, entry: Entry, numbers: Numbers, free: dict[str, tuple[str, str]],
            cylinders: dict[str, Cylinder]) -> Volume:
    """One volume; takes its chambers out of `free`."""
    parts = entry.mapping(['chambers', 'cylinder_bulk_modulus', 'hoses'])
    chambers = []
    for item in parts['chambers'].items('chambers'):
        word = item.choice([f'{cylinder}.{side}' for cylinder in cylinders for side in SIDES], 'a chamber')
        if word not in free:
            raise item.error('each chamber in one volume, once')
        chambers.append(free.pop(word))
    given = [item.mapping(['volume', 'bulk_modulus']) for item in parts['hoses'].items('hoses')]
    hoses = tuple(Hose(numbers.scalar(hose['volume'], positive('m^3')), numbers.scalar(hose['bulk_modulus'], _MODULUS))
                  for hose in given)
    if not chambers or not hoses:
        parts['hoses' if chambers else 'chambers'].wrong('at least one; a volume must never be empty')
    return Volume(name, tuple(chambers), numbers.scalar(parts['cylinder_bulk_modulus'], _MODULUS), hoses)


def _valve(name: str, entry: Entry, numbers: Numbers, supplies: dict[str, Scalar],
           volumes: dict[str, Volume]) -> Valve:
    parts = entry.mapping(['kind', 'ports'], _MORE)
    kind = parts['kind'].choice(VALVE_KINDS, 'a kind of valve')
    described = kind != 'unknown'
    parts = entry.mapping(['kind', 'ports', *(_ORIFICE if described else ())], _MORE)
    ports = parts['ports'].mapping(['a', 'b', *(('pump', 'tank') if described else ())], ['pump', 'tank'])
    names = {port: item.choice(supplies if port in ('pump', 'tank') else volumes,
                               'a supply' if port in ('pump', 'tank') else 'a volume')
             for port, item in ports.items()}
    if names['a'] == names['b']:
        ports['b'].wrong('another volume than port a')
    if described and supplies[names['pump']].value <= supplies[names['tank']].value:
        ports['pump'].wrong('a supply of higher pressure than the tank')
    values = {key: numbers.scalar(parts[key], kind_of) for key, kind_of in _ORIFICE.items() if key in parts}
    if 'dead_band' in parts:
        values['dead_band'] = _dead_band(parts['dead_band'], numbers, values)
    if 'make_up' in parts:
        values['make_up'] = numbers.scalar(parts['make_up'], ValueKind('Pa', 1e3, 1e7))
    gains = {edge: numbers.scalar(item, positive('1')) for edge, item in parts['gains'].mapping([], EDGES).items()
             } if 'gains' in parts else {}
    return Valve(name, kind, names['a'], names['b'], names.get('pump', ''), names.get('tank', ''), **values,
                 gains=gains)


def _dead_band(entry: Entry, numbers: Numbers, values: dict[str, Scalar]) -> Scalar:
    """Below the command at which the nominal flow passes."""
    band = numbers.scalar(entry, not_negative('V'))
    nominal = values.get('nominal_command')
    if nominal is not None and band.value >= nominal.value:
        entry.wrong(f'less than nominal_command, {nominal.value:g} V')
    return band


def read_cylinders(entry: Entry, references: References, pushed: bool = True) -> dict[str, Cylinder]:
    """Cylinders by name; their coordinates join those of ``references``; ``pushed``: the file says by which hydraulics,
    so that their friction counts."""
    found = {}
    for name, item in entry.named('cylinders').items():
        with item.kept():
            if name in references.coordinates or name in references.joints:
                raise item.error('another name, there is a joint or a coordinate of this name', name)
            found[name] = cylinder = _cylinder(name, item, references, pushed)
            references.coordinates[name] = Coordinate(name, 'piston', points=(cylinder.base, cylinder.rod_eye),
                                                      closed_length=cylinder.closed_length)
    return found


def _cylinder(name: str, entry: Entry, references: References, pushed: bool) -> Cylinder:
    numbers = references.numbers
    parts = entry.mapping(['base', 'rod_eye', 'bore', 'rod', 'closed_length', 'stroke'],
                          ['friction', 'end_stop', 'count', 'barrel_mass', 'rod_mass', 'parallel', 'force_error'])
    base, rod_eye = references.point(parts['base']), references.point(parts['rod_eye'])
    if base.body == rod_eye.body:
        parts['rod_eye'].wrong(f'a point of another body than the base, {base.body}')
    elif references.same_place(base, rod_eye):
        parts['rod_eye'].wrong('a point whose distance from the base can change')
    bore, rod = (numbers.scalar(parts[key], ValueKind('m', 1e-3, 5.0)) for key in ('bore', 'rod'))
    if rod.value >= bore.value:
        parts['rod'].wrong(f'a rod thinner than the bore, {bore.value:g} m')
    closed, stroke = (numbers.scalar(parts[key], positive('m', 100.0)) for key in ('closed_length', 'stroke'))
    barrel, piston = (numbers.optional(parts, key, not_negative('kg')) for key in ('barrel_mass', 'rod_mass'))

    def read(key: str, reader: Callable[[Entry], T], default: T) -> T:
        return parts[key].tried(lambda: reader(parts[key]), default) if key in parts else default

    end_stop = read('end_stop', lambda entry: _end_stop(entry, numbers, stroke.value), None)
    count = read('count', lambda entry: int(entry.choice([str(k) for k in range(1, MOST + 1)],
                                                         'how many cylinders work side by side')), 1)
    usual = typical_friction(name, bore.value) if pushed else NO_FRICTION
    friction = read('friction', lambda entry: _friction(entry, numbers, name, bore.value), usual)
    parallel = read('parallel', lambda entry: _parallel(entry, numbers, stroke.value), None)
    error = read('force_error', lambda entry: _force_error(entry, numbers), None)
    return Cylinder(name, base, rod_eye, bore, rod, closed, stroke, friction, end_stop, count, barrel, piston, parallel,
                    error)


def _friction(entry: Entry, numbers: Numbers, cylinder: str, bore: float) -> Friction:
    """Pressure terms default to none, the common scale to 1; those of a direction are None where the file has none.
    `typical`, or `preset: typical` with other numbers: what is not stated is typical of the bore."""
    if not isinstance(entry.value, dict):
        entry.choice((NAME,), f'a mapping, or {NAME}')
        return typical_friction(cylinder, bore)
    preset = 'preset' in entry.value
    parts = entry.mapping([*_FRICTION] if not preset else ['preset'], [
        *_FRICTION, 'pressure_difference', 'pressure_rod', 'scale', 'out_scale', 'in_scale'])
    kinds = {**_FRICTION, **dict.fromkeys(('pressure_difference', 'pressure_rod'), not_negative('m^2')),
             **dict.fromkeys(('scale', 'out_scale', 'in_scale'), not_negative('1'))}
    given = {key: numbers.scalar(parts[key], kind) for key, kind in kinds.items() if key in parts}
    if preset:
        parts['preset'].choice((NAME,), 'a friction')
        friction = replace(typical_friction(cylinder, bore), **given)
    else:
        friction = replace(NO_FRICTION, **given)
    if friction.static.value < friction.coulomb.value:
        parts.get('static', entry).wrong(f'no less than the Coulomb friction, {friction.coulomb.value:g} N')
    return friction


def _parallel(entry: Entry, numbers: Numbers, stroke: float) -> Parallel:
    """Each of its forces may be missing, not all; springs are free in the middle of the stroke, or as stated."""
    parts = entry.mapping([], [*PARALLEL, 'about'])
    if parts.keys() <= {'about'}:
        raise entry.error('at least one of the keys ' + ', '.join(PARALLEL))
    about = numbers.optional(parts, 'about', ValueKind('m', -100.0, 100.0), Scalar(0.5 * stroke))
    return Parallel(**{key: numbers.optional(parts, key, kind, ZERO) for key, kind in PARALLEL.items()}, about=about)


def _force_error(entry: Entry, numbers: Numbers) -> BalanceError:
    parts = entry.mapping(['stddev'], ['time'])
    stddev = numbers.number(parts['stddev'], not_negative('N', 1e8))
    return BalanceError(stddev, numbers.number(parts['time'], LASTING) if 'time' in parts else None)


def _end_stop(entry: Entry, numbers: Numbers, stroke: float) -> EndStop:
    parts = entry.mapping(['stiffness', 'damping', 'length'])
    return EndStop(numbers.scalar(parts['stiffness'], positive('N/m')),
                   numbers.scalar(parts['damping'], not_negative('N*s/m')),
                   numbers.scalar(parts['length'], positive('m', 0.5 * stroke)))
