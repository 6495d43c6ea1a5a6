# SPDX-License-Identifier: Apache-2.0
"""The graph of a machine, described once: topics, processes, parameters. The launch files and `mbse up` read it.

No ROS is needed to read it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...bags.channel_samples import topic_readers
from ...bags.topics import JOINT_STATE, PAYLOAD, SEGMENT, STATE, TOOL_FORCE, TRUTH, TopicMap
from ...description.load import known_mechanisms
from ...errors import SettingError
from ...filters.observer_settings import ObserverSettings
from ...machine import Machine
from ...machine.equations import SEVERAL_APART, check_single, check_weighs
from ...payload.tool_force import has_contact
from ...settings import same_as, setting
from ...simulation.crane import cycle_by_name, plant_machine
from ...simulation.work import check_mass
from ...sources.machine import for_machine
from ...sources.map import NO_MAP, load_sources
from ...streams.tracking import TrajectoryTracking
from ..base.node_settings import (
    DisplayNodeSettings,
    EstimatorNodeSettings,
    ManagedSettings,
    ObserverNodeSettings,
    PlantSettings,
    ScaleNodeSettings,
    SourcesSettings,
)
from ..messages.outline import machine_box
from .graph import COMPOSED, DIAGNOSTICS, SIMULATED, Graph, GraphArguments, Process

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
    'tool_force': 'geometry_msgs/msg/WrenchStamped',
    'payload/pose': 'geometry_msgs/msg/PoseWithCovarianceStamped',
    'feed_forward': JOINT_STATE,
    'feed_forward/stddev': JOINT_STATE,
    'valve_feed_forward': JOINT_STATE,
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
MOVED = {'valve_command': JOINT_STATE}       # of trajectory_node, where it runs
AHEAD = {'state/predicted': STATE}          # of observer_node with a predict_rate
KEPT = ('scale/totals',)        # of which the last message is kept for those who come later
MARKERS_FRAME = 'machine'
# Of a simulation nothing is missing, it only comes late on a busy computer.
PATIENT = {'lost_after': 5.0, 'command_wait': 5.0}      # s


def sensor_topics(machine: Machine) -> dict[str, str]:
    """Topics of the sensors and commands of a machine, relative to its namespace, and their types."""
    topics = TopicMap()
    readers = topic_readers(machine.channels, (), topics, lambda error: None)
    return {**{topic: reader.msgtype for topic, reader in readers.items()}, topics.command: JOINT_STATE}


def machine_topics(machine: Machine) -> dict[str, str]:
    """All topics of a machine's graph, relative to its namespace, and their types."""
    each = {f'payloads/{name}': PAYLOAD for name in machine.description.payloads}
    touched = {'tool_force/estimate': TOOL_FORCE} if has_contact(machine) else {}
    return {**sensor_topics(machine), **TOPICS, **each, **touched}


@dataclass(frozen=True)
class MachineArguments(GraphArguments):
    """Arguments of the launch files and of `mbse up machine` and `mbse up crane`."""

    machine: str = same_as(ManagedSettings, 'machine')
    valve: str = same_as(ManagedSettings, 'valve')
    attachment: str = same_as(ManagedSettings, 'attachment')
    estimator: str = same_as(ObserverSettings, 'estimator')
    sources: str = same_as(SourcesSettings, 'sources', SIMULATED)
    payload: float = same_as(
        PlantSettings, 'payload', text='True payload of the simulated machine; if there are several, each')
    cycle: str = same_as(PlantSettings, 'cycle')
    visualization: bool = setting(True, 'Start visualization_node: the markers for RViz')
    composed: bool = setting(True, 'Interpolation, observer and payload in one process; false: one process each')
    compiled: bool = setting(False, 'Start estimator_node, compiled C, instead of these three, for sensors that send '
                                    'at the same instants')
    compiled_rate: float = same_as(EstimatorNodeSettings, 'rate')
    outputs: bool = setting(False, 'Start outputs_node; in a namespace all frames begin with it')
    trajectory: bool = setting(False, 'Start trajectory_node; the simulated machine needs cycle:=topic')
    predict_rate: float = same_as(ObserverNodeSettings, 'predict_rate')
    scale: bool = setting(False, 'Start scale_node: loads counted and recorded, target, load chart')
    scale_records: str = same_as(ScaleNodeSettings, 'records', '. With simulate, empty is none')
    scale_file: str = same_as(ManagedSettings, 'scale_file')
    display: bool = setting(False, 'Start display_node, the page in a browser, and scale_node')
    display_host: str = same_as(DisplayNodeSettings, 'host', text='As host of display_node, with display_token_file')
    display_port: int = same_as(DisplayNodeSettings, 'port')
    display_token_file: str = same_as(DisplayNodeSettings, 'token_file')
    cycles: int = same_as(PlantSettings, 'cycles', text='Work cycles (of 24 s; dig 22 s) until the graph ends; 0: for '
                          'a day', default=0)


def machine_graph(arguments: MachineArguments) -> Graph:
    """Processes of a machine's graph; raises DescriptionError for a machine that cannot be used so, SettingError for a
    cycle that is not its own or a payload beyond its limits."""
    a = arguments
    model = check_machine(a)        # fail now, not in five processes
    scale = a.scale or a.display
    readers = a.visualization + bool(a.record) + a.outputs + scale + a.trajectory
    prefix = f'{a.namespace.strip("/")}/' if a.outputs and a.namespace.strip('/') else ''     # all machines share /tf
    root = a.frame or MARKERS_FRAME
    frame = prefix + root
    sources = a.sources or (NO_MAP if a.simulate else '')
    final = a.duration > 0 or a.cycles > 0 and a.cycle != 'topic'
    outputs = [a.node('outputs_node', frame_id=root, frame_prefix=prefix)] if a.outputs else []
    followers = [a.node('trajectory_node')] if a.trajectory else []
    scales = [a.node('scale_node', records=a.scale_records or ('none' if a.simulate else ''),
                     wait_subscribers=int(bool(a.record)))] if scale else []
    displays = [a.node('display_node', host=a.display_host, port=a.display_port, token_file=a.display_token_file)
                ] if a.display else []
    plants = [a.plant('plant_node', final, wait_subscribers=1 + bool(a.record))] if a.simulate else []
    more = ((SCALE if scale else {}) | (OUTPUTS if a.outputs else {}) | (MOVED if a.trajectory else {})
            | (AHEAD if a.predict_rate else {}))
    also = {'also': ' '.join(f'{topic}:{kind}' for topic, kind in more.items())} if more else {}
    linked = int(a.composed)        # reads no topic
    nodes: tuple[Process, ...] = (
        a.node('interpolation_node', sources=sources, wait_subscribers=1 + bool(a.record) - linked,
               sensor_reliability=a.reliability, **a.real_time, **(PATIENT if a.simulate else {})),
        a.node('observer_node', estimator=a.estimator, wait_subscribers=readers + 1 - linked, **a.estimating),
        a.node('payload_node', wait_subscribers=readers, **a.estimating))
    if a.compiled:
        nodes = (a.node('estimator_node', sources=sources, estimator=a.estimator, rate=a.compiled_rate,
                        wait_subscribers=readers, sensor_reliability=a.reliability, **a.estimating),)
    elif a.composed:
        nodes = (Process(COMPOSED, COMPOSED, a.namespace, respawn=True,
                         parts={node.name: node.parameters for node in nodes}),)
    drawings = [a.node('visualization_node', frame_id=frame)] if a.visualization else []
    return a.complete((*nodes, *drawings, *outputs, *followers, *scales, *displays, *plants,
                       *a.watchers('machine.rviz', a.machine, lambda: machine_box(model),
                                   frame if frame != MARKERS_FRAME else '', machine=a.machine, sources=sources,
                                   **also)))


def check_machine(arguments: MachineArguments) -> Machine:
    """The machine; raises what its nodes would: DescriptionError for the machine, SettingError for the cycle."""
    a = arguments
    if a.machine in known_mechanisms():
        raise SettingError('machine', a.machine, 'a machine, with cylinders; start a mechanism without them by '
                           f'`mbse up linkage mechanism:={a.machine}`')
    machine = ManagedSettings(machine=a.machine, valve=a.valve, scale_file=a.scale_file, attachment=a.attachment).load()
    if a.scale or a.display:
        check_weighs(machine)
    if a.compiled:
        _check_compiled(a, machine)
    if a.outputs:
        check_single(machine)
    if a.trajectory:
        TrajectoryTracking(machine)
        if a.simulate and a.cycle != 'topic':
            raise SettingError('cycle', a.cycle, 'topic with trajectory:=true, so that the simulated valves take the '
                                                 'commands of trajectory_node')
    if machine.description.payloads and not (a.preset or a.params_file):
        raise SettingError('preset', a.preset, f'paper, or a params_file with observer_node weighing: apart: '
                                               f'{SEVERAL_APART}')
    if a.sources:
        foreign = for_machine(load_sources(a.sources), machine).channels
        if a.simulate and foreign:
            raise SettingError('sources', a.sources, f'{NO_MAP} with simulate:=true: the simulation publishes '
                               f"{', '.join(foreign)} on this package's own topics. For sensors of a machine say "
                               'simulate:=false; where a node of yours makes the topics of the map out of the '
                               "simulation's, start plant_node beside it")
    if a.simulate:
        if not machine.volumes:
            raise SettingError('simulate', a.simulate, f'false: {machine.name} has no cylinders, and is not simulated')
        plant_machine(machine)
        if a.payload != MachineArguments.payload:
            check_mass(machine, a.payload)
        if a.cycle != 'topic':
            cycle_by_name(a.cycle, machine, a.seed)
    return machine


def _check_compiled(arguments: MachineArguments, machine: Machine) -> None:
    """Raise SettingError for what estimator_node does not do."""
    # here, because they import the whole estimator
    from ...embedded.tables import EstimatorSetup
    from ...payload.mass import PayloadSettings
    from ..native.library import check_compiled
    if arguments.predict_rate:
        raise SettingError('predict_rate', arguments.predict_rate, '0.0 with compiled:=true: estimator_node has no '
                                                                   'state/predicted')
    check_compiled(EstimatorSetup(machine, ObserverSettings(estimator=arguments.estimator), PayloadSettings(),
                                  arguments.compiled_rate))
