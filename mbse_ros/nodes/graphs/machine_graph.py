# SPDX-License-Identifier: Apache-2.0
"""The graph of a machine, described once: topics, processes, parameters. The launch files and `mbse up` read it.

No ROS is needed to read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from ...bags.channel_samples import topic_readers
from ...bags.topics import JOINT_STATE, PAYLOAD, SEGMENT, STATE, TRUTH, TopicMap
from ...description.load import known_mechanisms
from ...errors import SettingError
from ...machine import Machine, load_machine
from ...machine.equations import check_weighs
from ...settings import Settings, setting
from ...simulation.crane import cycle_by_name, plant_machine
from ...sources.machine import for_machine
from ...sources.map import NO_MAP, load_sources
from ..base.node_settings import CYCLE_CHOICES, RELIABILITY, VALVES
from ..messages.bounding_box import Box, machine_box
from .rviz_file import rviz_file

DIAGNOSTICS = {'/diagnostics': 'diagnostic_msgs/msg/DiagnosticArray'}
STRING = 'std_msgs/msg/String'
TOPICS = {
    'segment': SEGMENT,
    'state': STATE,
    'estimated/joint_states': JOINT_STATE,
    'payload': PAYLOAD,
    'truth': TRUTH,
    'markers': 'visualization_msgs/msg/MarkerArray',
    **DIAGNOSTICS,
}
OUTPUTS = {         # of outputs_node, where it runs
    'payload/mass': 'std_msgs/msg/Float64',
    'payload/wrench': 'geometry_msgs/msg/WrenchStamped',
    'payload/pose': 'geometry_msgs/msg/PoseWithCovarianceStamped',
    'feed_forward': JOINT_STATE,
    'feed_forward/stddev': JOINT_STATE,
    'stability/margin': 'std_msgs/msg/Float64',
    'stability/zero_moment_point': 'geometry_msgs/msg/PointStamped',
    '/tf': 'tf2_msgs/msg/TFMessage',
}
SCALE = {           # of scale_node, where it runs
    'scale/record': STRING,
    'scale/live': STRING,
    'scale/totals': STRING,
    'scale/mass': 'std_msgs/msg/Float64',
}
MARKERS_FRAME = 'machine'
COMPOSED = 'machine_nodes'      # executable that has several nodes
OURS, AUTO = 'mbse_ros', 'auto'
SIMULATED_WAIT = 60.0       # s
# Of a simulation nothing is missing, it only comes late on a busy computer.
PATIENT = {'lost_after': 5.0, 'command_wait': 5.0}      # s
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
class Process:
    """One process: executable of a package, its node, parameters, remappings, plain arguments.

    ``respawn``: started again when it dies, with the parameters ``again`` in addition; ``final``: when it ends by
    itself the graph ends. ``parts``: of a process of several nodes, the parameters of each. ``files``: of parameters,
    which count more than ``parameters``.
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
    again: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    files: tuple[str, ...] = ()

    def own_parameters(self) -> dict[str, Any]:
        """Parameters of its ``parts``, as ``node:parameter``."""
        return {f'{node}:{name}': value for node, values in self.parts.items() for name, value in values.items()}

    def once_more(self) -> Process:
        """The process as it is started again."""
        return replace(self, parameters={**self.parameters, **self.again})


@dataclass(frozen=True)
class Graph:
    """Processes that belong together."""

    processes: tuple[Process, ...]


@dataclass(frozen=True)
class GraphArguments(Settings):
    """Arguments that every graph has, and the processes that every graph may have."""

    simulate: bool = setting(True, 'Start the simulation; false: the sensors come from elsewhere')
    seed: int = setting(1, 'Seed of the simulation', '', 0, 2 ** 31 - 1)
    duration: float = setting(0.0, 'Length of the simulated motion until the graph ends; 0: that of its work cycles, '
                                   'of a mechanism without end', 's', 0.0, 1e6)
    namespace: str = setting('', 'Namespace of all nodes and topics')
    use_sim_time: bool = setting(False, 'Time comes from /clock; with simulate the simulation publishes it')
    rviz: bool = setting(False, 'Start RViz')
    autostart: bool = setting(True, 'The nodes configure and activate themselves')
    record: str = setting('', 'Folder of a bag to write; empty: none')
    sensor_reliability: str = setting(AUTO, 'How sensors are read: best_effort matches every publisher, reliable only '
                                            'reliable ones; auto: reliable with simulate, else best_effort',
                                      choices=(AUTO, *RELIABILITY))
    frame: str = setting('', "Frame of the markers, and root of a machine's bodies, such as base_link; empty: machine, "
                             'of a mechanism: mechanism')
    params_file: str = setting('', 'Files of parameters for the nodes (YAML, as ros2 run takes them), separated by '
                                   'blanks; they count more than these arguments')
    thread_priority: int = setting(0, 'Real-time priority (SCHED_FIFO) of the nodes that estimate; 0: none', '', 0, 98)
    cpu_affinity: str = setting('', 'Processors that the nodes that estimate may use, as 1 or 0,2-3; empty: all')
    lock_memory: bool = setting(False, 'Keep the memory of the nodes that estimate from being swapped out')
    latency_budget: float = setting(0.0, 'Age of the estimates beyond which the diagnostics warn; 0: none', 's', 0.0,
                                    10.0)
    remap: str = setting('', 'Other names of topics, as from:=to separated by blanks, for all nodes of the graph: '
                             'remap:="sensors/position:=joint_states"')

    @property
    def reliability(self) -> str:
        """How the sensors are read."""
        if self.sensor_reliability != AUTO:
            return self.sensor_reliability
        return 'reliable' if self.simulate else 'best_effort'

    def complete(self, processes: Iterable[Process]) -> Graph:
        """The graph of processes, the nodes of this package with the files and remappings; raises SettingError for a
        file that is not there, and for what is no remapping."""
        files, pairs = tuple(self.params_file.split()), [word.partition(':=') for word in self.remap.split()]
        for file in files:
            if not Path(file).is_file():
                raise SettingError('params_file', file, 'a file')
        for source, _, target in pairs:
            if not source or not target:
                raise SettingError('remap', self.remap, 'from:=to, separated by blanks')
        remaps = {source: target for source, _, target in pairs}
        return Graph(tuple(replace(process, files=files, remappings={**process.remappings, **remaps})
                           if process.package == OURS else process for process in processes))

    @property
    def waiting(self) -> dict[str, float]:
        """How long the nodes wait for each other: a simulation loses nothing at the start, on a busy computer too."""
        return {'wait_time': SIMULATED_WAIT} if self.simulate else {}

    @property
    def real_time(self) -> dict[str, int | str | bool]:
        """Parameters of a process that estimates."""
        asked: dict[str, int | str | bool] = {
            'thread_priority': self.thread_priority, 'cpu_affinity': self.cpu_affinity, 'lock_memory': self.lock_memory}
        return {name: value for name, value in asked.items() if value}

    @property
    def estimating(self) -> dict[str, int | str | bool | float]:
        """The same with what is asked of its results."""
        return {**self.real_time, **({'latency_budget': self.latency_budget} if self.latency_budget else {})}

    def node(self, name: str, **parameters: Any) -> Process:
        """A node that is started again when it dies."""
        return Process(name, name, self.namespace, respawn=True, parameters={
            'use_sim_time': self.use_sim_time, 'autostart': self.autostart, **self.waiting, **parameters})

    def plant(self, name: str, final: bool, **parameters: Any) -> Process:
        """The simulation; ``final``: the graph ends with it, else it begins again where it dies."""
        return Process(name, name, self.namespace, final=final, respawn=not final, parameters={
            'use_sim_time': False, 'autostart': self.autostart, 'seed': self.seed, 'publish_clock': self.use_sim_time,
            'exit_at_end': final, 'duration': self.duration, **self.waiting, **parameters})

    def watchers(self, config: str, name: str, box: Callable[[], Box], frame: str = '', **recorded: str
                 ) -> tuple[Process, ...]:
        """Recorder, with the parameters that say what is ``recorded``, and RViz, where they are asked for: its
        configuration for the model ``name`` that lies in a box; ``frame``: its fixed frame, where it is not that of the
        configuration."""
        found = []
        if self.record:
            found.append(Process('recorder_node', 'recorder_node', self.namespace, respawn=True, parameters={
                'use_sim_time': False, 'bag': self.record, 'sensor_reliability': self.reliability, **recorded},
                                 again={'beside': True}))
        if self.rviz:
            topic = f'/{self.namespace.strip("/")}/markers'
            found.append(Process('rviz2', 'rviz2', parameters={'use_sim_time': self.use_sim_time}, package='rviz2',
                                 arguments=('-d', str(rviz_file(config, name, box())),
                                            *(('-f', frame) if frame else ())),
                                 remappings={'/markers': topic} if self.namespace else {}))
        return tuple(found)


@dataclass(frozen=True)
class MachineArguments(GraphArguments):
    """Arguments of the launch files and of `mbse up machine` and `mbse up crane`."""

    machine: str = setting('patu655_lift', 'Machine: name of a file in config/machines, or a path')
    valve: str = setting('described', "Model of all valves: the one of the machine's file, or another", choices=VALVES)
    sources: str = setting('', 'Which topics and fields the channels are, as the parameter of interpolation_node; with '
                               "simulate, empty is none: the simulation's topics")
    payload: float = setting(50.0, 'True payload of the simulated machine', 'kg', 0.0, 1e6)
    cycle: str = setting('lift_hold_lower', 'What moves the simulated machine: a work cycle (lift_hold_lower and boom: '
                         'the first valve; random: all; dig: an excavator), or the topic valve_command',
                         choices=CYCLE_CHOICES)
    visualization: bool = setting(True, 'Start visualization_node: the markers for RViz')
    composed: bool = setting(True, 'Interpolation, observer and payload in one process; false: one process each')
    outputs: bool = setting(False, 'Start outputs_node: TF, and the pose, mass and weight of the load as standard '
                                   'messages; in a namespace all frames begin with it')
    scale: bool = setting(False, 'Start scale_node: loads counted and recorded, target, load chart')
    scale_records: str = setting('', 'SQLite file of its records; empty: loads_<machine>.db here, with simulate in '
                                     'memory alone')
    scale_file: str = setting('', "File of its attachments and load chart; empty: the section `scale` of the machine's "
                                  'file')
    display: bool = setting(False, "Start display_node, the operator's page in a browser, and scale_node, which "
                                   'it shows')
    display_host: str = setting('127.0.0.1', 'Address that the page is served on; any but that of this computer needs '
                                             'display_token_file')
    display_port: int = setting(8642, 'Port that the page is served on', '', 0, 65535)
    display_token_file: str = setting('', 'File with the token that a page must know; empty: none')
    cycles: int = setting(0, 'Work cycles (of 24 s; dig 22 s) until the graph ends; 0: for a day', '', 0, 3600)


def parse_arguments(given: Mapping[str, Any], kind: type[A] = MachineArguments) -> A:     # type: ignore[assignment]
    """Arguments from words or values; raises SettingError for an unknown name, a wrong type or value."""
    known = {item.name: item for item in fields(kind)}
    values = {}
    for name, value in given.items():
        if name not in known:
            near = nearest(name, known)
            raise SettingError(name, value, f'one of the arguments {", ".join(known)}'
                               + (f'; did you mean {near}?' if near else ''))
        values[name] = _from_word(name, value, type(known[name].default)) if isinstance(value, str) else value
    return kind(**values)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name for which another is a slip of the pen."""
    return next(iter(get_close_matches(name, list(known), 1, 0.75)), None)


def refuse_misspelt(words: Iterable[str], kind: type[Settings]) -> None:
    """Raise SettingError for a word ``name:=value`` of a command line whose name is nearly that of an argument."""
    known = [item.name for item in fields(kind)]
    for word in words:
        name, sign, value = word.partition(':=')
        near = nearest(name, known) if sign and name not in known else None
        if near:
            raise SettingError(name, value, f'an argument of the launch file; did you mean {near}?')


def word(value: Any) -> str:
    """An argument's value as it is typed."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def describe(item: Field[Any]) -> str:
    """What an argument means, with its unit and the words it may be."""
    meta = item.metadata
    unit = f' [{meta["unit"]}]' if meta['unit'] else ''
    return meta['text'] + unit + (f' ({", ".join(meta["choices"])})' if meta['choices'] else '')


def machine_graph(arguments: MachineArguments) -> Graph:
    """Processes of a machine's graph; raises DescriptionError for a machine that cannot be used so, SettingError for a
    cycle that is not its own."""
    a = arguments
    model = check_machine(a)        # fail now, not in five processes
    scale = a.scale or a.display
    readers = a.visualization + bool(a.record) + a.outputs + scale
    prefix = f'{a.namespace.strip("/")}/' if a.outputs and a.namespace.strip('/') else ''     # all machines share /tf
    root = a.frame or MARKERS_FRAME
    frame = prefix + root
    sources = a.sources or (NO_MAP if a.simulate else '')
    machine, final = {'machine': a.machine, 'valve': a.valve}, a.duration > 0 or a.cycles > 0 and a.cycle != 'topic'
    outputs = [a.node('outputs_node', **machine, frame_id=root, frame_prefix=prefix)] if a.outputs else []
    scales = [a.node('scale_node', **machine, records=a.scale_records or ('none' if a.simulate else ''),
                     scale_file=a.scale_file, wait_subscribers=int(bool(a.record)))] if scale else []
    displays = [a.node('display_node', **machine, scale_file=a.scale_file, host=a.display_host, port=a.display_port,
                       token_file=a.display_token_file)] if a.display else []
    plants = [a.plant('plant_node', final, **machine, payload=a.payload, cycle=a.cycle, cycles=a.cycles,
                      wait_subscribers=1 + bool(a.record))] if a.simulate else []
    also = {'also': ' '.join(f'{topic}:{kind}' for topic, kind in SCALE.items())} if scale else {}
    linked = int(a.composed)        # reads no topic
    nodes: tuple[Process, ...] = (
        a.node('interpolation_node', **machine, sources=sources, wait_subscribers=1 + bool(a.record) - linked,
               sensor_reliability=a.reliability, **a.real_time, **(PATIENT if a.simulate else {})),
        a.node('observer_node', **machine, wait_subscribers=readers + 1 - linked, **a.estimating),
        a.node('payload_node', **machine, wait_subscribers=readers, **a.estimating))
    if a.composed:
        nodes = (Process(COMPOSED, COMPOSED, a.namespace, respawn=True,
                         parts={node.name: node.parameters for node in nodes}),)
    drawings = [a.node('visualization_node', **machine, frame_id=frame)] if a.visualization else []
    return a.complete((*nodes, *drawings, *outputs, *scales, *displays, *plants,
                       *a.watchers('machine.rviz', a.machine, lambda: machine_box(model),
                                   frame if frame != MARKERS_FRAME else '', machine=a.machine, sources=sources,
                                   **also)))


def check_machine(arguments: MachineArguments) -> Machine:
    """The machine; raises what its nodes would: DescriptionError for the machine, SettingError for the cycle."""
    a = arguments
    if a.machine in known_mechanisms():
        raise SettingError('machine', a.machine, 'a machine, with cylinders; start a mechanism without them by '
                           f'`mbse up linkage mechanism:={a.machine}`')
    machine = load_machine(a.machine, None if a.valve == 'described' else a.valve)
    if a.scale or a.display:
        check_weighs(machine)
    if a.sources:
        foreign = for_machine(load_sources(a.sources), machine).channels
        if a.simulate and foreign:
            raise SettingError('sources', a.sources, f'{NO_MAP} with simulate:=true: the simulation publishes '
                               f"{', '.join(foreign)} on this package's own topics. For sensors of a machine say "
                               'simulate:=false; where a node of yours makes the topics of the map out of the '
                               "simulation's, start plant_node beside it")
    if a.simulate:
        plant_machine(machine)
        if a.cycle != 'topic':
            cycle_by_name(a.cycle, machine, a.seed)
    return machine


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
