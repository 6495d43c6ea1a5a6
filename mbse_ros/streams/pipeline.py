# SPDX-License-Identifier: Apache-2.0
"""The whole chain without ROS: samples in, payload masses out, by the same objects that the nodes drive."""

from __future__ import annotations

from dataclasses import dataclass

from ..estimators.settings import ObserverSettings
from ..machine import Machine
from ..payload.settings import PayloadSettings
from .interpolation import InterpolationSettings, Interpolator
from .records import PayloadEstimate, Segment, StateEstimate
from .stages import ObserverStage, PayloadStage


@dataclass(frozen=True)
class Output:
    """What one segment became."""

    segment: Segment
    state: StateEstimate
    payload: PayloadEstimate


class Pipeline:
    """Interpolation, observer and payload estimator of one machine in sequence."""

    def __init__(self, machine: Machine, interpolation: InterpolationSettings = InterpolationSettings(),
                 observer: ObserverSettings = ObserverSettings(), payload: PayloadSettings = PayloadSettings(),
                 backend: str = 'auto') -> None:
        self.machine = machine
        self.interpolator = Interpolator(machine.channels, machine.commands, interpolation)
        self.observer = ObserverStage(machine, observer, backend)
        self.payload = PayloadStage(machine, payload, backend)
        self._inputs = frozenset(machine.channels + machine.commands)

    def add(self, channel: str, stamp_ns: int, value: float) -> tuple[Output, ...]:
        """Take a sample; the segments it completes come out estimated. Commands the machine does not need are ignored.

        Raises SampleError when the sample cannot be used; the next one may come all the same.
        """
        if channel not in self._inputs and channel.startswith('command/'):
            return ()
        segments = self.interpolator.add(channel, stamp_ns, value)
        return tuple(self._estimate(segment) for segment in segments)

    def _estimate(self, segment: Segment) -> Output:
        state = self.observer.process(segment)
        return Output(segment, state, self.payload.process(state))
