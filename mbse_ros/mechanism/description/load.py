# SPDX-License-Identifier: Apache-2.0
"""Machine YAML to MachineDescription; the format is told in docs/machine_yaml.md."""

from __future__ import annotations

from pathlib import Path

from ...errors import DescriptionError
from .consistency import check_machine
from ...description.document import read_document
from ...description.entry import Entry
from .load_hydraulics import read_cylinder, read_hydraulics
from .load_mechanism import Points, point_ref, read_body, read_joint, read_points
from .model import GROUND, Cylinder, MachineDescription, Payload, Quantity, Sensors, Vector
from ...description.quantity import not_negative, positive, read_number, read_quantity, read_vector

FORMAT = 'mbse/machine/1'
_REQUIRED = ('format', 'name', 'gravity', 'ground', 'bodies', 'joints', 'cylinders', 'hydraulics', 'payload', 'sensors')


def load_description(path: str | Path) -> MachineDescription:
    """Read and check a machine file.

    Raises DescriptionError (file, key path, value, expected) for a file that cannot be read, is no YAML, or says
    something that cannot be used.
    """
    try:
        text = Path(path).read_text(encoding='utf-8')
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise DescriptionError(str(path), '', str(error), 'a readable text file in UTF-8') from error
    return parse_description(text, str(path))


def parse_description(text: str, file: str = 'text') -> MachineDescription:
    """As load_description, from the text itself; `file` is the name that errors give."""
    root = Entry(file, '', read_document(text, file))
    if isinstance(root.value, dict) and root.value.get('format') != FORMAT:
        raise root.error(FORMAT, root.value.get('format'), 'format')
    parts = root.mapping(_REQUIRED, ['source'])
    machine = _machine(parts, file)
    check_machine(machine, {name: set(body['inertia']) for name, body in parts['bodies'].value.items()})
    return machine


def _machine(parts: dict[str, Entry], file: str) -> MachineDescription:
    ground = parts['ground'].mapping(['points'])['points']
    points: Points = {GROUND: read_points(ground)}
    bodies = {name: read_body(name, entry) for name, entry in parts['bodies'].named('bodies').items()}
    if GROUND in bodies:
        raise parts['bodies'].error("another name, 'ground' is the ground", GROUND, GROUND)
    points.update((name, body.points) for name, body in bodies.items())
    joints = {name: read_joint(name, entry, points) for name, entry in parts['joints'].named('joints').items()}
    cylinders = {name: read_cylinder(name, entry, points)
                 for name, entry in parts['cylinders'].named('cylinders').items()}
    hydraulics = read_hydraulics(parts['hydraulics'], cylinders)
    return MachineDescription(
        file, parts['name'].name(), parts['source'].text('text that names the source') if 'source' in parts else '',
        _gravity(parts['gravity']), points[GROUND], bodies, joints, cylinders, hydraulics,
        _payload(parts['payload'], points), _sensors(parts['sensors'], cylinders, hydraulics.volumes))


def _gravity(entry: Entry) -> Vector:
    """A magnitude along -z, or a vector."""
    inner = entry.value.get('value') if isinstance(entry.value, dict) else entry.value
    if isinstance(inner, list):
        return read_vector(entry, 'm/s^2')
    down = read_quantity(entry, not_negative('m/s^2'))
    return Quantity(0.0), Quantity(0.0), Quantity(0.0 - down.value, down.stddev, down.source)


def _payload(entry: Entry, points: Points) -> Payload:
    parts = entry.mapping(['point', 'limits'])
    point = point_ref(parts['point'], points, on_body=True)
    low, high = (read_number(item, not_negative('kg')) for item in parts['limits'].items('two masses', 2))
    if low >= high:
        raise parts['limits'].error('a lower and a higher mass')
    return Payload(point, (low, high))


def _sensors(entry: Entry, cylinders: dict[str, Cylinder], volumes: dict[str, object]) -> Sensors:
    """A position sensor at every cylinder; pressure sensors where there are any."""
    parts = entry.mapping(['position'], ['pressure'])
    position = parts['position'].mapping(cylinders)
    pressure = parts['pressure'].mapping([], volumes) if 'pressure' in parts else {}
    return Sensors({name: _noise(position[name], 'm') for name in cylinders},
                   {name: _noise(pressure[name], 'Pa') for name in volumes if name in pressure})


def _noise(entry: Entry, unit: str) -> float:
    return read_number(entry.mapping(['stddev'])['stddev'], positive(unit))
