# SPDX-License-Identifier: Apache-2.0
"""The whole chain without ROS: samples in, payload masses out, by the same objects that the nodes drive.

Of a log segments of single sensor periods are joined to longer ones first: less to do, where delay does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from ..errors import SampleError, SettingError
from ..filters.observer_settings import ObserverSettings
from ..machine import Machine
from ..payload.mass import PayloadSettings
from .interpolation import InterpolationSettings, Interpolator
from .records import PayloadEstimate, Segment, StateEstimate
from .regular import SegmentBlock
from .stages import ObserverStage, payload_stage

LONGEST = 10.0      # s, of a joined segment


class Merger:
    """Joins segments that follow each other on one grid until they last ``duration_ns``.

    The states at all steps stay what they are, bit for bit; there are fewer covariances, innovations and masses. Of
    samples that are 15 ms and more apart, which are taken in parts, the errors of the lines between them are those of
    the whole joined segment: at 20 Hz, positions differ by up to 0.1 mm.
    A restart, a hole, another step or another sharing of samples begins a new one; a segment in which a sample is
    missing stays alone, since it is judged as a whole.
    """

    def __init__(self, duration_ns: int) -> None:
        self.duration_ns = duration_ns
        self._waiting: list[Segment] = []

    def add(self, segment: Segment) -> tuple[Segment, ...]:
        """Take a segment; those that are complete come out."""
        whole = isfinite(np.add.reduce(segment.values, axis=None))
        done = self.flush() if self._waiting and not (whole and self._follows(segment)) else ()
        self._waiting.append(segment)
        if not whole or segment.stamp_ns - self._waiting[0].start_ns >= self.duration_ns:
            return (*done, *self.flush())
        return done

    def add_block(self, block: SegmentBlock) -> list[Segment]:
        """Take the segments of a block; what comes out is as of one by one."""
        found: list[Segment] = []
        bounds, first = block.bounds, 0
        changes = np.flatnonzero((block.repeats[1:] != block.repeats[:-1]).any(axis=1)) + 1
        for stop in (*changes.tolist(), len(block)):
            while first < stop:
                follows = self._waiting and self._follows(block.joined(first, first + 1))
                begin = self._waiting[0].start_ns if follows else int(bounds[first])
                last = min(max(int(np.searchsorted(bounds, begin + self.duration_ns)), first + 1), stop)
                found.extend(self.add(block.joined(first, last)))
                first = last
        return found

    def flush(self) -> tuple[Segment, ...]:
        """What waits, joined."""
        waiting, self._waiting = self._waiting, []
        if len(waiting) < 2:
            return tuple(waiting)
        return (replace(waiting[0], sequence=waiting[-1].sequence, periods=sum(s.periods for s in waiting),
                        values=np.concatenate([s.values for s in waiting]),
                        command_values=np.concatenate([s.command_values for s in waiting])),)

    def _follows(self, segment: Segment) -> bool:
        last = self._waiting[-1]
        return (not segment.restart and segment.start_ns == last.stamp_ns and segment.step_ns == last.step_ns
                and segment.repeats.tobytes() == last.repeats.tobytes())


@dataclass(frozen=True)
class Output:
    """What one segment became."""

    segment: Segment
    state: StateEstimate
    payload: PayloadEstimate


class Pipeline:
    """Interpolation, observer and payload estimator of one machine in sequence.

    ``segment``, s: join segments until they last so long. 0: one per sensor period, as the nodes do; for a log, 0.1 s
    costs a third. Call ``flush`` at the end then.
    """

    def __init__(self, machine: Machine, interpolation: InterpolationSettings = InterpolationSettings(),
                 observer: ObserverSettings = ObserverSettings(), payload: PayloadSettings = PayloadSettings(),
                 backend: str = 'auto', segment: float = 0.0) -> None:
        if not 0.0 <= segment <= LONGEST:
            raise SettingError('every', segment, f'seconds from 0 to {LONGEST:g}')
        self.machine = machine
        self.interpolator = Interpolator(machine.channels, machine.commands, interpolation, machine.delays)
        self.observer = ObserverStage(machine, observer, backend)
        self.payload = payload_stage(machine, payload, backend)
        self._merger = Merger(round(1e9 * segment)) if segment > 0 else None
        self._inputs = frozenset(machine.channels + machine.commands)

    def add(self, channel: str, stamp_ns: int, value: float, share: float = 1.0) -> tuple[Output, ...]:
        """Take a sample; the segments it completes come out estimated. Commands the machine does not need are ignored.

        Raises SampleError when the sample cannot be used; the next one may come all the same.
        """
        segments = self.segments(channel, stamp_ns, value, share)
        return tuple(self._estimate(segment) for segment in segments) if segments else ()

    def segments(self, channel: str, stamp_ns: int, value: float, share: float = 1.0) -> tuple[Segment, ...]:
        """Take a sample of a channel or command of the machine; the segments it completes, not estimated: for who
        drives the stages himself. Raises SampleError as ``add``."""
        if channel not in self._inputs and channel.startswith('command/'):
            return ()
        segments = self.interpolator.add(channel, stamp_ns, value, share)
        return self._joined(segments) if segments else ()

    def all_segments(self, names: Sequence[str], places: np.ndarray, stamps: np.ndarray, values: np.ndarray,
                     refuse: Callable[[SampleError, int], None]) -> list[Segment]:
        """The same of many samples, as arrays (n,): ``places`` among ``names``, all of channels and commands of the
        machine, stamps, ns, and values, SI; ``refuse`` gets those that cannot be used, with their rows."""
        found: list[Segment] = []
        for item in self.interpolator.add_block(names, places, stamps, values, refuse):
            if isinstance(item, Segment):
                found.extend(self._joined((item,)))
            elif self._merger is not None:
                found.extend(self._merger.add_block(item))
            else:
                found.extend(item.segments())
        return found

    def _joined(self, segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
        if self._merger is None:
            return segments
        return tuple(joined for segment in segments for joined in self._merger.add(segment))

    def last_segments(self) -> tuple[Segment, ...]:
        """What still waits for late samples or to be joined, not estimated."""
        segments = self.interpolator.flush()
        if self._merger is not None:
            joined = [item for segment in segments for item in self._merger.add(segment)]
            segments = (*joined, *self._merger.flush())
        return segments

    def flush(self) -> tuple[Output, ...]:
        """The same, estimated."""
        return tuple(self._estimate(segment) for segment in self.last_segments())

    def _estimate(self, segment: Segment) -> Output:
        state = self.observer.process(segment)
        return Output(segment, state, self.payload.process(state))
