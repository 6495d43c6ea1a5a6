# SPDX-License-Identifier: Apache-2.0
"""The whole chain without ROS: samples in, payload masses out, by the same objects that the nodes drive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import SampleError
from ..estimators.observer_settings import ObserverSettings
from ..machine import Machine
from ..payload.payload_settings import PayloadSettings
from .interpolation import InterpolationSettings, Interpolator
from .merge import Merger
from .records import PayloadEstimate, Segment, StateEstimate
from .stages import ObserverStage
from .unweighed import payload_stage


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
        self.machine = machine
        self.interpolator = Interpolator(machine.channels, machine.commands, interpolation)
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
