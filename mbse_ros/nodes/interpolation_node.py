# SPDX-License-Identifier: Apache-2.0
"""Sensor messages in, one segment a sensor period out."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray

from mbse_ros.msg import SensorSegment

from ..bags.channel_samples import Sample, topic_readers
from ..bags.channels import parse_channel
from ..bags.message_layout import TYPES, Forms, read
from ..bags.topics import TopicMap
from ..errors import SampleError
from ..machine import Machine
from ..monitor.clocks import Ages, Gaps
from ..monitor.rates import too_slow
from ..sources.fields import ARRIVAL
from ..sources.machine import left_over
from ..streams.interpolation import InterpolationSettings, Interpolator
from ..streams.records import Segment
from .base.diagnostics import ERROR, OK, WARN, Strangers, diagnostic_array
from .base.foreign_inputs import ForeignInputs, node_sources
from .base.lifecycle import ManagedNode
from .base.middleware import Waiting, deep_input
from .base.node_settings import SensorNodeSettings
from .messages.wire import message_class, unpacked

NUMBER = re.compile(r'\d+')
SILENCE = 5.0       # s without a segment before a warning
HEALTH = 1.0        # s between two diagnostics


class InterpolationNode(ManagedNode[Machine]):
    """Aligns the sensors' streams; a sample that cannot be used is dropped with a warning, the stream goes on."""

    executable = 'interpolation_node'
    settings: SensorNodeSettings
    tuning: InterpolationSettings

    def build(self, machine: Machine) -> None:
        """Make the interpolator of the machine's channels."""
        self.sources = node_sources(self.settings.sources, machine)
        self.interpolator = Interpolator(machine.channels, machine.commands, self.tuning, machine.delays)
        self._segments = self.output(SensorSegment, 'segment')
        self._diagnosed = self.output(DiagnosticArray, '/diagnostics')

    def retune(self, tuning: InterpolationSettings) -> None:
        """Give a new tuning to the interpolator."""
        self.interpolator.configure(tuning)

    def connect(self) -> None:
        """Take the sensors from here on."""
        self.interpolator.reset()
        self._gaps, self._missing = Gaps(), ''
        self._ages, self._aged = Ages(stream=True), ''
        ways = self.sources.channels.items() if self.sources is not None else ()
        self._untimed = {name for name, own in ways if any(way.stamp == ARRIVAL or way.delay_ns for way in own)}
        self._told_late, self._late = self.interpolator.late, ''
        self._lost: set[str] = set()
        self._apart: set[str] = set()
        self._end: int | None = None        # of the newest segment, ns
        self._patience, self._health = time.monotonic() + SILENCE, time.monotonic()
        self._own = {*self.machine.model.names, *self.machine.valves}
        sensors = [parse_channel(text) for text in self.machine.channels]
        known = [item.name for item in sensors if item.kind in ('position', 'velocity')]
        self._strangers = Strangers([*known, *self.machine.valves], lambda text: self.warnings(text, text),
                                    self.get_logger().info)
        qos = deep_input(self.settings.sensor_reliability)
        self._waiting: Waiting[Sample] = Waiting()
        self._foreign = ForeignInputs(self, self.sources, self._waiting, qos, self.on_message)
        refused: list[SampleError] = []
        readers = topic_readers(*left_over(self.sources, self.machine), TopicMap(), refused.append)
        for topic, reader in reversed(readers.items()):     # positions last: they are what a plant waits for
            kind, callback = message_class(reader.msgtype), partial(self.on_message, topic)
            subscription = self.input(kind, topic, callback, qos, raw=True)
            self._waiting.add(topic, subscription,
                              partial(self._read, topic, reader.msgtype, Forms(topic, reader, refused)))

    def tick(self) -> float | None:
        """A warning where no segment came for long, and diagnostics; seconds until the next look."""
        if not self.active:
            return None
        look, now = self._foreign.look(), time.monotonic()
        if now >= self._patience:
            missing = self._foreign.missing()
            missing = '; '.join(part for part in (missing, self.interpolator.clocks.words, self._rare()) if part)
            self.get_logger().warning(f'no segment: waiting for {", ".join(self.interpolator.waiting_for)}'
                                      + (f' ({missing})' if missing else ''))
            self._patience = now + 4 * SILENCE
        if now >= self._health:
            self._health = now + HEALTH
            self._log_clocks()
            self._log_missing()
            if rare := self._rare():
                self.warnings('rare', rare)
            self._log_late()
            self._diagnosed.publish(self._diagnostics())
        return min(self._patience, self._health, now + (HEALTH if look is None else look)) - now

    def on_message(self, topic: str, message: Any) -> None:
        """Samples of one topic, and of all others that wait."""
        now = self.get_clock().now().nanoseconds
        for sample in self._waiting.items(topic, message):
            self._gaps.take(sample.channel, sample.stamp_ns)
            if sample.channel not in self._untimed:
                self._ages.take(sample.channel, sample.stamp_ns, now)
            try:
                segments = self.interpolator.add(*sample)
            except SampleError as error:
                self._refuse(error)
                continue
            for segment in segments:
                self._patience = time.monotonic() + SILENCE
                self._log_restart(segment)
                self.send(self._segments, segment)
        if set(self.interpolator.lost) != self._lost:
            self._log_lost()

    def _read(self, topic: str, msgtype: str, forms: Forms, cdr: bytes) -> Sequence[Sample]:
        """Samples of serialized bytes: to unpack them here costs less than rclpy's conversion."""
        def message(cdr: bytes) -> Any:
            found = read(cdr, msgtype) if msgtype in TYPES else None
            return unpacked(topic, msgtype, cdr) if found is None else found.message
        try:
            return forms.read(cdr, message, self._refuse)
        except SampleError as error:
            self._refuse(error)
            return []

    def _refuse(self, error: SampleError) -> None:
        """A line about a sample that is dropped; of a name that no sensor has one at most."""
        topic, blank, name = error.channel.partition(' ')
        if blank:
            if name not in self._own:
                self._strangers(topic, name)
        else:
            # A kind never holds a name out of a message: a sender could make as many kinds as it likes.
            self.warnings(f'{topic}: {NUMBER.sub("", error.expected)}', f'sample dropped: {error}')

    def _diagnostics(self) -> DiagnosticArray:
        """Which inputs are silent, and what was dropped."""
        lost, waiting = self.interpolator.lost, self._patience - time.monotonic() > SILENCE
        text = f'silent: {", ".join(sorted(lost))}' if lost else ''
        if waiting:
            text = f'no segment: waiting for {", ".join(self.interpolator.waiting_for)}'
        fault = self._foreign.fault
        parts = fault, self._rare(), self.interpolator.clocks.words, self._aged, text, self._missing, self._late
        text = '; '.join(part for part in parts if part)
        dropped = {f'missing, {channel}': count for channel, count in self._gaps.total.items()}
        dropped |= {f'dropped, {reason}': count for reason, count in self.interpolator.dropped.items()}
        dropped |= {f'late, steps with another {command}': count for command, count in self.interpolator.late.items()}
        dropped |= {f'left out, {reason}': count for reason, count in self._foreign.left_out.items()}
        return diagnostic_array(self.get_clock().now().nanoseconds, ERROR if fault else WARN if text else OK,
                                self.get_name(), self.machine.name, text or 'OK', dropped)

    def _rare(self) -> str:
        """Which sensors send too rarely to be interpolated."""
        longest = round(1e9 * self.interpolator.settings.max_gap)
        return too_slow({name: interval for name, interval in self._gaps.slower_than(longest).items()
                         if name in self.machine.channels}, longest)

    def _log_restart(self, segment: Segment) -> None:
        """A line in the log where the stream starts again: after a pause, or in another time (a bag that loops)."""
        end, self._end = self._end, segment.stamp_ns
        if segment.restart and end is not None:
            missing = (segment.start_ns - end) * 1e-9
            jump = f'time went back {-missing:.3f} s' if missing < 0.0 else f'nothing for {missing:.3f} s'
            self.warnings('restart', f'{jump}: the segments start again')

    def _log_clocks(self) -> None:
        """A line in the log where the clock of an input turns out not to be that of the others, or agrees again."""
        apart = set(self.interpolator.clocks.apart)
        if apart - self._apart:
            self.get_logger().warning(f'{self.interpolator.clocks.words}: what seems silent may be the others')
        self._apart, self._aged = apart, '' if apart else self._ages.words
        if self._aged:
            self.warnings('ages', f'{self._aged}: the values are not of the instants of the others, or come late')

    def _log_missing(self) -> None:
        """A line where samples got lost on the way here: the middleware does not tell."""
        found = self._gaps.recent()
        self._missing = ', '.join(f'{missing} of {missing + seen} samples of {channel} are missing'
                                  for channel, (missing, seen) in sorted(found.items()))
        if found:
            self.warnings('missing', f'{self._missing}: lost on the way, or never sent'
                          + ('' if self.settings.sensor_reliability == 'reliable' else
                             '; sensor_reliability:=reliable asks for what gets lost'))

    def _log_late(self) -> None:
        """A line where commands came after the segments that they belong to: the observer has used those before."""
        late = self.interpolator.late
        new = {command: count - self._told_late.get(command, 0) for command, count in sorted(late.items())}
        self._told_late = late
        self._late = ', '.join(f'{command} came too late for {count} steps' for command, count in new.items() if count)
        if self._late:
            self.warnings('late', f'{self._late}, which had the one before it; a segment waits for command_wait')

    def _log_lost(self) -> None:
        """A line in the log when an input dies or comes back."""
        lost = set(self.interpolator.lost)
        if lost - self._lost:
            self.get_logger().warning(f'silent, ignored until it sends again: {", ".join(sorted(lost - self._lost))}')
        if self._lost - lost:
            self.get_logger().info(f'back: {", ".join(sorted(self._lost - lost))}')
        self._lost = lost


main = InterpolationNode.main


if __name__ == '__main__':
    main()
