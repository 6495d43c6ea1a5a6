# SPDX-License-Identifier: Apache-2.0
"""Lifecycle node round one ROS-free object: what every node of the graph has in common."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from rcl_interfaces.msg import SetParametersResult
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription
from std_srvs.srv import Trigger

from ...bags.messages import packed_record
from ...compiled.compiler import remarks
from ...description.model import fingerprint
from ...dynamics.model import Model
from ...errors import MbseError
from ...machine import Machine
from ...progress import lengthy
from .diagnostics import OK, SHARED, WARN, Latency, ProcessStatus, Warnings
from .middleware import OUTPUT, drained
from .parameters import declare_entry, on_change
from .run import BAD_START, STOP, Runnable

M = TypeVar('M', Machine, Model)     # what a node is for
HURRY = 1.0     # s
SLOW = 4.0      # s, after which a start says why it takes so long: with a warm cache all is there before
SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE


class ManagedNode(Runnable, LifecycleNode, Generic[M]):     # type: ignore[misc]
    """Lifecycle node ``executable`` of the catalogue: parameters, transitions, topics, ~/reset.

    A child gives `build` (configure: make the stage and the outputs), `connect` (activate: take the inputs),
    `retune` (new tuning; raises SettingError to refuse it), and what its ``stage`` ``forgets`` by ~/reset, '' where
    there is no such service. Publishers live from configure to cleanup, subscriptions only while active.
    """

    executable: str
    hurried = False
    forgets = ''
    receiver: Callable[[Any, tuple[str, str]], None] | None = None      # of a node of this process: takes records
    company: Sequence[ManagedNode[Any]] = ()     # the other nodes of the process, which start one after the other
    waited_in_vain = False
    settings: Any       # a child says which
    tuning: Any
    stage: Any
    _answer = ''

    def __init__(self) -> None:
        LifecycleNode.__init__(self, self.executable)
        (self.settings, *self.more_settings), self.tuning = declare_entry(self, self.executable)
        if self.tuning is not None:
            on_change(self, lambda: self.tuning, self._retune)
        self.warnings = Warnings(self.get_logger().warning)
        self._machine: M | None = None
        self.fingerprint = ''
        self.active = False
        self.latency = Latency()
        self._inputs: list[Subscription] = []
        self._outputs: list[Publisher] = []
        if self.forgets:
            self.create_service(Trigger, '~/reset', self.on_reset)
        self.process_status = ProcessStatus(
            self, self.own_topics, lambda: '' if self._machine is None else self._machine.description.name,
            self.process_values, self.process_trouble)

    @property
    def machine(self) -> M:
        """What the node is configured for. Raises RuntimeError before that."""
        if self._machine is None:
            raise RuntimeError(f'{self.executable}: not configured')
        return self._machine

    def own_topics(self) -> list[str]:
        """Full names of the topics that have one publisher in a sound graph."""
        return [output.topic_name for output in self._outputs if not output.topic_name.endswith(SHARED)]

    def process_values(self) -> dict[str, object]:
        """Numbers of the process, for its diagnostics."""
        return {'active': self.active, 'machine file': self.fingerprint, 'warnings': self.warnings.total,
                **({'real time': self.real_time.words} if self.real_time is not None else {}), **self.latency.values(),
                **({'compiled functions': '; '.join(remarks())} if remarks() else {})}

    def process_trouble(self) -> tuple[bytes, str]:
        """What is wrong with the process, for its diagnostics."""
        refused = self.real_time.refused if self.real_time is not None else ''
        late = self.latency.warning(getattr(self.settings, 'latency_budget', 0.0))
        return (WARN, '; '.join(filter(None, (refused, late)))) if refused or late else (OK, '')

    def load(self) -> M:
        """What the node is for, by its settings; raises MbseError."""
        return self.settings.load()     # type: ignore[no-any-return]

    def build(self, machine: M) -> None:
        """Make the stage and the outputs for a machine; raises MbseError."""

    def connect(self) -> None:
        """Take the inputs, with the stage as after its start."""

    def retune(self, tuning: Any) -> str | None:
        """Give a new tuning to the stage; returns a note for the caller, if any. Only called when there is one."""

    def output(self, kind: type, topic: str, qos: QoSProfile = OUTPUT) -> Publisher:
        """Publisher that is silent while the node is not active; the first one is the main output."""
        publisher = self.lasting(self.create_lifecycle_publisher(kind, topic, qos))
        self._outputs.append(publisher)
        return publisher

    def send(self, publisher: Publisher, record: Any) -> None:
        """A record to the node of this process that takes it, and to those who read the topic; it is serialized only
        for these."""
        if self.receiver is not None:
            self.receiver(record, (self.machine.description.name, self.fingerprint))
            if not publisher.get_subscription_count():
                return
        publisher.publish(packed_record(record, self.machine.description.name, self.fingerprint))

    def input(self, kind: type, topic: str, callback: Callable[[Any], None], qos: QoSProfile,
              raw: bool = False) -> Subscription:
        """Subscription until the node is deactivated; ``raw``: the callback gets the serialized bytes."""
        self._inputs.append(self.create_subscription(kind, topic, callback, qos, raw=raw))
        return self._inputs[-1]

    def leave(self, subscription: Subscription) -> None:
        """End a subscription before that."""
        self._inputs.remove(subscription)
        self.destroy_subscription(subscription)

    def start(self) -> None:
        """Configure and activate, if the parameter autostart says so; a failure ends the process."""
        if self.settings.autostart and not (
                self.trigger_configure() == SUCCESS and self.trigger_activate() == SUCCESS):
            self.exit_status = BAD_START

    def do_rest(self) -> None:
        """Take what waits in the inputs, until a further signal comes."""
        for subscription in self._inputs.copy():
            for message in drained(subscription):
                if STOP.at_once:
                    return
                subscription.callback(message)

    def on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Forget what the stage knows."""
        response.success, response.message = self._machine is not None, self.forgets
        if response.success:
            self.stage.reset()
        else:
            response.message = 'not configured'
        return response

    def set_parameters_atomically(self, parameter_list: list[Parameter]) -> SetParametersResult:
        """As rclpy's, which the services come through, too; the answer carries the note of `retune`."""
        self._answer = ''
        result = super().set_parameters_atomically(parameter_list)
        if result.successful and not result.reason:
            result.reason = self._answer
        return result

    def on_configure(self, state: Any) -> TransitionCallbackReturn:
        """Load the machine and build the stage, warmed up; FAILURE with a fatal line where that is impossible."""
        def configure() -> None:
            with lengthy(f'{self.executable}: a first start compiles functions, which may take minutes; they are kept '
                         'for the next time', self.get_logger().info, SLOW):
                self._machine = self.load()
                self.fingerprint = fingerprint(self.machine.description)
                self.build(self.machine)
            for line in remarks():
                self.get_logger().warning(line)
        return self._guarded('configure', configure, state, LifecycleNode.on_configure)

    def on_activate(self, state: Any) -> TransitionCallbackReturn:
        """Wait for those who read the main output, then take the inputs."""
        def activate() -> None:
            self._wait_for_subscribers()
            self.connect()
            self.active = True
        result = LifecycleNode.on_activate(self, state)
        return self._guarded('activate', activate, state) if result == SUCCESS else result

    def on_deactivate(self, state: Any) -> TransitionCallbackReturn:
        """Let go of the inputs."""
        return self._guarded('deactivate', self._disconnect, state, LifecycleNode.on_deactivate)

    def on_cleanup(self, state: Any) -> TransitionCallbackReturn:
        """Let go of the stage and the outputs."""
        return self._guarded('cleanup', self._tear_down, state, LifecycleNode.on_cleanup)

    def on_shutdown(self, state: Any) -> TransitionCallbackReturn:
        """Let go of all."""
        return self._guarded('shutdown', self._tear_down, state, LifecycleNode.on_shutdown)

    def _guarded(self, verb: str, action: Callable[[], None], state: Any,
                 base: Callable[[Any, Any], TransitionCallbackReturn] | None = None) -> TransitionCallbackReturn:
        """Run a transition's action; an error is logged (rclpy would swallow it) and undone."""
        try:
            action()
        except MbseError as error:
            self.get_logger().fatal(f'cannot {verb}: {error}')
        except Exception:
            self.get_logger().fatal(f'cannot {verb}:\n{traceback.format_exc()}')
        else:
            return base(self, state) if base else SUCCESS
        self._disconnect() if verb == 'activate' else self._tear_down()
        return FAILURE

    def _wait_for_subscribers(self) -> None:
        """Until the main output has as many subscribers as the parameter says, or the time is over."""
        wanted, wait = self.settings.wait_subscribers, self.settings.wait_time
        if any(node.waited_in_vain for node in self.company):       # the same reader is missing: not once more
            wait = min(wait, HURRY)
        end, self.waited_in_vain = time.monotonic() + wait, False
        while self._outputs and not STOP.asked and (found := self._outputs[0].get_subscription_count()) < wanted:
            if time.monotonic() > end:
                self.get_logger().warning(
                    f'{self._outputs[0].topic_name}: {found} of {wanted} subscribers after {wait} s')
                self.waited_in_vain = True
                return
            time.sleep(0.01)

    def _retune(self, tuning: Any) -> None:
        if self._machine is not None:
            self._answer = self.retune(tuning) or ''
        self.tuning = tuning

    def _disconnect(self) -> None:
        self.active = False
        for subscription in self._inputs:
            self.destroy_subscription(subscription)
        self._inputs.clear()

    def _tear_down(self) -> None:
        self._disconnect()
        self._machine = None
        for publisher in self._outputs:
            self.destroy_lifecycle_publisher(publisher)
        self._outputs.clear()

    def _LifecycleNodeMixin__change_state(self, transition_id: int) -> TransitionCallbackReturn:
        """A transition that the state does not have is refused; rclpy alone would end the process."""
        try:
            return super()._LifecycleNodeMixin__change_state(transition_id)
        except rclpy_implementation.RCLError as error:
            self.get_logger().error(f'transition {transition_id} refused: {error}')
            return FAILURE
