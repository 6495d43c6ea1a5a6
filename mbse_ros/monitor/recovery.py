# SPDX-License-Identifier: Apache-2.0
"""When coordinates of a machine start again, by the sensors that alone see them, and when a state has settled."""

from __future__ import annotations

from collections import deque
from math import inf, sqrt

import numpy as np

from ..estimators.hydraulic_observer import HydraulicObserver
from ..machine import Machine
from .channels import LASTING, PATIENCE, ChannelWatch
from .faults import Fault, reason_of

FALLS = 0.9          # of a speed's deviation ``settle_time`` before: it still falls
CUT = 'all samples jumped at once, as where a log was cut: settling after a start', Fault.JUMPED | Fault.SETTLING
STARTS = Fault.JUMPED | Fault.REJECTED | Fault.RESTARTED


class Recovery:
    """Of one observer: ``age``, s, and ``why`` of its last start, as reason and faults."""

    def __init__(self, machine: Machine, observer: HydraulicObserver) -> None:
        self._channels, self._observer, names = machine.channels, observer, observer.names
        self._shown = [names.index(f'velocity/{c}') for c in machine.coordinates if f'position/{c}' in machine.channels]
        self.reset()

    def reset(self) -> None:
        """Nothing has started."""
        self._restarts: deque[float] = deque(maxlen=PATIENCE)       # times, s, of those by refused samples
        self.begin()

    def begin(self, why: str = '', faults: Fault = Fault.SETTLING) -> None:
        """A state starts, or some of its coordinates."""
        self.age, self.why = 0.0, (why or reason_of(Fault.SETTLING), faults)
        self._settled, self._looked = False, (0.0, inf)
        self.due: list[int] = []        # places of channels by which coordinates are to start again

    def judge(self, t: float, start: float, watch: ChannelWatch) -> None:
        """Look for sensors of positions, each alone with its coordinate, all of whose samples have been refused for so
        long, since ``start``, s, that the estimate is what is wrong; not again and again: then it is the sensor."""
        longest = self._observer.settings.lost_after
        if len(self._restarts) == PATIENCE and t - self._restarts[0] < PATIENCE * LASTING * longest:
            return
        refused = watch.refused(t, start, longest)
        self.due = [i for i, name in enumerate(self._channels)
                    if name in refused and name.startswith('position/') and self._alone(i)]

    def _alone(self, place: int) -> bool:
        """Whether the sensor of a position is the only one that sees its coordinate."""
        measured, names = self._observer.model.measured, self._observer.names
        index = measured[place].index
        if index is None:
            return False
        seen = [names.index(f'{kind}/{names[index].partition("/")[2]}')
                for kind in ('position', 'velocity', 'acceleration')]
        return not any(any(item.H[:, i].nnz() for i in seen) if item.index is None else item.index in seen
                       for k, item in enumerate(measured) if k != place)

    def start_again(self, t: float, back: list[int], sample: np.ndarray) -> list[int]:
        """Places of the channels by whose ``sample`` (channels,) coordinates have started again: those ``due``, and
        those that are ``back``. Raises PositionProblemError where the machine cannot be so."""
        places = [i for i in sorted({*back, *self.due}) if sample[i] == sample[i]]
        if places and self.due:
            self._restarts.append(t)
        self.due = []
        if places:
            self._observer.start_again({i: float(sample[i]) for i in places})
            self.begin('jumped or rejected, alone with its coordinate, which starts again by it: '
                       f'{", ".join(self._channels[i] for i in places)}', STARTS)
        return places

    def settled(self, variance: np.ndarray) -> bool:
        """Whether a state with variances (nx,), SI, is known as well as it will be: after ``settle_time``, and once the
        speeds that sensors of positions show are as well known as at a start, or no better any more."""
        settings = self._observer.settings
        if not self._settled and self.age >= settings.settle_time:
            worst, (since, before) = sqrt(max(variance[self._shown].tolist(), default=0.0)), self._looked
            later = self.age - since >= settings.settle_time
            self._settled = worst <= settings.start_velocity or later and worst > FALLS * before
            self._looked = (self.age, worst) if later else (since, before)
        return self._settled and self.age >= settings.settle_time
