# SPDX-License-Identifier: Apache-2.0
"""A map for one machine: only channels it has, in units it has, and what the map leaves to the package's own topics."""

from __future__ import annotations

from dataclasses import replace

from ..description.coordinate_units import measured_unit
from ..errors import DescriptionError
from ..machine import Machine
from .map import SourceMap, sources_of_section
from .proposals.words import near


def section_of(machine: Machine) -> SourceMap | None:
    """The map in the section `sources` of the machine's own file; None without one. Raises DescriptionError."""
    entry = machine.description.sources
    return None if entry is None else sources_of_section(entry)


def for_machine(sources: SourceMap, machine: Machine) -> SourceMap:
    """The map without the optional channels that the machine lacks, and without commands that are not asked for, with
    the noises of the machine's sensors.

    Raises DescriptionError for another channel that the machine has not, or one in a unit that is not the machine's.
    """
    units = {channel.name: measured_unit(machine.description, channel.sensor.name) for channel in machine.all_channels}
    units |= {f'command/{valve}': 'V' for valve in machine.valves}
    wanted = {*machine.channels, *machine.commands}
    for name, ways in sources.channels.items():
        for way in ways:
            if name not in units and not way.optional:
                raise DescriptionError(way.place.file, way.place.key, name, f'a channel of {machine.name}: '
                                       + ', '.join(units) + near(name, units)
                                       + '; `optional: true` ignores one that a machine lacks')
            if name in units and way.unit != units[name]:
                raise way.place.error('unit', f'a unit of {way.unit}', f'a unit of {units[name]}: what {name} of '
                                      f'{machine.name} is in')
    noises = {channel.name: channel.sensor.noise for channel in machine.all_channels}
    return replace(sources, channels={
        name: tuple(replace(way, noise=noises.get(name, 0.0)) for way in ways)
        for name, ways in sources.channels.items() if name in wanted})


def left_over(sources: SourceMap, machine: Machine) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Channels and commands of the machine that the map does not name: they come on the package's own topics."""
    return (tuple(name for name in machine.channels if name not in sources.channels),
            tuple(name for name in machine.commands if name not in sources.channels))

