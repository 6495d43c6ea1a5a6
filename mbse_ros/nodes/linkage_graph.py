# SPDX-License-Identifier: Apache-2.0
"""The linkage's graph, described once: topics, processes, parameters. The launch file and `mbse up linkage` read it.

No ROS is needed to read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..bags.topics import JOINT_STATE
from ..dynamics.model import load_model
from ..estimators.filters.filters import FILTERS
from ..mechanism.sensors import sensor_model
from ..resources import share_directory
from ..settings import Settings, setting
from ..streams.linkage.lagged import FILTER
from ..streams.linkage.sources import Sources
from .graph import DIAGNOSTICS, Graph, Process

LINKAGE_TOPICS = {
    'linkage_state': 'mbse_ros/msg/LinkageState',
    'estimated/joint_states': JOINT_STATE,
    'truth/joint_states': JOINT_STATE,
    'markers': 'visualization_msgs/msg/MarkerArray',
    **DIAGNOSTICS,
}
SMOOTHED = {'smoothed_state': 'mbse_ros/msg/LinkageState'}
LINKAGE_FRAME = 'mechanism'


@dataclass(frozen=True)
class LinkageArguments(Settings):
    """Arguments of the launch file and of `mbse up linkage`."""

    mechanism: str = setting('five_bar', 'Mechanism: name of a file in config/mechanisms, n_four_bar:N, or a path')
    sensors: str = setting('encoder_1 encoder_2', "Sensors of the mechanism's file that are there, separated by "
                                                  'blanks. Empty: all')
    estimator: str = setting('errorEKF_FE', 'Filter, by the name of paper 001', choices=tuple(FILTERS))
    noises: str = setting('', "The filter's process noises, as name=value separated by blanks")
    options: str = setting('', "The filter's options, as name=word separated by blanks")
    prepared: str = setting('', 'Filters to compile at the start, for an immediate change to them')
    free: str = setting('', 'Numbers of the mechanism that a filter may estimate, by their keys in its file')
    rate: float = setting(200.0, 'Rate of the sensors and of the filter', 'Hz', 1.0, 1000.0)
    smoother: bool = setting(False, 'Start the smoother beside the filter')
    lag: float = setting(0.2, "Lag of the smoother's estimates", 's', 1e-3, 60.0)
    simulate: bool = setting(True, 'Start the simulated mechanism; false: the sensors come from elsewhere')
    seed: int = setting(1, 'Seed of the simulated sensors', '', 0, 2 ** 31 - 1)
    duration: float = setting(0.0, 'Length of the simulated motion until the graph ends; 0: goes on', 's', 0.0, 1e6)
    namespace: str = setting('', 'Namespace of all nodes and topics')
    use_sim_time: bool = setting(False, 'Time comes from /clock; with simulate the simulated mechanism publishes it')
    rviz: bool = setting(False, 'Start RViz')
    autostart: bool = setting(True, 'The nodes configure and activate themselves')
    record: str = setting('', 'Folder of a bag to write; empty: none')


def linkage_topics(mechanism: str, sensors: Sequence[str] = ()) -> dict[str, str]:
    """All topics of a mechanism's graph, relative to its namespace, and their types."""
    model = load_model(mechanism)
    channels = [name for name in sensor_model(model.system).channels
                if not sensors or name.partition('.')[0] in sensors]
    return {**Sources(model.description, channels, model.inputs).topics, **LINKAGE_TOPICS}


def linkage_graph(arguments: LinkageArguments) -> Graph:
    """Processes of the linkage's graph; raises DescriptionError for a mechanism that cannot be used."""
    a = arguments
    topics = linkage_topics(a.mechanism, a.sensors.split())       # tell now, not in every process
    readers = int(bool(a.record))
    common = {'use_sim_time': a.use_sim_time, 'autostart': a.autostart, 'mechanism': a.mechanism, 'sensors': a.sensors}
    processes = [Process('linkage_node', 'linkage_node', a.namespace, respawn=True, parameters={
        **common, 'estimator': a.estimator, 'noises': a.noises, 'options': a.options,
        'prepared': a.prepared, 'free': a.free, 'step': 1.0 / a.rate,
        'frame_id': LINKAGE_FRAME, 'sensor_reliability': 'reliable' if a.simulate else 'best_effort',
        'wait_subscribers': readers})]
    if a.smoother:
        topics |= SMOOTHED
        processes.append(Process('smoother_node', 'smoother_node', a.namespace, respawn=True, parameters={
            **common, 'step': 1.0 / a.rate, 'lag': a.lag, 'wait_subscribers': readers,
            'noises': a.noises if a.estimator == FILTER else '',
            'sensor_reliability': 'reliable' if a.simulate else 'best_effort'}))
    if a.simulate:
        name = 'linkage_plant_node'
        processes.append(Process(name, name, a.namespace, final=a.duration > 0, parameters={
            **common, 'use_sim_time': False, 'rate': a.rate, 'seed': a.seed, 'duration': a.duration,
            'exit_at_end': a.duration > 0, 'publish_clock': a.use_sim_time,
            'wait_subscribers': 1 + a.smoother + readers}))
    if a.record:
        processes.append(Process('recorder_node', 'recorder_node', a.namespace, parameters={
            'use_sim_time': False, 'bag': a.record, 'topics': ' '.join(f'{t}:{kind}' for t, kind in topics.items()),
            'sensor_reliability': 'reliable' if a.simulate else 'best_effort'}))
    if a.rviz:
        processes.append(Process(
            'rviz2', 'rviz2', parameters={'use_sim_time': a.use_sim_time}, package='rviz2',
            arguments=('-d', str(share_directory() / 'rviz' / 'linkage.rviz')),
            remappings={'/markers': f'/{a.namespace.strip("/")}/markers'} if a.namespace else {}))
    return Graph(tuple(processes))
