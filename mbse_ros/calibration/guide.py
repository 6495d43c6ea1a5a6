# SPDX-License-Identifier: Apache-2.0
"""A calibration that goes on: samples as they come, the step that is wanted now, what is wrong, how much is left.

No clock: times are the stamps of the samples.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from ..filters.hydraulic_state import direct
from .balance import NEEDED, WINDOW, CalibrationBalance, windows_of
from .plan import FAST, PAUSE, Plan
from .steps import KINDS, Advice, PlanStep, StepProgress, least_speeds, seen_in, steps_of

SILENT = 1.0        # s behind the newest sample, from which a channel is missing
SET_BACK = 1.0      # s by which a stamp goes back where a clock was set or a simulation began again
ROOM = 0.05         # s beyond a window, so that all its samples are there


@dataclass(frozen=True)
class GuideState:
    """``number`` of the ``step`` among ``count``, None when all are done; what to do, in ``words`` too; ``progress`` of
    the step and of ``all``, 0 to 1; ``seconds`` that are left; ``pistons`` (c,), m, as seen last, or None."""

    number: int
    count: int
    step: PlanStep | None
    advice: Advice
    progress: float
    all: float
    seconds: float
    pistons: np.ndarray | None

    @property
    def words(self) -> str:
        """What to do."""
        return KINDS[self.advice.kind].format(of=self.advice.of)


class Guide:
    """Through the steps of a ``plan`` but those that are ``done``, by their keys.

    ``take`` each sample of a channel, SI, by its stamp; ``advance`` as often as a state is shown. Before the first step
    with a load it ``waits`` for ``confirm``: motion without the load would be taken for one with it. ``last``: newest
    value of each channel; ``set_back``: how often stamps went back by more than SET_BACK, and the step began again.
    """

    def __init__(self, balance: CalibrationBalance, plan: Plan, done: Collection[str] = ()) -> None:
        self.balance, self.machine = balance, balance.machine
        self.steps = steps_of(plan, self.machine.cylinders)
        self.done = [step.key for step in self.steps if step.key in done]
        self.skipped: list[str] = []
        self.last: dict[str, float] = {}
        self.set_back = 0
        self._confirmed = False
        self._least = least_speeds(balance)
        self._channels = {channel.name for name, channel in direct(self.machine).items() if name.startswith(NEEDED)}
        self._origin: int | None = None
        self._series: dict[str, list[tuple[float, float]]] = {name: [] for name in sorted(self._channels)}
        self._newest = dict.fromkeys(self._series, -np.inf)
        self._pistons: np.ndarray | None = None
        self._progress = self._begun()

    @property
    def step(self) -> PlanStep | None:
        """The one that is wanted now."""
        return None if self._progress is None else self._progress.step

    def take(self, channel: str, stamp_ns: int, value: float) -> None:
        """One sample; of one that is not needed, not a number, or not newer than the last nothing."""
        if channel not in self._channels or not np.isfinite(value):
            return
        stamp_ns -= self.machine.delays.get(channel, 0)
        self._origin = stamp_ns if self._origin is None else self._origin
        t = (stamp_ns - self._origin) * 1e-9
        if t < self._newest[channel] - SET_BACK:        # what was seen before is of another clock
            self._origin, t, self.set_back = stamp_ns, 0.0, self.set_back + 1
            self._newest = dict.fromkeys(self._series, -np.inf)
            self._forget(np.inf)
            self._progress = self._begun()
        if t > self._newest[channel]:
            self._newest[channel], self.last[channel] = t, value
            self._series[channel].append((t, value))

    def advance(self) -> GuideState:
        """Judge what has come, and say what is wanted; a step that is enough gives way to the next."""
        newest = list(self._newest.values())
        start = max((own[0][0] if own else np.inf) for own in self._series.values())
        if min(newest) - start >= WINDOW + ROOM:
            series = {name: tuple(np.array(own).T) for name, own in self._series.items()}
            load = self.step.load if self.step is not None else 0.0
            found = windows_of(self.machine, series)    # type: ignore[arg-type]
            for seen in seen_in(self.balance, found, WINDOW / 2, load):
                self._pistons = seen.pistons
                if self._progress is not None and not self.waits:
                    self._progress.take(seen)
            self._forget(start + WINDOW * int((min(newest) - start) / WINDOW))
        elif max(newest) - min(newest) > SILENT:      # a channel is silent: what is old makes no window any more
            self._forget(max(newest) - 2 * WINDOW)
        if self._progress is not None and self._progress.done:
            self.done.append(self._progress.step.key)
            self._progress = self._begun()
        return self.state

    def skip(self) -> None:
        """Leave the present step out: it is not safe here, or cannot be reached."""
        if self.step is not None:
            self.skipped.append(self.step.key)
            self._progress = self._begun()

    @property
    def waits(self) -> bool:
        """Whether the known load is to be taken, and ``confirm`` to be called."""
        return self.step is not None and self.step.load > 0.0 and not self._confirmed

    def confirm(self) -> None:
        """The known load is on the machine; what came before is forgotten."""
        if self.waits:
            self._confirmed = True
            self._forget(np.inf)

    @property
    def missing(self) -> tuple[str, ...]:
        """Channels without a sample, or silent for a second while others send."""
        newest = max(self._newest.values())
        return tuple(name for name, t in self._newest.items() if not t > newest - SILENT)

    @property
    def state(self) -> GuideState:
        """What is wanted now."""
        current, count = self._progress, len(self.steps)
        if current is None:
            return GuideState(count, count, None, Advice('done'), 1.0, 1.0, 0.0, self._pistons)
        gone = len(self.done) + len(self.skipped)
        missing = self.missing
        advice = (Advice('missing', ', '.join(missing)) if missing else
                  Advice('load', f'{current.step.load:g}') if self.waits else current.advice)
        return GuideState(self.steps.index(current.step) + 1, count, current.step, advice, current.progress,
                          (gone + current.progress) / count, self._left(), self._pistons)

    def _left(self) -> float:
        """Time of the steps that are left, with the ways between their poses, s."""
        left = [step for step in self.steps if step.key not in {*self.done, *self.skipped}]
        stroke = self.machine.stroke[:, 1] - self.machine.stroke[:, 0]
        here, total = left[0].pistons if self._pistons is None else self._pistons, 0.0
        for step in left:
            travel = np.abs(step.pistons - here) / stroke
            total += step.seconds + float(travel.sum()) / FAST + PAUSE * int(np.count_nonzero(travel > 1e-3))
            here = step.pistons
        progress = 0.0 if self._progress is None else self._progress.progress
        return total - left[0].seconds * progress

    def _begun(self) -> StepProgress | None:
        """Of the first step that is left, nothing seen yet."""
        for step in self.steps:
            if step.key not in self.done and step.key not in self.skipped:
                return StepProgress(step, self.machine.cylinders, self.machine.stroke, self._least)
        return None

    def _forget(self, before: float) -> None:
        for name, own in self._series.items():
            self._series[name] = [item for item in own if item[0] >= before]
