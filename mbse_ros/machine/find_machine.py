# SPDX-License-Identifier: Apache-2.0
"""From the name of a machine to its model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ..description.load import every_machine, load_mechanism
from ..description.model import MechanismDescription
from ..description.sections.load_hydraulics import VALVE_KINDS
from ..errors import DescriptionError, check_choice, did_you_mean
from .machine import Machine

DEFAULT = 'patu655_lift'        # of a bag that names no machine
MODELLED = VALVE_KINDS[:2]
NEEDED = ('nominal_flow', 'nominal_pressure', 'nominal_command', 'command_limit', 'time_constant', 'laminar_pressure',
          'ports.pump', 'ports.tank')       # of a valve whose flow is modelled


def load_machine(name: str | Path, valve: str | None = None,
                 make: Callable[[MechanismDescription], Machine] = Machine) -> Machine:
    """Machine from the name of a file in ``config/machines`` or ``config/arms``, or from a path.

    ``valve`` replaces the kind of all its valves; ``make`` gives the machine of a description. Raises DescriptionError,
    SettingError for an unknown kind.
    """
    path = Path(name)
    if path.suffix not in ('.yaml', '.yml'):
        known = every_machine()
        if str(name) not in known:
            raise DescriptionError(str(name), 'machine', str(name), 'a path to a .yaml file or one of: '
                                   + ', '.join(known) + did_you_mean(name, known))
        path = known[str(name)]
    description = load_mechanism(path)
    return make(description if valve is None else with_valves(description, valve))


def with_valves(description: MechanismDescription, kind: str, only: tuple[str, ...] = VALVE_KINDS
                ) -> MechanismDescription:
    """The same machine with another model of its valves, or of those whose kind is among ``only``.

    Raises SettingError for another kind, DescriptionError when data for it are missing.
    """
    check_choice('valve', kind, VALVE_KINDS)
    if description.hydraulics is None:
        return description
    valves, supplies = description.hydraulics.valves, description.hydraulics.supplies
    for name, valve in valves.items():
        if kind not in MODELLED or valve.kind not in only:
            continue
        place = f'hydraulics.valves.{name}'
        for key in NEEDED:
            if not getattr(valve, key.removeprefix('ports.')):
                raise DescriptionError(description.file, f'{place}.{key}', None, f'the data of a valve of kind {kind}')
        if supplies[valve.pump].value <= supplies[valve.tank].value:
            raise DescriptionError(description.file, f'{place}.ports.pump', valve.pump,
                                   'a supply of higher pressure than the tank')
    changed = {name: replace(valve, kind=kind) if valve.kind in only else valve for name, valve in valves.items()}
    return replace(description, hydraulics=replace(description.hydraulics, valves=changed))
