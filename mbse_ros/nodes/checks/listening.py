# SPDX-License-Identifier: Apache-2.0
"""Listens to the graph of a machine for some seconds, as one more reader of its topics; nothing is published."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.topic_endpoint_info import TopicEndpointInfo
from rosgraph_msgs.msg import Clock

from ...bags.channel_samples import topic_readers
from ...bags.topics import TopicMap
from ...doctor.traffic import Expected, Heard, Traffic
from ...errors import SampleError
from ...machine import Machine
from ..base.diagnostics import Strangers
from ..base.qos import LATEST, sensor_input
from ..base.run import _Executor
from ..messages.wire import message_class, stamp_of, to_ns, unpacked

LOOK = 0.1          # s between two looks at the graph
TURN = 0.02         # s
HEADED = ('segment', 'state', 'payload', 'estimated/joint_states')      # of the outputs those that begin with a header
NOTHING = '(nothing)'
LINE = 100      # characters of a reason


class Listener:
    """Listens for ``machine`` in a namespace (None: the one that the graph shows); `run` gives what came.

    ``context``: of rclpy, initialised.
    """

    def __init__(self, machine: Machine, expected: Expected, namespace: str | None, context: Context) -> None:
        self._expected, self._topics = expected, TopicMap(namespace=namespace)
        self._node = Node(f'mbse_doctor_{os.getpid()}', context=context, enable_rosout=False,
                          start_parameter_services=False, use_global_arguments=False)
        self._executor = _Executor(context=context)
        self._executor.add_node(self._node)
        self._readers = topic_readers(machine.channels, machine.commands, TopicMap(), self._refuse)
        self._own = {*machine.model.names, *machine.valves}
        self._heard: dict[str, Heard] = {}      # by full names
        self._clock_ns: int | None = None       # newest /clock, None: the wall clock counts
        self._traffic = Traffic(0.0)
        names = {name.partition('/')[2] for name in machine.channels if name.startswith(('position/', 'velocity/'))}
        self._strangers = Strangers([*names, *machine.valves], self._traffic.slips.append,
                                    self._traffic.passed.append)
        self._inputs: set[str] = set()
        self._due = 0.0
        for kind in {*expected.sensors.values(), *expected.produced.values()}:
            message_class(kind)     # takes its time, in which the messages of the first topics would wait

    def run(self, seconds: float) -> Traffic:
        """Listen; raises BagError where several machines are in the graph and no namespace was given."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.step()
        return self.result(seconds)

    def step(self) -> None:
        """Listen for a moment, and look at the graph where it is time."""
        if time.monotonic() >= self._due:
            self._look()
            self._due = time.monotonic() + LOOK
        self._executor.spin_once(timeout_sec=TURN)

    def result(self, seconds: float) -> Traffic:
        """What came so far, within so many seconds; raises BagError as `run`."""
        self._look()
        self._traffic.seconds = seconds
        space = self._space()
        known = {**self._expected.sensors, **self._expected.produced}
        relative = {name: name[len(space) + 1:] for name in self._heard if name.startswith(f'{space}/')}
        self._traffic.topics = {short: self._heard[name] for name, short in relative.items()
                                if short in known or short.startswith('sensors/')}
        return self._traffic

    def close(self) -> None:
        """Leave the graph."""
        self._executor.remove_node(self._node)
        self._executor.shutdown()
        self._node.destroy_node()

    def _space(self) -> str:
        kinds = {topic: kind for topic, heard in self._heard.items() if heard.publishers for kind in heard.kinds[:1]}
        return self._topics.find_namespace(kinds, 'the ROS graph')

    def _look(self) -> None:
        """Who publishes now, and a subscription to each topic of a machine that is new."""
        for topic, kinds in self._node.get_topic_names_and_types():
            heard = self._heard.setdefault(topic, Heard())
            heard.kinds = tuple(kinds)
            heard.publishers = tuple(sorted(map(_name, self._node.get_publishers_info_by_topic(topic))))
            if topic not in self._inputs and heard.publishers:
                self._subscribe(topic, kinds)

    def _subscribe(self, topic: str, kinds: list[str]) -> None:
        if topic == '/clock' and 'rosgraph_msgs/msg/Clock' in kinds:
            self._node.create_subscription(Clock, topic, self._tick, LATEST)
        else:
            short, kind = self._known(topic)
            if kind not in kinds:
                return
            self._node.create_subscription(message_class(kind), topic, partial(self._on_message, topic, short),
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
    context = Context()
    rclpy.init(context=context, signal_handler_options=SignalHandlerOptions.NO)
    try:
        listener = Listener(machine, expected, namespace, context)
        try:
            return listener.run(seconds)
        finally:
            listener.close()
    finally:
        context.try_shutdown()


