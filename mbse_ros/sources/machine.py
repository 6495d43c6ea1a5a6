# SPDX-License-Identifier: Apache-2.0
"""A map for one machine or mechanism: only channels it has, in units it has; and what the map leaves to the package's
own topics, of a mechanism as sources, too."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ..bags.table_map import TableMap
from ..bags.topics import FLOAT64, IMU, INPUTS, JOINT_STATE, JOINTS, Sources, TopicMap
from ..description.coordinate_units import input_unit, measured_unit
from ..description.language.problems import Problems
from ..description.model import MechanismDescription
from ..dynamics.model import Model
from ..errors import DescriptionError, did_you_mean
from ..machine import Machine
from ..machine.channels import sensor_channels
from .fields import ARRIVAL, HEADER_STAMP, PathStep, Selection, parse_path
from .map import ChannelSource, FilePlace, SourceMap, sources_of_section

OWN = "this package's topics"       # as the file of a source


def section_of(item: Machine | Model) -> SourceMap | None:
    """The map in the section `sources` of its own file; None without one. Raises DescriptionError."""
    entry = item.description.sources
    return None if entry is None else sources_of_section(entry)


def for_machine(sources: SourceMap, machine: Machine) -> SourceMap:
    """The map without the optional channels that the machine lacks, and without commands that are not asked for, with
    the noises of the machine's sensors.

    Raises DescriptionError for another channel that the machine has not, or one in a unit that is not the machine's.
    """
    wanted = {name: name for name in (*machine.channels, *machine.commands)}
    return _fitted(sources, machine.description, wanted)


def check_table(table: TableMap, description: MechanismDescription) -> None:
    """Raise DescriptionError where the map of a table's columns has a channel in a unit that is not the machine's."""
    problems = Problems()
    for name, unit in _units(description).items():
        column = table.columns.get(name)
        if column is not None and _other(column.unit, unit):
            problems.add(DescriptionError(table.file, f'channels.{name}.unit', column.cells,
                                          f'a unit of {unit}: what {name} of {description.name} is in'))
    problems.check()


def _units(description: MechanismDescription) -> dict[str, str]:
    """Unit by channel of the sensors."""
    return {channel.name: measured_unit(description, channel.sensor.name) for channel in sensor_channels(description)}


def _other(unit: str, wanted: str) -> bool:
    """Whether a unit of a map is not the one, or one of those ('N or N m'), that is wanted."""
    return unit.replace('*', ' ') not in wanted.split(' or ')


def for_mechanism(sources: SourceMap, model: Model, channels: Collection[str]) -> SourceMap:
    """The same of the ``channels`` of a mechanism's sensors, and of its inputs, under the names of its stage; what the
    file has besides, pressures and commands, is ignored. Raises as `for_machine`."""
    wanted = {channel.name: channel.output for channel in sensor_channels(model.description)
              if channel.output in channels}
    return _fitted(sources, model.description, wanted | {f'input/{name}': f'input/{name}' for name in model.inputs},
                   model.inputs)


def _fitted(sources: SourceMap, description: MechanismDescription, wanted: Mapping[str, str],
            inputs: Sequence[str] = ()) -> SourceMap:
    """Of a map the channels that are ``wanted``, by their names there."""
    units = _units(description)
    units |= {f'command/{valve}': 'V' for valve in (description.hydraulics.valves if description.hydraulics else ())}
    units |= {f'input/{name}': input_unit(description, name) for name in inputs}
    problems = Problems()
    strangers = [way for name, ways in sources.channels.items() if name not in units
                 for way in ways if not way.optional]
    if strangers:
        names = dict.fromkeys(way.channel for way in strangers)
        question = f'; is it a map of {description.name}?' if 2 * len(names) > len(sources.channels) else ''
        problems.add(DescriptionError(
            sources.file, strangers[0].place.key if len(strangers) == 1 else 'channels', ', '.join(names),
            f'a channel of {description.name}: ' + ', '.join(units) + did_you_mean(next(iter(names)), units)
            + f'{question}; `optional: true` ignores one that a machine lacks'))
    for name, ways in sources.channels.items():
        for way in ways:
            if name in units and _other(way.unit, units[name]):
                problems.add(way.place.error('unit', f'a unit of {way.unit}', f'a unit of {units[name]}: what {name} '
                                             f'of {description.name} is in'))
    problems.check()
    noises = {channel.name: channel.sensor.noise for channel in sensor_channels(description)}
    return replace(sources, channels={
        wanted[name]: tuple(replace(way, channel=wanted[name], noise=noises.get(name, 0.0)) for way in ways)
        for name, ways in sources.channels.items() if name in wanted})


def unused_variances(sources: SourceMap) -> list[str]:
    """What is said of a map with variances for a mechanism: a line, or none."""
    names = dict.fromkeys(source.channel for source in sources.sources if source.variance)
    return [f'{", ".join(names)}: `variance` of the map only leaves samples out; filters of a mechanism take the noise '
            'of its file'] if names else []


def left_over(sources: SourceMap, machine: Machine) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Channels and commands of the machine that the map does not name: they come on the package's own topics."""
    return (tuple(name for name in machine.channels if name not in sources.channels),
            tuple(name for name in machine.commands if name not in sources.channels))


def own_sources(sources: SourceMap, model: Model, channels: Collection[str], unstamped: Collection[str] = ()
                ) -> list[ChannelSource]:
    """Where the package's own topics have what the map (of `for_mechanism`) leaves of the ``channels`` and inputs of a
    mechanism; each of these counts. ``unstamped``: sensors that come as Float64. Raises SettingError.

    Joints are also on the topic of a machine, by the names of its coordinates.
    """
    left = [channel for channel in channels if channel not in sources.channels]
    mapped = {channel.partition('.')[0] for channel in channels if channel not in left}
    inputs = [name for name in model.inputs if f'input/{name}' not in sources.channels]
    topics = Sources(model.description, left, inputs, [name for name in unstamped if name not in mapped])
    found: list[ChannelSource] = []
    names: dict[tuple[str, str], list[str]] = {}
    for (field, name), channel in topics.joints.items():
        names.setdefault((field, channel), []).append(name)
    for (field, channel), own in names.items():
        of_machine = model.description.sensors[channel].kind not in ('gyro', 'force')
        found += [_own(channel, topic, JOINT_STATE, _of_joint(field, own))
                  for topic in (JOINTS, TopicMap().position)[:1 + of_machine]]
    for topic, (field, places) in topics.imus.items():
        found += [_own(channel, topic, IMU, (PathStep(field), PathStep(axis))) for axis, channel in places]
    found += [_own(channel, topic, FLOAT64, parse_path('data'), ARRIVAL) for topic, channel in topics.values.items()]
    return found + [_own(channel, INPUTS, JOINT_STATE, _of_joint('effort', [name]))
                    for name, channel in topics.inputs.items()]


def _of_joint(field: str, names: Sequence[str]) -> tuple[PathStep, ...]:
    return (PathStep(field, Selection(None, ('name',), tuple(names))),)


def _own(channel: str, topic: str, kind: str, path: tuple[PathStep, ...], stamp: str = HEADER_STAMP) -> ChannelSource:
    return ChannelSource(channel, topic, path, 1.0, 0.0, '', FilePlace(OWN, channel), stamp, type=kind, own=True)
