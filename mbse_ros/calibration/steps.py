# SPDX-License-Identifier: Apache-2.0
"""The steps of a calibration plan, one motion of one cylinder each, and what judges the motion of a step while it goes
on: by windows of half a second, as the fit has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .balance import STEADY, CalibrationBalance, Windows
from .plan import AROUND, FAST, PAUSE, SLOW, CandidateMotion, Plan

EACH_WAY = 2        # windows that count, out and in, from which a motion around a pose is enough
SWEPT = 0.5         # of the stroke, out and in, that windows of a sweep must cover
NEAR = 0.12         # of the stroke, within which a piston is at its pose
QUICK = 2.0         # times the speed of the plan, from which a motion is too fast
RESTING = 0.2       # of the slowest speed that counts, below which a cylinder rests
POSE, SWEEP, LOADED = 'pose', 'sweep', 'load'


@dataclass(frozen=True)
class PlanStep:
    """Motion of a ``cylinder``, whose place is ``place``, in a ``group`` of steps that share a bag (pose_1, sweep_boom,
    load_1): around the pose ``pistons`` (c,), m, at coordinates ``z`` (g,), which go by ``around`` (g,) to both sides,
    or over the stroke where ``sweeps``; with a ``load``, kg; in about so many ``seconds``."""

    group: str
    cylinder: str
    place: int
    pistons: np.ndarray
    z: np.ndarray
    around: np.ndarray
    load: float
    sweeps: bool
    seconds: float

    @property
    def key(self) -> str:
        """Its name."""
        return f'{self.group}/{self.cylinder}'


class Advice(NamedTuple):
    """What to do now: a ``kind`` of KINDS, and the cylinder or channel that it is of."""

    kind: str
    of: str = ''


KINDS = {
    'wait': 'waiting for samples', 'out': 'move {of} slowly out', 'in': 'move {of} slowly in',
    'go_out': 'bring {of} out to the pose', 'go_in': 'bring {of} in to the pose', 'good': 'good: go on',
    'fast': 'too fast: move {of} slower', 'slow': 'too slow: move {of} faster',
    'hold': 'hold the speed of {of} longer: 1 s or more each way', 'further': 'not enough stroke: move {of} further',
    'load': 'take the known load, {of} kg, and confirm',
    'missing': 'missing: {of}: is the sensor on, its topic there?',
    'silent': 'no samples any more: is the machine on, its bus connected?', 'done': 'done'}


@dataclass(frozen=True)
class Seen:
    """One window at ``t``, s: ``pistons``, ``speeds`` (c,), m and m/s; ``steady`` (c,): whether it counts in the fit
    for a cylinder."""

    t: float
    pistons: np.ndarray
    speeds: np.ndarray
    steady: np.ndarray


def steps_of(plan: Plan, cylinders: Sequence[str]) -> tuple[PlanStep, ...]:
    """All steps of a plan, poses cylinder by cylinder; poses, sweeps, then with the load."""
    around = 6 * AROUND / SLOW + 4 * PAUSE
    found = [step for k, item in enumerate(plan.poses)
             for step in _around(f'{POSE}_{k + 1}', item, cylinders, around)]
    found += [PlanStep(f'{SWEEP}_{item.cylinder}', item.cylinder, cylinders.index(item.cylinder), item.pistons, item.z,
                   0.0 * item.z, 0.0, True, 2 / FAST + 3 * PAUSE) for item in plan.sweeps]
    return (*found, *(step for k, item in enumerate(plan.loaded)
                      for step in _around(f'{LOADED}_{k + 1}', item, cylinders, around)))


def _around(group: str, item: CandidateMotion, cylinders: Sequence[str], seconds: float) -> list[PlanStep]:
    return [PlanStep(group, name, k, item.pistons, item.z, AROUND / SLOW * np.abs(item.speeds[k]), item.load, False,
                 seconds) for k, name in enumerate(cylinders)]


def seen_in(balance: CalibrationBalance, windows: Windows, half: float, load: float) -> list[Seen]:
    """Windows of 2 ``half``, s, as steps are judged by them; those that the mechanism cannot reach are left out."""
    moments, concerns = balance.moments(windows, half, load), balance.found.concerns
    return [Seen(t, pistons, speeds, np.array([counts[row].any() for row in concerns.T]))
            for t, pistons, speeds, counts in zip(moments.t.tolist(), moments.pistons, moments.speeds, moments.counts)]


class StepProgress:
    """Of one step: windows in, ``advice`` and ``progress``, 0 to 1, out; ``stroke`` (c, 2), m; ``least`` (c,), m/s: the
    slowest speed that counts."""

    def __init__(self, step: PlanStep, cylinders: Sequence[str], stroke: np.ndarray, least: np.ndarray) -> None:
        self.step, self._cylinders = step, cylinders
        self._length, self._least = stroke[:, 1] - stroke[:, 0], least
        self._out: list[float] = []
        self._in: list[float] = []
        self._last: Seen | None = None

    @property
    def progress(self) -> float:
        """0 to 1."""
        ways = self._out, self._in
        if self.step.sweeps:
            wanted = SWEPT * float(self._length[self.step.place])
            return sum(min(1.0, float(np.ptp(way)) / wanted) if way else 0.0 for way in ways) / 2
        return sum(min(len(way), EACH_WAY) for way in ways) / (2 * EACH_WAY)

    @property
    def done(self) -> bool:
        """Whether the motion is enough."""
        return self.progress >= 1.0

    def take(self, seen: Seen) -> None:
        """One window more."""
        self._last = seen
        own = self.step.place
        if seen.steady[own] and not self._away(seen) and abs(seen.speeds[own]) <= self._fastest:
            (self._out if seen.speeds[own] > 0.0 else self._in).append(float(seen.pistons[own]))

    @property
    def advice(self) -> Advice:
        """What to do now, by the last window."""
        step, seen = self.step, self._last
        if self.done:
            return Advice('done')
        if seen is None:
            return Advice('wait')
        if away := self._away(seen):
            place = self._cylinders.index(away)
            return Advice('go_out' if seen.pistons[place] < step.pistons[place] else 'go_in', away)
        speed = float(seen.speeds[step.place])
        if abs(speed) > self._fastest:
            return Advice('fast', step.cylinder)
        if abs(speed) < RESTING * self._least[step.place]:
            return self._next(seen)
        if abs(speed) < self._least[step.place]:
            return Advice('slow', step.cylinder)
        return Advice('good') if seen.steady[step.place] else Advice('hold', step.cylinder)

    @property
    def _fastest(self) -> float:
        """m/s."""
        return QUICK * (FAST if self.step.sweeps else SLOW) * float(self._length[self.step.place])

    def _next(self, seen: Seen) -> Advice:
        """Of a cylinder that rests: the way that lacks more; of a sweep one that ended early is to go further."""
        name, (out, into) = self.step.cylinder, (self._share(way) for way in (self._out, self._in))
        if self.step.sweeps and (0.0 < out < 1.0 or 0.0 < into < 1.0):
            return Advice('further', name)
        return Advice('out' if out <= into and out < 1.0 else 'in', name)

    def _share(self, way: list[float]) -> float:
        if not self.step.sweeps:
            return min(len(way), EACH_WAY) / EACH_WAY
        return float(np.ptp(way)) / (SWEPT * float(self._length[self.step.place])) if way else 0.0

    def _away(self, seen: Seen) -> str:
        """The cylinder that is farthest from the pose, '' where none is; a sweep begins anywhere of its own stroke."""
        off = np.abs(seen.pistons - self.step.pistons) / self._length
        if self.step.sweeps:
            off[self.step.place] = 0.0
        return self._cylinders[int(np.argmax(off))] if off.max() > NEAR else ''


def least_speeds(balance: CalibrationBalance) -> np.ndarray:
    """Slowest speeds (c,), m/s, that count in the fit."""
    return STEADY * np.array([cylinder.friction.transition_velocity.value
                              for cylinder in balance.machine.description.cylinders.values()])
