# SPDX-License-Identifier: Apache-2.0
"""What the tests of the nodes share: a domain for a whole module, a peer that talks to the nodes, records."""

import fcntl
import os
import signal
import tempfile
import time
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

import domains
import numpy as np
import rclpy
from rcl_interfaces.srv import ListParameters
from rclpy.context import Context
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from rclpy.task import Future
from sensor_msgs.msg import FluidPressure, JointState

from mbse_ros.bags.messages import packed_record
from mbse_ros.description.load import load_mechanism
from mbse_ros.description.model import fingerprint
from mbse_ros.nodes.base.middleware import OUTPUT, attempt, persistent
from mbse_ros.nodes.base.middleware import _Executor as Executor
from mbse_ros.nodes.messages.wire import header
from mbse_ros.streams.records import ObserverStatus, Segment, StateEstimate

TURN = 0.02         # s without a message until the next look
BATCH = 0.005       # s of messages until the next look
AGAIN = 1.0         # s until a question that may have been lost is put again
MATCH = 60.0        # s: the longest that anything takes on a machine with much else to do
PATIENCE = ((signal.SIGTERM, MATCH), (signal.SIGKILL, 5.0))       # of a graph that is stopped
CHANNELS = ('position/lift', 'pressure/lift_piston', 'pressure/lift_rod')
COMMANDS = ('command/lift_valve',)
idle = {}           # contexts of peers that have left, with their holders, by the domain that the test holds


def joint_state(stamp_ns, frame, names, position, velocity=(), effort=()):
    """JointState with the fields that are given."""
    return JointState(header=header(stamp_ns, frame), name=list(names), **{
        field: [float(value) for value in values]
        for field, values in (('position', position), ('velocity', velocity), ('effort', effort))})


@contextmanager
def own_domain():
    """A ROS_DOMAIN_ID no other test holds, set in the environment."""
    old = os.environ.get('ROS_DOMAIN_ID')
    for domain in domains.domains():
        with open(Path(tempfile.gettempdir()) / f'mbse_ros_domain_{domain}.lock', 'w') as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            os.environ['ROS_DOMAIN_ID'] = str(domain)
            idle[str(domain)] = []
            try:
                yield domain
            finally:
                os.environ.pop('ROS_DOMAIN_ID') if old is None else os.environ.update(ROS_DOMAIN_ID=old)
                for context, holder in idle.pop(str(domain)):
                    holder.destroy_node()
                    rclpy.shutdown(context=context)
            return
    raise RuntimeError('all ROS domains are taken')


@contextmanager
def ros():
    """rclpy in the test's process, in a domain of its own."""
    with own_domain():
        rclpy.init()
        holder = held(rclpy.get_default_context())
        try:
            yield
        finally:
            holder.destroy_node()
            rclpy.shutdown()


def held(context):
    """A node that keeps the participant of a context while others come and go.

    A context ends its participant with its last node. Where participants came and went in one process, 1 to 2 of 100
    runs waited in vain: a peer saw all nodes, but never the readers of one that was there before (Fast DDS).
    """
    return Node('_holder', context=context, start_parameter_services=False, enable_rosout=False)


def overrides(**values):
    """Parameters as the command line would give them."""
    return [Parameter(name, value=value) for name, value in values.items()]


def sent(record, machine='patu655_lift'):
    """Serialized message of a record, as the graph of a machine sends it."""
    return packed_record(record, machine, _fingerprint(machine))


@cache
def _fingerprint(machine):
    return fingerprint(load_mechanism(machine))


def asked(client, request):
    """Future of a request; the middleware of a busy computer may take it only after some attempts."""
    return attempt(lambda: client.call_async(request), MATCH)[0]


class Peer:
    """A node of the test's own in the current domain: publishes sensors, keeps what it hears.

    The next peer takes the context and the participant of one that has left.
    """

    def __init__(self, **topics):
        self._domain = os.environ.get('ROS_DOMAIN_ID')
        if idle.get(self._domain):
            self.context, self._holder = idle[self._domain].pop()
        else:
            self.context = Context()
            rclpy.init(context=self.context)
            self._holder = held(self.context)
        self.node = Node('peer', context=self.context)
        self.executor = Executor(context=self.context)
        self.executor.add_node(self.node)
        self.heard = {topic: [] for topic in topics}
        for topic, kind in topics.items():
            self.node.create_subscription(kind, topic, partial(self._hear, self.heard[topic]), QoSProfile(depth=5000))
        self.outputs = {}
        self.near = ()
        self.also = lambda: None
        self._batch, self._over = Future(), 0.0

    def close(self):
        """Leave the graph."""
        self.executor.shutdown()
        self.node.destroy_node()
        if self._domain in idle:
            idle[self._domain].append((self.context, self._holder))
        else:
            self._holder.destroy_node()
            rclpy.shutdown(context=self.context)

    def until(self, condition, limit=MATCH, why=lambda: ''):
        """Spin until the condition holds; AssertionError after the limit, s, with what ``why`` says."""
        end = time.monotonic() + limit
        while not condition():
            assert time.monotonic() < end, f'waited in vain {why()}'
            self.step()

    def _hear(self, messages, message):
        """Keep a message, and end a batch: the executor looks at the time only where nothing waits."""
        messages.append(message)
        self._came = True
        if time.monotonic() > self._over and not self._batch.done():
            self._batch.set_result(None)

    def step(self):
        """Listen for a moment; ``also`` may give another node of the process its turn.

        Where one message has come more may wait: all of them before the next look, else a busy peer falls behind.
        """
        self._came = False
        self.executor.spin_once(timeout_sec=TURN)
        if self._came:
            self._batch, self._over = Future(), time.monotonic() + TURN
            self.executor.spin_until_future_complete(self._batch, BATCH)
        self.also()

    def publish(self, kind, topic, message, readers=1, qos=OUTPUT):
        """Publish, the first time after the match with as many readers; only reliable ones get the first message.

        Those of the nodes ``near``, in this process, must have met the publisher, too: what it sends before is lost.
        """
        if topic not in self.outputs:
            self.outputs[topic] = persistent(self.node.create_publisher(kind, topic, qos), print, MATCH)
            name = self.node.resolve_topic_name(topic)
            self.until(lambda: self.outputs[topic].get_subscription_count() >= readers and all(
                reader.get_publisher_count() for node in self.near for reader in node.subscriptions
                if reader.topic_name == name), why=partial(self._ends, topic))
        self.outputs[topic].publish(message)

    def _ends(self, topic):
        """Who publishes and who reads a topic as this peer sees it, in words."""
        def words(found):
            return ', '.join(f'{i.node_name} ({i.topic_type}, {i.qos_profile.reliability.name})'
                             for i in found) or 'none'
        return (f'for readers of {topic}: {self.outputs[topic].get_subscription_count()} matched; readers: '
                f'{words(self.node.get_subscriptions_info_by_topic(topic))}; publishers: '
                f'{words(self.node.get_publishers_info_by_topic(topic))}; nodes: {self.node.get_node_names()}')

    def samples(self, stamp_ns, position=0.2675, piston=3e6, rod=2e6, command=0.0):
        """One instant of all sensors of the default machine."""
        self.publish(JointState, 'sensors/valve_command', joint_state(stamp_ns, 'm', ['lift_valve'], [command]))
        self.publish(JointState, 'sensors/position', joint_state(stamp_ns, 'm', ['lift'], [position]))
        for volume, pressure in (('lift_piston', piston), ('lift_rod', rod)):
            self.publish(FluidPressure, f'sensors/pressure/{volume}',
                         FluidPressure(header=header(stamp_ns, 'm'), fluid_pressure=float(pressure)))

    def deliver(self):
        """Wait until all that was published has arrived at its readers."""
        assert all(output.wait_for_all_acked(Duration(seconds=MATCH)) for output in self.outputs.values())

    def settle(self, node, messages):
        """Wait until a node has done what it has to do with so many messages of each topic.

        They have arrived there once they are acknowledged, and each call of a service comes after one of each topic.
        """
        self.deliver()
        client = self._met(node)
        for _ in range(messages + 1):
            self.until(asked(client, ListParameters.Request()).done)
        self.node.destroy_client(client)

    def _met(self, node):
        """Client of a node that has met it, and all that this peer had before: its answers come. Until then they are
        lost, so it is asked again and again; a service that changes something must not be."""
        client, futures, due = self.node.create_client(ListParameters, f'{node}/list_parameters'), [], [0.0]

        def answered():
            if time.monotonic() > due[0]:
                futures.append(asked(client, ListParameters.Request()))
                due[0] = time.monotonic() + AGAIN
            return any(future.done() for future in futures)
        self.until(client.service_is_ready)
        self.until(answered)
        return client

    def call(self, kind, service, request):
        """Response of a service."""
        client = self.node.create_client(kind, service)
        self.until(client.service_is_ready)
        self.node.destroy_client(self._met(service.rpartition('/')[0]))
        future = asked(client, request)
        self.until(future.done)
        self.node.destroy_client(client)
        return future.result()


def segment(sequence=1, start_ns=0, steps=10, step_ns=1_000_000, restart=False, position=0.2675):
    """Segment of the default machine at rest."""
    row = np.array([position, 3e6, 2e6])
    return Segment(sequence, start_ns, step_ns, restart, CHANNELS, np.tile(row, (steps, 1)), np.full(3, float(steps)),
                   COMMANDS, np.zeros((steps, 1)))


def state(sequence=1, stamp_ns=10_000_000, steps=10, names=('position/lift', 'velocity/lift'), restart=False):
    """State estimate with made-up numbers."""
    rng = np.random.default_rng(sequence)
    n, m = len(names), len(CHANNELS)
    return StateEstimate(sequence, stamp_ns, 1_000_000, restart, names, rng.normal(size=(steps, n)), np.eye(n) * 1e-6,
                         CHANNELS, rng.normal(size=m), rng.normal(size=m), np.ones(m), 2.5, m, ObserverStatus.COASTING,
                         'missing: pressure/lift_rod', rng.normal(size=(steps, 3)))
