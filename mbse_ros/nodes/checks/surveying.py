# SPDX-License-Identifier: Apache-2.0
"""Listens to all topics of the graph for some seconds; nothing is published."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from ...errors import MbseError
from ...sources.proposals.survey import Survey, TopicSurvey
from ..base.qos import sensor_input
from ..base.run import _Executor
from ..messages.wire import class_fields, message_type

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
