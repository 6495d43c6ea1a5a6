# SPDX-License-Identifier: Apache-2.0
"""What nodes need of the middleware: quality of service, publishing although it is busy, messages that wait in it, and
participants that only listen.

Fast DDS gives a call 100 ms for its locks and its history. On a computer that is too busy this is too short now and
then, and rclpy raises an RCLError: the node would end, and begin again without what it knew. So a message that is not
taken at once is published again.

After a pause of the process an executor empties one subscription after the other: seconds of one sensor before the
first sample of the next, which looks as if that one were dead. So what waits is looked for; not where one message comes
soon after the other and all are new, as to look costs more than to read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from typing import Any, Generic, Protocol, TypeVar

import rclpy
from rclpy.context import Context
from rclpy.duration import Duration
from rclpy.executors import SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from rclpy.subscription import Subscription

try:
    from rclpy.experimental import EventsExecutor
    _Executor = EventsExecutor
except ImportError:   # Humble
    _Executor = SingleThreadedExecutor

# Between the nodes nothing may get lost: ten seconds at 100 Hz are kept for a reader that is slow for a moment.
OUTPUT = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)
LATEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
# The last one is kept for those who come later.
LASTING = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)

TF = QoSProfile(depth=100, reliability=ReliabilityPolicy.RELIABLE)        # as tf2_ros has it
PATIENCE = 5.0      # s
AGAIN = 0.01        # s between two attempts
FAREWELL = 2.0      # s
PAUSE = 0.05        # s without a message, from which on some may wait
OLD_NS = 20_000_000     # age of a message by the wall clock, from which on others may wait
QUEUE = 4000        # messages that a deep subscription holds
TURN = 0.02         # s


def sensor_input(reliability: str) -> QoSProfile:
    """Subscription to sensors: 'best_effort' matches every publisher, 'reliable' only reliable ones."""
    policy = {'best_effort': ReliabilityPolicy.BEST_EFFORT, 'reliable': ReliabilityPolicy.RELIABLE}[reliability]
    return QoSProfile(depth=100 if reliability == 'best_effort' else 200, reliability=policy)


def deep_input(reliability: str) -> QoSProfile:
    """The same for a node that may get no turn for seconds (a filter is compiled, other programs have the processor):
    what comes meanwhile waits."""
    profile = sensor_input(reliability)
    profile.depth = QUEUE
    return profile


def attempt(call: Callable[[], Any], patience: float = PATIENCE) -> tuple[Any, float]:
    """Result of a call, which is tried again for up to ``patience``, s, and how long it was refused, s; after that its
    last RCLError."""
    begin = None
    while True:
        try:
            return call(), 0.0 if begin is None else time.monotonic() - begin
        except rclpy_implementation.RCLError:
            begin = time.monotonic() if begin is None else begin
            if time.monotonic() - begin > patience:
                raise
        time.sleep(AGAIN)


def farewell(publishers: Iterable[Publisher], patience: float = FAREWELL) -> bool:
    """Whether all that was published has arrived at its reliable readers, within ``patience``, s, in all: what got lost
    on the way nobody can send again once the process has ended."""
    end, arrived = time.monotonic() + patience, True
    for publisher in publishers:
        try:
            arrived &= publisher.wait_for_all_acked(Duration(seconds=max(0.0, end - time.monotonic())))
        except rclpy_implementation.RCLError:       # not every middleware can say it
            return False
    return arrived


def persistent(publisher: Publisher, warning: Callable[[str], object], patience: float = PATIENCE) -> Publisher:
    """The publisher, whose ``publish`` tries again; ``warning`` gets a line each time that this has helped."""
    publish = publisher.publish

    def publish_again(message: Any) -> None:
        _, refused = attempt(lambda: publish(message), patience)
        if refused:
            warning(f'{publisher.topic_name}: the middleware was busy: published {refused:.2f} s later')

    publisher.publish = publish_again
    return publisher


class Participant(Node):       # type: ignore[misc]
    """One more node, in its own context, which publishes nothing and is served by ``step``: for programs that only
    listen."""

    def __init__(self, name: str, namespace: str = '') -> None:
        context = Context()
        rclpy.init(context=context, signal_handler_options=SignalHandlerOptions.NO)
        super().__init__(name, context=context, namespace=namespace, enable_rosout=False,
                         start_parameter_services=False, use_global_arguments=False)
        self._turns = _Executor(context=self.context)
        self._turns.add_node(self)

    def step(self) -> None:
        """Listen for a moment."""
        self._turns.spin_once(timeout_sec=TURN)

    def listen(self, seconds: float) -> None:
        """Listen for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.step()

    def close(self) -> None:
        """Leave the graph."""
        self._turns.remove_node(self)
        self._turns.shutdown()
        self.destroy_node()
        self.context.try_shutdown()


class Stamped(Protocol):
    """What is read out of a message."""

    @property
    def stamp_ns(self) -> int:
        """Instant of the message's header."""


T = TypeVar('T', bound=Stamped)
Read = Callable[..., Sequence[T]]


class Waiting(Generic[T]):
    """The subscriptions of a node, each with what reads stamped items out of its messages."""

    def __init__(self) -> None:
        self._inputs: dict[str, tuple[Subscription | None, Read[T], bool]] = {}
        self._looked = -PAUSE      # s, when the last message came

    def add(self, topic: str, subscription: Subscription | None, read: Read[T], timed: bool = False) -> None:
        """One more; without a subscription only what is handed over is read. ``timed``: by ``read(message, received)``,
        ns, None: just now; else by ``read(message)``."""
        self._inputs[topic] = subscription, read, timed

    def rest(self) -> Iterator[T]:
        """Items of all that still waits, by stamp, where no more callback can come."""
        return self.items('', None)

    def items(self, topic: str, message: Any) -> Iterator[T]:
        """Items of a message of a topic and, after a pause or where it is not new, by stamp, of all that wait behind it
        and in the other subscriptions."""
        now = time.monotonic()
        soon, self._looked = now - self._looked < PAUSE, now
        if soon and topic in self._inputs and not self._inputs[topic][2]:
            items = self._inputs[topic][1](message)
            if items and 0 <= time.time_ns() - items[0].stamp_ns < OLD_NS:
                return iter(items)
            return self._all(topic, items, None)
        return self._all(topic, None, message)

    def _all(self, topic: str, known: Sequence[T] | None, message: Any) -> Iterator[T]:
        """Items of a message, or those that are ``known`` of it, and of all that wait."""
        queues = []
        for name, (subscription, read, timed) in self._inputs.items():
            taken: list[tuple[Any, int | None]] = [] if subscription is None else list(_waiting(subscription))
            if name == topic and known is None:
                # The executor does not say when it was received (Jazzy's cannot): before those that wait behind it.
                taken.insert(0, (message, taken[0][1] - 1 if taken and taken[0][1] else None))
            own = known if name == topic and known is not None else ()
            queues.append([*own, *(item for one, at in taken for item in (read(one, at) if timed else read(one)))])
        return merge(*queues, key=lambda item: item.stamp_ns)


def drained(subscription: Subscription) -> Iterator[Any]:
    """Messages that wait in a subscription of nobody's executor."""
    yield from (message for message, _ in _waiting(subscription))


def _waiting(subscription: Subscription) -> Iterator[tuple[Any, int | None]]:
    """What an executor would take next from a subscription, and when the middleware received it, ns, where it says."""
    for _ in range(QUEUE):
        with subscription.handle:
            taken = subscription.handle.take_message(subscription.msg_type, subscription.raw)
        if taken is None:
            return
        yield taken[0], taken[1].get('received_timestamp') or None
