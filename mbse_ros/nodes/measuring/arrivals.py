# SPDX-License-Identifier: Apache-2.0
"""When the messages of a topic come, by their stamps."""

from __future__ import annotations

import time

import rclpy
from rclpy.context import Context
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions

from ..base.run import _Executor
from ..messages.wire import message_class, stamp_of

TURN = 0.02     # s


class Arrivals:
    """Hears a topic of a namespace, reliably: ``found`` has the instant of each arrival, ns, by the stamp, ns."""

    def __init__(self, topic: str, kind: str, namespace: str) -> None:
        self.found: dict[int, int] = {}
        self._context = Context()
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self._node = Node('arrivals', context=self._context, namespace=namespace, enable_rosout=False,
                          start_parameter_services=False, use_global_arguments=False)
        self._executor = _Executor(context=self._context)
        self._executor.add_node(self._node)
        self._node.create_subscription(message_class(kind), topic, self._on_message, QoSProfile(depth=5000), raw=True)

    def step(self) -> None:
        """Listen for a moment."""
        self._executor.spin_once(timeout_sec=TURN)

    def close(self) -> None:
        """Leave the graph."""
        self._executor.remove_node(self._node)
        self._executor.shutdown()
        self._node.destroy_node()
        self._context.try_shutdown()

    def _on_message(self, cdr: bytes) -> None:
        self.found.setdefault(stamp_of(cdr), time.time_ns())
