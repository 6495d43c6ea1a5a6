# SPDX-License-Identifier: Apache-2.0
"""The graph of a machine, described once: topics, processes, parameters. The launch files and `mbse up` read it.

No ROS is needed to read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, TypeVar

from ..bags.channel_samples import topic_readers
from ..bags.topics import JOINT_STATE, PAYLOAD, SEGMENT, STATE, TRUTH, TopicMap
from ..description.load import known_mechanisms
from ..errors import DescriptionError, SettingError
from ..machine import Machine, load_machine
from ..resources import share_directory
from ..settings import Settings, setting
from ..simulation.crane import cycle_by_name, plant_machine
from .settings import CYCLE_CHOICES, VALVES

DIAGNOSTICS = {'/diagnostics': 'diagnostic_msgs/msg/DiagnosticArray'}
TOPICS = {
    'segment': SEGMENT,
    'state': STATE,
    'estimated/joint_states': JOINT_STATE,
    'payload': PAYLOAD,
    'truth': TRUTH,
    'markers': 'visualization_msgs/msg/MarkerArray',
    **DIAGNOSTICS,
}
MARKERS_FRAME = 'machine'
A = TypeVar('A', bound=Settings)


def sensor_topics(machine: Machine) -> dict[str, str]:
    """Topics of the sensors and commands of a machine, relative to its namespace, and their types."""
    topics = TopicMap()
    readers = topic_readers(machine.channels, (), topics, lambda error: None)
    return {**{topic: reader.msgtype for topic, reader in readers.items()}, topics.command: JOINT_STATE}


def machine_topics(machine: Machine) -> dict[str, str]:
    """All topics of a machine's graph, relative to its namespace, and their types."""
    return {**sensor_topics(machine), **TOPICS}


@dataclass(frozen=True)
class MachineArguments(Settings):
    """Arguments of the launch files and of `mbse up machine` and `mbse up crane`."""

    machine: str = setting('patu655_lift', 'Machine: name of a file in config/machines, or a path')
    valve: str = setting('described', "Model of all valves: the one of the machine's file, or another", choices=VALVES)
    simulate: bool = setting(True, 'Start the simulated machine; false: the sensors come from elsewhere')
    payload: float = setting(50.0, 'True payload of the simulated machine', 'kg', 0.0, 1e6)
    cycle: str = setting('lift_hold_lower', 'What moves the simulated machine: a work cycle (lift_hold_lower and boom: '
                         'the first valve; random: all; dig: an excavator), or the topic valve_command',
                         choices=CYCLE_CHOICES)
    seed: int = setting(1, 'Seed of the simulated machine', '', 0, 2 ** 31 - 1)
    cycles: int = setting(0, 'Work cycles (of 24 s; dig 22 s) until the graph ends; 0: go on for a day', '', 0, 3600)
    namespace: str = setting('', 'Namespace of all nodes and topics')
    use_sim_time: bool = setting(False, 'Time comes from /clock; with simulate the simulated machine publishes it')
    rviz: bool = setting(False, 'Start RViz')
    autostart: bool = setting(True, 'The nodes configure and activate themselves')
    record: str = setting('', 'Folder of a bag to write; empty: none')


@dataclass(frozen=True)
class Process:
    """One process: executable of a package, its node, parameters, remappings, plain arguments.

    ``respawn``: started again when it dies; ``final``: when it ends by itself the graph ends.
    """

    executable: str
    name: str
    namespace: str = ''
    parameters: Mapping[str, Any] = field(default_factory=dict)
    remappings: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    package: str = 'mbse_ros'
    respawn: bool = False
    final: bool = False


@dataclass(frozen=True)
class Graph:
    """Processes that belong together."""

    processes: tuple[Process, ...]


def parse_arguments(given: Mapping[str, Any], kind: type[A] = MachineArguments) -> A:
    """Arguments from words or values; raises SettingError for an unknown name, a wrong type or value."""
    known = {item.name: item for item in fields(kind)}
    values = {}
    for name, value in given.items():
        if name not in known:
            raise SettingError(name, value, 'one of the arguments ' + ', '.join(known))
        values[name] = _from_word(name, value, type(known[name].default)) if isinstance(value, str) else value
    return kind(**values)


def word(value: Any) -> str:
    """An argument's value as it is typed."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def describe(item: Field) -> str:
    """What an argument means, with its unit and the words it may be."""
    meta = item.metadata
    unit = f' [{meta["unit"]}]' if meta['unit'] else ''
    return meta['text'] + unit + (f' ({", ".join(meta["choices"])})' if meta['choices'] else '')


def machine_graph(arguments: MachineArguments) -> Graph:
    """Processes of a machine's graph; raises DescriptionError for a machine that cannot be used so, SettingError for a
    cycle that is not its own."""
    a = arguments
    check_machine(a)        # tell now, not in five processes
    readers = 1 + bool(a.record)
    reliability = 'reliable' if a.simulate else 'best_effort'
    common = {'use_sim_time': a.use_sim_time, 'autostart': a.autostart, 'machine': a.machine, 'valve': a.valve}
    processing = {'respawn': True, 'namespace': a.namespace}
    processes = [
        Process('interpolation_node', 'interpolation_node', **processing, parameters={
            **common, 'wait_subscribers': readers, 'sensor_reliability': reliability}),
        Process('observer_node', 'observer_node', **processing, parameters={
            **common, 'wait_subscribers': readers + 1}),
        Process('payload_node', 'payload_node', **processing, parameters={**common, 'wait_subscribers': readers}),
        Process('visualization_node', 'visualization_node', **processing, parameters={
            **common, 'frame_id': MARKERS_FRAME, 'sensor_reliability': reliability}),
    ]
    optional = [(a.simulate, _plant), (bool(a.record), _recorder), (a.rviz, _rviz)]
    return Graph((*processes, *(make(a, common, readers) for wanted, make in optional if wanted)))


def check_machine(arguments: MachineArguments) -> None:
    """Raise what its nodes would: DescriptionError for the machine, SettingError for the cycle."""
    a = arguments
    if a.machine in known_mechanisms():
        raise SettingError('machine', a.machine, 'a machine, with cylinders; a mechanism without them goes up by '
                           f'`mbse up linkage mechanism:={a.machine}`')
    machine = load_machine(a.machine, None if a.valve == 'described' else a.valve)
    if machine.description.payload is None:
        raise DescriptionError(machine.description.file, 'payload', None, 'this section, to weigh a load')
    if a.simulate:
        plant_machine(machine)
        if a.cycle != 'topic':
            cycle_by_name(a.cycle, machine, a.seed)


def _plant(a: MachineArguments, common: dict, readers: int) -> Process:
    final = a.cycles > 0 and a.cycle != 'topic'
    return Process('plant_node', 'plant_node', a.namespace, final=final, parameters={
        **{**common, 'use_sim_time': False}, 'payload': a.payload, 'seed': a.seed, 'cycle': a.cycle,
        'cycles': a.cycles, 'wait_subscribers': readers + 1, 'publish_clock': a.use_sim_time, 'exit_at_end': final})


def _recorder(a: MachineArguments, common: dict, readers: int) -> Process:
    return Process('recorder_node', 'recorder_node', a.namespace, parameters={
        'use_sim_time': False, 'machine': a.machine, 'bag': a.record,
        'sensor_reliability': 'reliable' if a.simulate else 'best_effort'})


def _rviz(a: MachineArguments, common: dict, readers: int) -> Process:
    config = share_directory() / 'rviz' / 'machine.rviz'
    topic = f'/{a.namespace.strip("/")}/markers'
    return Process('rviz2', 'rviz2', parameters={'use_sim_time': a.use_sim_time}, package='rviz2',
                   arguments=('-d', str(config)), remappings={'/markers': topic} if a.namespace else {})


def _from_word(name: str, word: str, kind: type) -> Any:
    """Value of a word in a type."""
    if kind is bool:
        if word.lower() not in ('true', 'false'):
            raise SettingError(name, word, 'true or false')
        return word.lower() == 'true'
    try:
        return kind(word)
    except ValueError:
        raise SettingError(name, word, f'a {kind.__name__}') from None
