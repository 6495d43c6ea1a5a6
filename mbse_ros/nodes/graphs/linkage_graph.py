# SPDX-License-Identifier: Apache-2.0
"""The linkage's graph, described once: topics, processes, parameters. The launch file and `mbse up linkage` read it.

No ROS is needed to read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...bags.topics import JOINT_STATE, Sources, TopicMap
from ...description.model import MechanismDescription
from ...dynamics.model import Model, load_model
from ...errors import SettingError
from ...filters.linkage_settings import LinkageSettings
from ...mechanism.sensors import sensor_model
from ...settings import names_in, same_as, setting
from ...simulation.linkage import LinkagePlantSettings
from ...sources.machine import for_mechanism
from ...sources.map import NO_MAP, load_sources
from ...streams.lagged import FILTER
from ..base.node_settings import LinkageNodeSettings, MechanismSettings, SmootherNodeSettings, SourcesSettings
from ..messages.outline import Box, Outline, mechanism_box
from .graph import DIAGNOSTICS, SIMULATED, Graph, GraphArguments

LINKAGE_TOPICS = {
    'linkage_state': 'mbse_ros/msg/LinkageState',
    'estimated/joint_states': JOINT_STATE,
    'truth/joint_states': JOINT_STATE,
    'markers': 'visualization_msgs/msg/MarkerArray',
    **DIAGNOSTICS,
}
SMOOTHED = {'smoothed_state': 'mbse_ros/msg/LinkageState'}
LINKAGE_FRAME = 'mechanism'
ENCODERS = 'encoders'


@dataclass(frozen=True)
class LinkageArguments(GraphArguments):
    """Arguments of the launch file and of `mbse up linkage`."""

    mechanism: str = same_as(MechanismSettings, 'mechanism')
    sensors: str = setting(ENCODERS, "Sensors of the mechanism's file that are there, separated by blanks; encoders: "
                           'those of that kind, all where there is none. Empty: all')
    sources: str = same_as(SourcesSettings, 'sources', SIMULATED)
    estimator: str = same_as(LinkageSettings, 'estimator')
    noises: str = same_as(LinkageSettings, 'noises')
    options: str = same_as(LinkageSettings, 'options', text="The filter's options, as name=word, or name=word,word, "
                           "separated by blanks, e.g. 'transition=exact'")
    prepared: str = same_as(LinkageNodeSettings, 'prepared')
    free: str = same_as(LinkageNodeSettings, 'free')
    rate: float = same_as(LinkagePlantSettings, 'rate', ' and of the filter')
    motion: str = same_as(LinkagePlantSettings, 'motion')
    travel: float = same_as(LinkagePlantSettings, 'travel')
    smoother: bool = setting(False, 'Start the smoother in addition to the filter')
    lag: float = same_as(SmootherNodeSettings, 'lag')


def linkage_topics(mechanism: str, sensors: Sequence[str] = ()) -> dict[str, str]:
    """All topics of a mechanism's graph, relative to its namespace, and their types."""
    model = load_model(mechanism)
    return {**Sources(model.description, _channels(model, sensors), model.inputs).topics, **LINKAGE_TOPICS}


def _channels(model: Model, sensors: Sequence[str]) -> list[str]:
    return [name for name in sensor_model(model.system).channels
            if not sensors or name.partition('.')[0] in sensors]


def start_box(mechanism: str) -> Box:
    """What a mechanism may move in, by its start."""
    model = load_model(mechanism, backend='vm')
    swings = model.degrees_of_freedom >= len(model.description.bodies)
    return mechanism_box(Outline(model).at(model.start.q), swings)


def chosen_sensors(description: MechanismDescription, words: str) -> list[str]:
    """Names that the argument ``sensors`` stands for, none for all; raises SettingError for one that is not there."""
    known = description.sensors
    if not known:
        raise SettingError('mechanism', description.name, 'a mechanism with sensors')
    if words.strip() == ENCODERS and ENCODERS not in known:
        return [name for name, sensor in known.items() if sensor.kind == 'encoder']
    for name in names_in(words):
        if name not in known:
            raise SettingError('sensors', name, f'sensors of {description.name}: {", ".join(known)}')
    return names_in(words)


def mapped_topics(arguments: LinkageArguments, sensors: Sequence[str]) -> dict[str, str]:
    """Topics of the map to be recorded, and their types; raises DescriptionError for a map that does not fit the
    mechanism, SettingError for one of a simulated mechanism, or without a type of what is recorded."""
    a = arguments
    if not a.sources:
        return {}
    model = load_model(a.mechanism)
    found = for_mechanism(load_sources(a.sources), model, _channels(model, sensors))
    if a.simulate and found.channels:
        raise SettingError('sources', a.sources, f'{NO_MAP} with simulate:=true: the simulation publishes '
                           f"{', '.join(found.channels)} on this package's own topics")
    for source in found.sources if a.record else ():
        if not source.type:
            raise source.place.error('type', None, f'the type of {source.topic}, to be recorded')
    return {source.topic: source.type for source in found.sources} if a.record else {}


def linkage_graph(arguments: LinkageArguments) -> Graph:
    """Processes of the linkage's graph; raises DescriptionError for a mechanism that cannot be used, SettingError
    for sensors that it does not have."""
    a, model = arguments, load_model(arguments.mechanism)
    model.check_reducible()         # fail now, not in every process
    sensors = chosen_sensors(model.description, a.sensors)
    topics = linkage_topics(a.mechanism, sensors)
    readers = int(bool(a.record))
    words = ' '.join(sensors)
    if not a.simulate:
        topics[TopicMap().position] = JOINT_STATE       # where a machine of the same sensors has them
    topics |= mapped_topics(a, sensors)
    reading = {'sensors': words, 'step': 1.0 / a.rate, 'sensor_reliability': a.reliability,
               'wait_subscribers': readers, 'sources': a.sources or (NO_MAP if a.simulate else '')}
    processes = [a.node('linkage_node', **reading, estimator=a.estimator, noises=a.noises, options=a.options,
                        frame_id=a.frame or LINKAGE_FRAME, **a.estimating)]
    if a.smoother:
        topics |= SMOOTHED
        processes.append(a.node('smoother_node', **reading,
                                noises=a.noises if a.estimator == FILTER else ''))
    if a.simulate:
        processes.append(a.plant('linkage_plant_node', a.duration > 0, sensors=words,
                                 wait_subscribers=1 + a.smoother + readers))
    recorded = ' '.join(f'{topic}:{kind}' for topic, kind in topics.items())
    return a.complete((*processes, *a.watchers('linkage.rviz', a.mechanism, lambda: start_box(a.mechanism), a.frame,
                                               topics=recorded)))
