# SPDX-License-Identifier: Apache-2.0
"""`mbse calibrate --live`: listens to the sensors of a machine as the nodes do, records them, a bag for each group of
steps, and asks the guide what is wanted. Nothing is published."""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rclpy.qos import QoSProfile
from rclpy.serialization import serialize_message
from rclpy.subscription import Subscription

from ..bags.channel_samples import Sample, TopicReader, topic_readers
from ..bags.topics import TopicMap
from ..bags.writer import BagWriter
from ..calibration.guide import SILENT, Guide
from ..calibration.steps import Advice
from ..errors import SampleError
from ..offline.calibration.live_session import LiveSession
from ..sources.machine import left_over
from .base.foreign_inputs import ForeignInputs, node_sources
from .base.middleware import Participant, Waiting, deep_input
from .messages.wire import message_class, unpacked

LOOK = 0.1      # s between two judgements


class LiveCalibration(Participant):
    """Goes through a ``guide`` and records into the folder of a ``session``; ``sources``: a map, '' for that of the
    machine's file. ``state`` after each ``step``; ``refused``: samples that cannot be used, counted by their error."""

    def __init__(self, guide: Guide, session: LiveSession, sources: str = '', namespace: str = '') -> None:
        super().__init__(f'mbse_calibrate_{os.getpid()}', namespace)
        self.guide, self.session, self.state = guide, session, guide.state
        self.refused: Counter[str] = Counter()
        self._writer: BagWriter | None = None
        self._loaded = False
        self._begun = list(guide.done)
        self._last: float | None = None     # by the computer's clock: of the newest sample
        own = node_sources(sources, guide.machine)
        qos = deep_input('best_effort')
        self._waiting: Waiting[Sample] = Waiting()
        self._inputs = ForeignInputs(self, own, self._waiting, qos, self._take, log=False)
        readers = topic_readers(*left_over(own, guide.machine), TopicMap(), self._refuse)
        for topic, reader in readers.items():
            self.create_subscription(message_class(reader.msgtype), topic, partial(self._take_own, topic, reader), qos,
                                     raw=True)

    def step(self) -> None:
        """Listen for ``LOOK``, and judge."""
        self._inputs.look()
        end = time.monotonic() + LOOK
        while time.monotonic() < end:
            super().step()
        self._advance()

    def finish(self) -> None:
        """Complete the bag: what is done is kept."""
        if self._writer is None:
            return
        self._writer.close()
        if self._writer.count:
            own = [key for key in self.guide.done if key not in self._begun]
            self.session.completed(Path(self._writer.folder), self._loaded, own)
            self._begun = list(self.guide.done)
        self._writer = None

    def close(self) -> None:
        """Complete the bag and leave the graph."""
        self.finish()
        super().close()

    @property
    def notes(self) -> list[str]:
        """What an operator must know beside the advice: faults of the map, samples that were refused, a clock that went
        back."""
        return [*filter(None, [self._inputs.fault]), *self.refused, *(
            ['stamps went back: the clock was set, or a simulation began again; the step begins again']
            * bool(self.guide.set_back))]

    def input(self, kind: type, topic: str, callback: Any, qos: QoSProfile) -> Subscription:
        """What ForeignInputs asks of a node."""
        return self.create_subscription(kind, topic, callback, qos)

    def warnings(self, kind: str, text: str) -> None:
        """The same."""
        self.refused[text] += 1

    def _advance(self) -> None:
        before, self.state = self.guide.step, self.guide.advance()
        if self.guide.step and self._last is not None and time.monotonic() - self._last > SILENT:
            self.state = replace(self.state, advice=Advice('silent'))
        after = self.guide.step
        if after is None or before is None or after.group != before.group:
            self.finish()

    def _take_own(self, topic: str, reader: TopicReader, cdr: bytes) -> None:
        """A message of the package's own topics, serialized."""
        self._write(self.resolve_topic_name(topic), reader.msgtype, cdr)
        try:
            for sample in reader.samples(topic, unpacked(topic, reader.msgtype, cdr)):
                self._sample(sample)
        except SampleError as error:
            self._refuse(error)

    def _take(self, topic: str, message: Any) -> None:
        """A message of a topic of the map."""
        kind = type(message)
        name = f'{kind.__module__.split(".")[0]}/msg/{kind.__name__}'
        self._write(topic, name, serialize_message(message))
        for sample in self._waiting.items(topic, message):
            self._sample(sample)

    def _sample(self, sample: Sample) -> None:
        self._last = time.monotonic()
        self.guide.take(sample.channel, sample.stamp_ns, sample.value)

    def _write(self, topic: str, kind: str, cdr: bytes) -> None:
        """Into the bag of the present group; none before the load is on the machine."""
        step = self.guide.step
        if step is None or self.guide.waits:
            return
        if self._writer is None:
            self._writer, self._loaded = BagWriter(self.session.bag(step.group)), step.load > 0.0
        self._writer.write_cdr(topic, kind, time.time_ns(), cdr)

    def _refuse(self, error: SampleError) -> None:
        self.refused[str(error)] += 1
