# SPDX-License-Identifier: Apache-2.0
"""Which command each step of the observer had, out of the segments that a bag recorded: one that came late live counted
from a later step on, and in the bag it has its place."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..errors import SampleError
from ..streams.records import Segment
from .bag import Bag, decode
from .messages import segment_record
from .topics import SEGMENT, TopicMap

MEMORY_NS = 10_000_000_000      # a command that comes later than this is another one


class StepCommands(NamedTuple):
    """Commands (n, k) of the steps at ``first`` + i ``step``, ns."""

    first: int
    step: int
    commands: np.ndarray

    @property
    def last(self) -> int:
        """Instant of the last step, ns."""
        return self.first + (len(self.commands) - 1) * self.step


class RecordedCommands:
    """Puts the recorded commands ``names`` into segments that come in the order of the bag.

    ``take`` the samples before them. A step keeps its own command where the record has none, or one that is not among
    the samples of the last ``MEMORY_NS``: the record of another map of sources. ``recorded``: whether there is a
    record; ``changed``: steps that got another command; ``foreign``: those whose record was ignored.
    """

    def __init__(self, bag: Bag, names: Sequence[str], namespace: str) -> None:
        topics, self._names = TopicMap(), tuple(names)
        topic = topics.absolute(topics.segment, namespace)
        there = bool(names) and bag.topics.get(topic) == SEGMENT
        self._rest = self._steps(bag, topic) if there else iter(())     # read by the thread that asks first
        self._next: StepCommands | None = None
        self._begun = False
        self._held: deque[StepCommands] = deque()
        self._sent: dict[str, deque[tuple[int, np.ndarray]]] = {name: deque() for name in names}
        self._end: int | None = None        # of the segment before, ns
        self.changed = self.foreign = 0
        self.recorded = False

    def take(self, names: Sequence[str], places: np.ndarray, stamps: np.ndarray, values: np.ndarray) -> None:
        """Samples (n,) of the bag: ``places`` among ``names``, stamps, ns, and values, SI."""
        for name, sent in self._sent.items():
            own = places == names.index(name) if name in names else np.zeros(0, dtype=bool)
            if own.any():
                sent.append((int(stamps[own][-1]), values[own]))

    def of(self, segment: Segment) -> Segment:
        """The segment with the commands that were used."""
        if not self._begun:
            self._begun, self._next = True, next(self._rest, None)
        if self._next is None and not self._held:
            return segment
        start, end = segment.start_ns + segment.step_ns, segment.stamp_ns
        if self._end is not None and start < self._end:        # the clock went back
            self._held.clear()
        self._end = end
        while self._next is not None and self._next.first <= end and (
                not self._held or self._next.first > self._held[-1].first):
            self._held.append(self._next)
            self._next = next(self._rest, None)
        while self._held and self._held[0].last < start:
            self._held.popleft()
        own = segment.command_values
        for sent in self._sent.values():
            while len(sent) > 1 and sent[0][0] < end - MEMORY_NS:
                sent.popleft()
        used = self._used(segment, start, end)
        self.recorded |= used is not None
        if used is None or np.array_equal(used, own):
            return segment
        return replace(segment, command_values=self._checked(used, own))

    def _used(self, segment: Segment, start: int, end: int) -> np.ndarray | None:
        """Recorded commands (n, k) of the steps, their own where there is no record."""
        used = None
        for steps in self._held:
            if steps.first > end:
                break
            instants = steps.first + steps.step * np.arange(len(steps.commands))
            rows, rest = np.divmod(instants - start, segment.step_ns)
            inside = (rest == 0) & (rows >= 0) & (rows < len(segment.values))
            if inside.any():
                used = segment.command_values.copy() if used is None else used
                used[rows[inside]] = steps.commands[inside]
        return used

    def _checked(self, used: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Commands (n, k) that were used, where a topic has sent them."""
        known = [np.concatenate([values for _, values in self._sent[name]] or [own[:, k]])
                 for k, name in enumerate(self._names)]
        sent = np.column_stack([np.isin(column, known[k]) for k, column in enumerate(used.T)])
        differs = used != own
        self.foreign += int((differs & ~sent).any(axis=1).sum())
        self.changed += int((differs & sent).any(axis=1).sum())
        return np.where(sent, used, own)

    def _steps(self, bag: Bag, topic: str) -> Iterator[StepCommands]:
        """Commands of the recorded segments; one that cannot be read has none."""
        names: tuple[str, ...] = ()
        lengths: dict[int, int] = {}        # bytes of messages with ``names``, to their steps
        order: list[int] = []
        for raw in bag.messages([topic]):
            steps = quick_steps(raw.data, len(names), lengths[len(raw.data)]) if len(raw.data) in lengths else None
            if steps is None:
                try:
                    record = segment_record(decode(raw))
                except SampleError:
                    continue
                if record.commands != names:
                    names, lengths = record.commands, {}
                    order = [names.index(name) for name in self._names] if set(self._names) <= set(names) else []
                lengths[len(raw.data)] = len(record.command_values)
                steps = StepCommands(record.start_ns + record.step_ns, record.step_ns, record.command_values)
            if order and len(steps.commands):
                yield steps._replace(commands=steps.commands[:, order])


def quick_steps(cdr: bytes, count: int, expected: int) -> StepCommands | None:
    """The same of a serialized segment with ``count`` commands, the last of its fields, without unpacking the others;
    None where it has not as many steps as another one of the same length."""
    order = '<' if cdr[1] & 1 else '>'
    place = 12
    try:
        for _ in range(2):          # frame and machine
            place = 4 + place + struct.unpack_from(order + 'I', cdr, place)[0]
            place = -(-place // 4) * 4
        place = 4 + -(-place // 8) * 8      # behind the sequence; aligned after the 4 bytes of the encapsulation
        start, step, steps = struct.unpack_from(order + 'qII', cdr, place)
    except struct.error:
        return None
    first = len(cdr) - 8 * steps * count
    if steps != expected or first <= place:
        return None
    commands = np.frombuffer(cdr, order + 'f8', steps * count, first).astype(float).reshape(steps, count)
    return StepCommands(start + step, step, commands)
