# SPDX-License-Identifier: Apache-2.0
"""Sensor messages in, state and payload mass out, in compiled C: what interpolation_node, observer_node and
payload_node do, where sensors send at one rate and at the same instants.

Python makes the topics, and looks once a second. Between messages works a thread of C (native/loop.c), which takes
bytes from rcl, steps the estimator that ``mbse export-c`` writes, and publishes bytes. On such sensors state and mass
are those of the other nodes, to rounding. What differs:

- An instant waits for the sensors and, for ``command_wait``, for its command. A sample that does not come counts as
  missing, where interpolation_node draws a line between its neighbours; an instant without any sample is a pause.
- Instants off the rate by more than a tenth of a period are dropped. All of these are counted in /diagnostics.
- A state has one step, that at its stamp, and says nothing of the weighing; reasons have no numbers.
- Tuning is fixed at the start. There is no segment, no estimated/joint_states, no force at the tool, no prediction, no
  ~/set_state, no map of other topics.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.impl.implementation_singleton import rclpy_implementation

from mbse_ros.msg import HydraulicState, PayloadEstimate

from ..embedded.tables import EstimatorSetup
from ..errors import SettingError
from ..machine import Machine
from ..monitor.faults import ObserverStatus, PayloadStatus
from .base.diagnostics import LEVELS, WARN, diagnostic_array
from .base.foreign_inputs import node_sources
from .base.lifecycle import ManagedNode
from .base.middleware import deep_input
from .base.node_settings import EstimatorNodeSettings
from .base.run import STOP
from .messages.wire import message_class
from .native.library import COUNTS, OFF_RATE, Waits, compiled_estimator, input_topics
from .native.loop import EstimatorLoop, rcl_calls

HEALTH = 1.0        # s between two diagnostics
SOON = 0.1          # s until the thread has answered
OFTEN = COUNTS[3:]      # what the diagnostics warn of while it grows


class EstimatorNode(ManagedNode[Machine]):
    """The node round the thread; without messages it has nothing to do."""

    executable = 'estimator_node'
    forgets = 'state and mass are forgotten; the next samples start them'
    settings: EstimatorNodeSettings
    _loop: EstimatorLoop | None = None

    def build(self, machine: Machine) -> None:
        """Compile the estimator of the machine."""
        foreign = node_sources(self.settings.sources, machine).channels
        if foreign:
            raise SettingError('sources', self.settings.sources, 'none: the compiled estimator reads the topics of '
                               f'this package alone; a map has {", ".join(foreign)}')
        observer, payload = self.more_settings
        s = self.settings
        self._library = compiled_estimator(EstimatorSetup(machine, observer, payload.of_payload(), s.rate, s.step),
                                           Waits(s.command_wait, s.give_up_after))
        self._topics, self._calls = input_topics(machine), rcl_calls()
        self._state = self.output(HydraulicState, 'state')
        self._payload = self.output(PayloadEstimate, 'payload')
        self._diagnosed = self.output(DiagnosticArray, '/diagnostics')

    def connect(self) -> None:
        """Take the sensors from here on, with nothing known."""
        self._due = time.monotonic() + HEALTH
        self._told: tuple[int, ...] = ()
        self._seen: tuple[ObserverStatus, PayloadStatus] | None = None
        qos = deep_input(self.settings.sensor_reliability).get_c_qos_profile()
        with self.handle:       # not by create_subscription: the executor would take the messages
            self._subscriptions_of_c = [rclpy_implementation.Subscription(
                self.handle, _with_support(message_class(item.kind)), item.topic, qos) for item in self._topics]
        self._loop = self.stage = EstimatorLoop(
            self._library, self._calls, [item.pointer for item in self._subscriptions_of_c],
            self._state.handle.pointer, self._payload.handle.pointer)
        self._loop.start()

    def tick(self) -> float | None:
        """Look at the numbers; seconds until the next look."""
        if not self.active or self._loop is None:
            return None
        now = time.monotonic()
        if now < self._due:
            return self._due - now
        if not self._loop.look(self._report):
            return SOON
        self._due = now + HEALTH
        return HEALTH

    def on_reset(self, request: Any, response: Any) -> Any:
        """Forget what the estimator knows."""
        if self._loop is None:
            response.success, response.message = False, 'not active'
            return response
        return super().on_reset(request, response)

    def do_rest(self) -> None:
        """What waits in the inputs, until a further signal comes."""
        if self._loop is not None:
            self._loop.stop(STOP.at_once)

    def destroy_node(self) -> None:
        """As rclpy's; the thread ends before what it works with."""
        self._end_loop()
        super().destroy_node()

    def _disconnect(self) -> None:
        self._end_loop()
        super()._disconnect()

    def _end_loop(self) -> None:
        if self._loop is not None:
            self._loop.close()
            self._loop = None
            for item in self._subscriptions_of_c:
                item.destroy_when_not_in_use()

    def _report(self, found: Any) -> None:
        """Diagnostics, and lines about new statuses, of what the thread had a moment ago."""
        counts, before = tuple(found.count), self._told or (0,) * len(COUNTS)
        self._told = counts
        if not self.get_parameter('use_sim_time').value:
            for age in found.age[:found.ages]:
                self.latency.take(age)
        status, of_mass = ObserverStatus(found.observer), PayloadStatus(found.status)
        reason, why = found.state_words.decode(errors='replace'), found.mass_words.decode(errors='replace')
        troubles = list(self._troubles(found, counts, before))
        for text in troubles:
            self.warnings(text.partition(':')[0], text)
        running = counts[1] > 0
        text = '; '.join(filter(None, [*troubles, reason])) or ('OK' if running else 'no samples yet')
        level = LEVELS[status] if running and not troubles else WARN
        missing = {f'missing, {item.topic}': number for item, number in zip(self._topics, found.missing) if number}
        values = {'observer': status.name, 'mass': f'{found.mass:.1f} kg ({found.lower:.1f} to {found.upper:.1f} kg)',
                  'payload': f'{of_mass.name}{": " if why else ""}{why}', 'mean NIS': f'{found.mean_nis:.3g}',
                  **{name: number for name, number in zip(COUNTS[1:], counts[1:]) if number}, **missing}
        self._diagnosed.publish(diagnostic_array(self.get_clock().now().nanoseconds, level, self.get_name(),
                                                 self.machine.name, text, values))
        if running and (status, of_mass) != self._seen:
            self._seen = status, of_mass
            self.get_logger().info(f'{status.name}{": " if reason else ""}{reason}; {values["payload"]}, '
                                   f'{values["mass"]}')

    def _troubles(self, found: Any, counts: tuple[int, ...], before: tuple[int, ...]) -> Iterator[str]:
        """What went wrong with the inputs since the last look."""
        def named(bits: int) -> str:
            return ', '.join(item.topic for k, item in enumerate(self._topics) if bits >> k & 1)
        if found.waiting:
            yield f'waiting for {named(found.waiting)}'
        if found.silent:
            yield f'silent: {named(found.silent)}'
        for name, number, old in zip(COUNTS, counts, before):
            if name in OFTEN and number > old:
                yield f'{name}: {number - old} more' + (
                    f'; expected {self.settings.rate:g} Hz (rate) and one stamp for all sensors: else use '
                    'interpolation_node, observer_node and payload_node' if name == OFF_RATE else '')


def _with_support(kind: Any) -> Any:
    """A message class whose C type support is imported."""
    if kind.__class__._TYPE_SUPPORT is None:
        kind.__class__.__import_type_support__()
    return kind


main = EstimatorNode.main

if __name__ == '__main__':
    main()
