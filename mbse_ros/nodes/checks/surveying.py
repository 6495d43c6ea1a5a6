# SPDX-License-Identifier: Apache-2.0
"""Listens to all topics of the graph for some seconds, or to those of a map of sources as interpolation_node would.

Nothing is published.
"""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from rclpy.subscription import Subscription

from ...bags.channel_samples import Sample
from ...doctor.mapped import Fed, MapTraffic
from ...errors import MbseError
from ...sources.map import SourceMap
from ...sources.proposals.survey import Survey, TopicSurvey
from ..base.qos import deep_input, sensor_input
from ..base.run import _Executor
from ..inputs.foreign_inputs import ForeignInputs
from ..inputs.waiting import Waiting
from ..messages.wire import class_fields, message_type
from .listening import LINE

LOOK = 0.2      # s between two looks at the graph
TURN = 0.02     # s
OWN = ('/rosout', '/parameter_events')


class Surveyor:
    """One more reader of every topic; ``context``: of rclpy, initialised."""

    def __init__(self, context: Context) -> None:
        self.survey = Survey(class_fields)
        self._node = Node(f'mbse_topics_{os.getpid()}', context=context, enable_rosout=False,
                          start_parameter_services=False, use_global_arguments=False)
        self._executor = _Executor(context=context)
        self._executor.add_node(self._node)
        self._known: set[str] = set()
        self._due = 0.0

    def step(self) -> None:
        """Listen for a moment, and look at the graph where it is time."""
        if time.monotonic() >= self._due:
            self._look()
            self._due = time.monotonic() + LOOK
        self._executor.spin_once(timeout_sec=TURN)

    def close(self) -> None:
        """Leave the graph."""
        self._executor.remove_node(self._node)
        self._executor.shutdown()
        self._node.destroy_node()

    def _look(self) -> None:
        for topic, _ in self._node.get_topic_names_and_types():
            kinds = sorted({info.topic_type for info in self._node.get_publishers_info_by_topic(topic)})
            if topic in self._known or not kinds or topic in OWN:
                continue
            self._known.add(topic)
            survey = self.survey.topics.setdefault
            try:
                kind = message_type(kinds[0])
            except MbseError as error:
                survey(topic, TopicSurvey(kinds[0], fault=str(error)))
                continue
            self._node.create_subscription(kind, topic, partial(self._take, topic, kinds[0]),
                                           sensor_input('best_effort'))

    def _take(self, topic: str, msgtype: str, message: Any) -> None:
        self.survey.add(topic, msgtype, self._node.get_clock().now().nanoseconds, message)


def survey_graph(seconds: float) -> Survey:
    """What comes within some seconds, in the present domain."""
    context = Context()
    rclpy.init(context=context, signal_handler_options=SignalHandlerOptions.NO)
    try:
        surveyor = Surveyor(context)
        try:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                surveyor.step()
        finally:
            surveyor.close()
        return surveyor.survey
    finally:
        context.try_shutdown()


class MapListener(Node):     # type: ignore[misc]
    """One more reader of the topics of a map; ``context``: of rclpy, initialised. `run` gives what came."""

    def __init__(self, sources: SourceMap, namespace: str | None, context: Context) -> None:
        super().__init__(f'mbse_doctor_map_{os.getpid()}', context=context, namespace=namespace or '',
                         enable_rosout=False, start_parameter_services=False, use_global_arguments=False)
        self._executor = _Executor(context=context)
        self._executor.add_node(self)
        self._fed = {channel: Fed() for channel in sources.channels}
        self._reasons: dict[str, str] = {}
        self._waiting: Waiting[Sample] = Waiting()
        self._inputs = ForeignInputs(self, sources, self._waiting, deep_input('best_effort'), self._take, log=False)

    def step(self) -> None:
        """Listen for a moment."""
        self._inputs.look()
        self._executor.spin_once(timeout_sec=TURN)

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

    def close(self) -> None:
        """Leave the graph."""
        self._executor.remove_node(self)
        self._executor.shutdown()
        self.destroy_node()

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
    context = Context()
    rclpy.init(context=context, signal_handler_options=SignalHandlerOptions.NO)
    try:
        listener = MapListener(sources, namespace, context)
        try:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                listener.step()
            return listener.result(seconds)
        finally:
            listener.close()
    finally:
        context.try_shutdown()
