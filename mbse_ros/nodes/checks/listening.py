# SPDX-License-Identifier: Apache-2.0
"""Listens to the graph for some seconds, as one more reader of topics: of those of a machine, of those of a map of
sources as interpolation_node would, or of all. Nothing is published."""

from __future__ import annotations

import os
import time
from contextlib import closing
from functools import partial
from typing import Any

from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription
from rclpy.topic_endpoint_info import TopicEndpointInfo
from rosgraph_msgs.msg import Clock

from ...bags.channel_samples import Sample, topic_readers
from ...bags.topics import TopicMap
from ...doctor.mapped import Fed, MapTraffic
from ...doctor.traffic import Expected, Heard, Traffic
from ...errors import MbseError, SampleError
from ...machine import Machine
from ...sources.map import SourceMap
from ...sources.survey import Survey, TopicSurvey
from ..base.diagnostics import Strangers
from ..base.foreign_inputs import ForeignInputs
from ..base.middleware import LATEST, Participant, Waiting, deep_input, sensor_input
from ..messages.wire import class_fields, message_class, message_type, stamp_of, to_ns, unpacked

LOOK = 0.1          # s between two looks at the graph
HEADED = ('segment', 'state', 'payload', 'estimated/joint_states')      # of the outputs those that begin with a header
NOTHING = '(nothing)'
LINE = 100      # characters of a reason
OWN = ('/rosout', '/parameter_events')


class Looker(Participant):
    """A participant that looks at the graph each ``LOOK``."""

    _due = 0.0

    def step(self) -> None:
        """Listen for a moment, and look at the graph where it is time."""
        if time.monotonic() >= self._due:
            self._look()
            self._due = time.monotonic() + LOOK
        super().step()

    def _look(self) -> None:
        """Subscribe to what is new."""
        raise NotImplementedError


class Listener(Looker):
    """Listens for ``machine`` in a namespace (None: the one that the graph shows); `result` is what came."""

    def __init__(self, machine: Machine, expected: Expected, namespace: str | None) -> None:
        for kind in {*expected.sensors.values(), *expected.produced.values()}:
            message_class(kind)     # takes its time, in which the messages of the first topics would wait
        super().__init__(f'mbse_doctor_{os.getpid()}')
        self._expected, self._topics = expected, TopicMap(namespace=namespace)
        self._readers = topic_readers(machine.channels, machine.commands, TopicMap(), self._refuse)
        self._own = {*machine.model.names, *machine.valves}
        self._heard: dict[str, Heard] = {}      # by full names
        self._clock_ns: int | None = None       # newest /clock, None: the wall clock counts
        self._traffic = Traffic(0.0)
        names = {name.partition('/')[2] for name in machine.channels if name.startswith(('position/', 'velocity/'))}
        self._strangers = Strangers([*names, *machine.valves], self._traffic.slips.append,
                                    self._traffic.passed.append)
        self._inputs: set[str] = set()

    def result(self, seconds: float) -> Traffic:
        """What came so far, within so many seconds; raises BagError where several machines are in the graph and no
        namespace was given."""
        self._look()
        self._traffic.seconds = seconds
        space = self._space()
        known = {**self._expected.sensors, **self._expected.produced}
        relative = {name: name[len(space) + 1:] for name in self._heard if name.startswith(f'{space}/')}
        self._traffic.topics = {short: self._heard[name] for name, short in relative.items()
                                if short in known or short.startswith('sensors/')}
        return self._traffic

    def _space(self) -> str:
        kinds = {topic: kind for topic, heard in self._heard.items() if heard.publishers for kind in heard.kinds[:1]}
        return self._topics.find_namespace(kinds, 'the ROS graph')

    def _look(self) -> None:
        """Who publishes now, and a subscription to each topic of a machine that is new."""
        for topic, kinds in self.get_topic_names_and_types():
            heard = self._heard.setdefault(topic, Heard())
            heard.kinds = tuple(kinds)
            heard.publishers = tuple(sorted(map(_name, self.get_publishers_info_by_topic(topic))))
            if topic not in self._inputs and heard.publishers:
                self._subscribe(topic, kinds)

    def _subscribe(self, topic: str, kinds: list[str]) -> None:
        if topic == '/clock' and 'rosgraph_msgs/msg/Clock' in kinds:
            self.create_subscription(Clock, topic, self._tick, LATEST)
        else:
            short, kind = self._known(topic)
            if kind not in kinds:
                return
            self.create_subscription(message_class(kind), topic, partial(self._on_message, topic, short),
                                           sensor_input('best_effort'), raw=True)
        self._inputs.add(topic)

    def _known(self, topic: str) -> tuple[str, str]:
        """The name of a topic inside a machine's namespace, and its type; of another one nothing."""
        known = {**self._expected.sensors, **{name: kind for name, kind in self._expected.produced.items()
                                              if name in HEADED}}
        given = self._topics.namespace
        for short, kind in known.items():
            if topic == self._topics.absolute(short, given or '') or given is None and topic.endswith(f'/{short}'):
                return short, kind
        return NOTHING, NOTHING

    def _tick(self, message: Any) -> None:
        self._clock_ns = to_ns(message.clock)

    def _on_message(self, topic: str, short: str, cdr: bytes) -> None:
        """One message: when it came, how old it was; of a sensor, its samples."""
        heard = self._heard[topic]
        heard.arrivals.append(time.monotonic())
        now_ns = time.time_ns() if self._clock_ns is None else self._clock_ns
        try:
            heard.ages.append((now_ns - stamp_of(cdr)) * 1e-9)
            if short in self._readers:
                reader = self._readers[short]
                self._traffic.channels.update(sample.channel for sample in
                                              reader.samples(short, unpacked(short, reader.msgtype, cdr)))
        except SampleError as error:
            self._traffic.refused.setdefault(short, str(error))

    def _refuse(self, error: SampleError) -> None:
        """A name that no sensor has, or a message that cannot be used."""
        topic, blank, name = error.channel.partition(' ')
        if not blank:
            self._traffic.refused.setdefault(topic, str(error))
        elif name not in self._own:
            self._strangers(topic, name)


def _name(info: TopicEndpointInfo) -> str:
    """Full name of the node of a publisher, which comes a moment after the publisher itself, or never."""
    known = 'UNKNOWN' not in info.node_name
    return f'{info.node_namespace.rstrip("/")}/{info.node_name}' if known else 'a node without a name'


def listen(machine: Machine, expected: Expected, namespace: str | None, seconds: float) -> Traffic:
    """What came of a machine's graph within some seconds, in the present domain; raises BagError, see Listener."""
    with closing(Listener(machine, expected, namespace)) as listener:
        listener.listen(seconds)
        return listener.result(seconds)


class Surveyor(Looker):
    """One more reader of every topic."""

    def __init__(self) -> None:
        super().__init__(f'mbse_topics_{os.getpid()}')
        self.survey, self._known = Survey(class_fields), set[str]()

    def _look(self) -> None:
        for topic, _ in self.get_topic_names_and_types():
            kinds = sorted({info.topic_type for info in self.get_publishers_info_by_topic(topic)})
            if topic in self._known or not kinds or topic in OWN:
                continue
            self._known.add(topic)
            survey = self.survey.topics.setdefault
            try:
                kind = message_type(kinds[0])
            except MbseError as error:
                survey(topic, TopicSurvey(kinds[0], fault=str(error)))
                continue
            self.create_subscription(kind, topic, partial(self._take, topic, kinds[0]),
                                           sensor_input('best_effort'))

    def _take(self, topic: str, msgtype: str, message: Any) -> None:
        self.survey.add(topic, msgtype, self.get_clock().now().nanoseconds, message)


def survey_graph(seconds: float) -> Survey:
    """What comes within some seconds, in the present domain."""
    with closing(Surveyor()) as surveyor:
        surveyor.listen(seconds)
        return surveyor.survey


class MapListener(Participant):
    """One more reader of the topics of a map; `result` is what came."""

    def __init__(self, sources: SourceMap, namespace: str | None) -> None:
        super().__init__(f'mbse_doctor_map_{os.getpid()}', namespace or '')
        self._fed = {channel: Fed() for channel in sources.channels}
        self._reasons: dict[str, str] = {}
        self._waiting: Waiting[Sample] = Waiting()
        self._inputs = ForeignInputs(self, sources, self._waiting, deep_input('best_effort'), self._take, log=False)

    def step(self) -> None:
        """Listen for a moment."""
        self._inputs.look()
        super().step()

    def result(self, seconds: float) -> MapTraffic:
        """What came so far, within so many seconds."""
        for topic, channels in self._inputs.served().items():
            publishers = tuple(sorted(f'{info.node_namespace.rstrip("/")}/{info.node_name}'
                                      for info in self.get_publishers_info_by_topic(topic)))
            for channel in channels:
                self._fed[channel].topic, self._fed[channel].publishers = topic, publishers
        for key, count in self._inputs.left_out.items():
            channel = key.partition(': ')[0]
            self._fed[channel].left_out[self._reasons.get(key, key)] = count
        published = [name for name, _ in self.get_topic_names_and_types()
                     if self.count_publishers(name) and name not in OWN]
        return MapTraffic(seconds, self._fed, [self._inputs.fault] if self._inputs.fault else [], sorted(published))

    def input(self, kind: type, topic: str, callback: Any, qos: QoSProfile) -> Subscription:
        """What ForeignInputs asks of a node."""
        return self.create_subscription(kind, topic, callback, qos)

    def warnings(self, kind: str, text: str) -> None:
        """The first line of a kind."""
        self._reasons.setdefault(kind, text.partition(': ')[2][:LINE])

    def _take(self, topic: str, message: Any) -> None:
        for sample in self._waiting.items(topic, message):
            fed = self._fed[sample.channel]
            fed.stamps.append(sample.stamp_ns)
            fed.ages.append((time.time_ns() - sample.stamp_ns) * 1e-9)
            fed.value = sample.value


def listen_to_map(sources: SourceMap, namespace: str | None, seconds: float) -> MapTraffic:
    """What came on the topics of a map within some seconds, in the present domain."""
    with closing(MapListener(sources, namespace)) as listener:
        listener.listen(seconds)
        return listener.result(seconds)
