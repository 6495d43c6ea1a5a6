# SPDX-License-Identifier: Apache-2.0
"""Nodes in the test's own process, whose outputs are kept and whose clock is a number."""

from contextlib import contextmanager
from functools import lru_cache
from types import SimpleNamespace

import pytest
from nodes_support import overrides
from rclpy.serialization import deserialize_message, serialize_message

from mbse_ros.nodes import interpolation_node as _interpolation
from mbse_ros.nodes import plant_node as _plant
from mbse_ros.nodes.base import lifecycle as _lifecycle
from mbse_ros.nodes.base import node_settings as settings
from mbse_ros.nodes.messages.wire import to_ns

SECOND = 10 ** 9


class Sink:
    """In the place of a publisher."""

    def __init__(self, kind):
        self.kind, self.messages = kind, []

    def publish(self, message):
        """Must be publishable, and is kept."""
        if isinstance(message, bytes):
            message = deserialize_message(message, self.kind)
        serialize_message(message)
        self.messages.append(message)

    def get_subscription_count(self):
        """Somebody listens."""
        return 1


@contextmanager
def making():
    """A function that makes active nodes whose outputs are sinks, by topic; nodes of one machine share its model."""
    nodes, patch, init = [], pytest.MonkeyPatch(), _lifecycle.LifecycleNode.__init__
    patch.setattr(settings, 'load_machine', lru_cache(settings.load_machine))

    def build(kind, **values):
        with pytest.MonkeyPatch.context() as start:
            start.setattr(_lifecycle.LifecycleNode, '__init__', lambda self, name, **more: init(
                self, name, parameter_overrides=overrides(**values), **more))
            node = kind()
        node.sinks, node.warned = {}, []
        node.warnings._write = node.warned.append
        node.output = lambda kind, topic, qos=None: node.sinks.setdefault(topic, Sink(kind))
        nodes.append(node)
        assert node.trigger_configure() == node.trigger_activate() == _lifecycle.SUCCESS
        return node
    try:
        yield build
    finally:
        patch.undo()
        for node in nodes:
            node.destroy_node()


@contextmanager
def hand_clock():
    """The clocks of plant and interpolation, set by hand: to wait for segments takes as long as the test says."""
    now = [0.0]
    with pytest.MonkeyPatch.context() as patch:
        for node in (_plant, _interpolation):
            patch.setattr(node, 'time', SimpleNamespace(monotonic=lambda: now[0], time_ns=lambda: 1_000 * SECOND))
        yield now


@pytest.fixture
def make():
    """See making."""
    with making() as build:
        yield build


@pytest.fixture
def clock():
    """See hand_clock."""
    with hand_clock() as now:
        yield now


def go(node, clock, seconds):
    """Let the plant's time run, waking it whenever it asks to be."""
    end = clock[0] + seconds
    while clock[0] < end:
        due = node.tick()
        if due is None:
            return
        clock[0] += max(due, 1e-6)


def stamps(sink):
    return [to_ns(message.header.stamp) for message in sink.messages]
