# SPDX-License-Identifier: Apache-2.0
"""One fault of one sensor of a simulated machine, through the whole chain, and what a user would have seen."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isfinite
from typing import Any

import numpy as np

from ..errors import MbseError, SampleError
from ..machine import Machine, load_machine
from ..monitor.faults import Fault
from ..offline.bag import parse_tuning
from ..simulation.crane import SensorFrame, SimulatedCrane, plant_of
from ..simulation.cycle import Move, random_cycle
from ..simulation.effects import SHARE
from ..simulation.plant import Plant
from ..simulation.sensor_faults import FAULTS, faulty_samples, pair_of
from ..streams.interpolation import Interpolator
from ..streams.pipeline import Output, Pipeline
from ..streams.records import ObserverStatus, PayloadStatus

TWICE = 2.0         # half-widths, outside of which a mass is wrong
MOVING = 0.006      # m/s or rad/s of a coordinate, from which the machine moves
APART = 1.0         # s between two alarms that count as two
ALARMS = PayloadStatus.IMPLAUSIBLE, PayloadStatus.CHANGING
HELD = (PayloadStatus.TOO_SLOW, PayloadStatus.NOT_OBSERVABLE, PayloadStatus.OUTSIDE_STROKE, PayloadStatus.ACCELERATING)
NAMES = re.compile(r'\w+/\w+(?:\.[xyz])?')        # of channels, in a reason


@dataclass(frozen=True)
class FaultCase:
    """A fault by its name ('' for none) of a sensor from ``begin`` on, in a run of ``duration``, both s."""

    machine: str
    valve: str
    seed: int
    fault: str
    sensor: str
    begin: float
    duration: float


@dataclass(frozen=True)
class SegmentOutcome:
    """What came out over one segment: ``t``, s, at its end, ``dt``, its length, ``moved``, s in which the machine moved
    until then; error and half-width of the mass, kg.

    ``alarm``: the user is reported that something is wrong; ``blamed``: channels that a reason names.
    """

    t: float
    dt: float
    moved: float
    error: float
    half_width: float
    good: bool
    held: bool
    alarm: bool
    blamed: frozenset[str]
    reason: str

    @property
    def outside(self) -> bool:
        """The true mass is outside the interval."""
        return isfinite(self.half_width) and abs(self.error) > self.half_width

    @property
    def wrong(self) -> bool:
        """The true mass is outside twice the interval; a mass that is not known is not wrong."""
        return isfinite(self.half_width) and abs(self.error) > TWICE * self.half_width


@dataclass(frozen=True)
class MassTruth:
    """Of a run from ``first_ns`` on: times (k,), s, the mass (k,), kg, and the s (k,) of motion so far."""

    first_ns: int
    t: np.ndarray
    mass: np.ndarray
    moved: np.ndarray


def run_case(case: FaultCase) -> dict[str, Any]:
    """The row of a case; an error of our own that ends the chain is its ``failure``."""
    if not case.fault:
        return clean_row(case, *clean_run(case.machine, case.valve, case.seed, case.duration))
    machine, frames = machine_of(case.machine, case.valve), frames_of(case.machine, case.seed, case.duration)
    samples = faulty_samples(FAULTS[case.fault], case.sensor, machine, frames, case.begin, case.seed)
    seen, failure = outcomes_of(case.machine, case.valve, frames, samples)
    if not seen and not failure:
        waiting = _pipeline(case.machine, case.valve, ()).interpolator.waiting_for
        failure = f'no estimate: nothing was received of {", ".join(waiting)}'
    return faulty_row(case, seen, clean_run(case.machine, case.valve, case.seed, case.duration)[0], failure)


@lru_cache(maxsize=2)
def clean_run(name: str, valve: str, seed: int, duration: float) -> tuple[list[SegmentOutcome], str]:
    """The same motion with sound sensors."""
    frames = frames_of(name, seed, duration)
    samples = [(frame.stamp_ns, channel, value) for frame in frames
               for channel, value in (*frame.commands.items(), *frame.samples.items())]
    return outcomes_of(name, valve, frames, samples)


def outcomes_of(name: str, valve: str, frames: Sequence[SensorFrame], samples: Iterable[tuple[int, str, float]]
                ) -> tuple[list[SegmentOutcome], str]:
    """What comes out of the chain for samples, and why it ended early, '' if it did not."""
    outputs, failure = outputs_of(fresh_pipeline(name, valve), samples)
    truth = truth_of(frames)
    return [outcome_of(output, machine_of(name, valve), truth) for output in outputs], failure


def truth_of(frames: Sequence[SensorFrame]) -> MassTruth:
    """Mass and motion along the frames of a run."""
    t = np.array([(frame.stamp_ns - frames[0].stamp_ns) * 1e-9 for frame in frames])
    moving = [np.abs(frame.velocity).max() > MOVING for frame in frames]
    return MassTruth(frames[0].stamp_ns, t, np.array([frame.payload for frame in frames]),
                     np.cumsum(moving * np.diff(t, prepend=0.0)))


def outputs_of(pipeline: Pipeline, samples: Iterable[tuple[int, str, float]]) -> tuple[list[Output], str]:
    """Samples through the chain; those that it refuses are left out, as the nodes do."""
    found: list[Output] = []
    for stamp, channel, value in samples:
        try:
            found += pipeline.add(channel, stamp, value)
        except SampleError:
            continue
        except MbseError as error:
            return found, f'{type(error).__name__}: {error}'
    return found, ''


def outcome_of(output: Output, machine: Machine, truth: MassTruth) -> SegmentOutcome:
    """One output against the true mass."""
    state, payload = output.state, output.payload
    t, reason = (payload.stamp_ns - truth.first_ns) * 1e-9, f'{state.reason}; {payload.reason}'
    blamed = frozenset(NAMES.findall(reason)) & frozenset(machine.channels)
    starting = state.status is ObserverStatus.STARTING or Fault.FIRST_MASS in payload.faults
    unwell = state.status in (ObserverStatus.COASTING, ObserverStatus.LOST)
    alarm = (unwell or bool(blamed)
             or payload.status in (*ALARMS, PayloadStatus.NO_DATA) and not starting)
    fine = state.status is ObserverStatus.OK
    return SegmentOutcome(t, len(output.segment.values) * output.segment.step_ns * 1e-9,
                          float(np.interp(t, truth.t, truth.moved)),
                          payload.mass - float(np.interp(t, truth.t, truth.mass)),
                          0.5 * (payload.upper - payload.lower), fine and payload.status is PayloadStatus.UPDATING,
                          fine and payload.status in HELD, alarm, blamed, reason.strip('; '))


def faulty_row(case: FaultCase, seen: Sequence[SegmentOutcome], clean: Sequence[SegmentOutcome],
               failure: str = '') -> dict[str, Any]:
    """Figures of a run with a fault, of the time since it began.

    It is detected where an alarm is raised, or a sensor named, that the ``clean`` run does not have at that instant, or
    at once where the chain gives nothing.
    ``isolated``: the first reason that names sensors names the right one. ``seconds_wrong_while_held``: of a mass that
    no longer updates because nothing moves, without a message about a fault.
    """
    machine, fault = machine_of(case.machine, case.valve), FAULTS[case.fault]
    begin = 0.0 if fault.whole else case.begin
    faulty = set() if fault.bus else set(pair_of(machine, case.sensor)) if fault.cylinder else {case.sensor}
    after, usual = [item for item in seen if item.t > begin], Usual(clean)
    moved = next((item.moved for item in reversed(seen) if item.t <= begin), 0.0)
    reported = next((item for item in after if item.alarm and (usual.blamed(item) or not usual.alarm(item))), None)
    blamed = next((names for names in map(usual.blamed, after) if names), frozenset())
    return {'machine': case.machine, 'fault': case.fault, 'sensor': case.sensor, 'seed': case.seed,
            'valve': case.valve, 'begin_s': begin,
            'detected_s': reported.t - begin if reported else None if seen else 0.0,
            'isolated': bool(blamed & faulty),
            'detected_after_motion_s': reported.moved - moved if reported else None if seen else 0.0, **errors(after),
            'seconds_wrong_while_held': sum(item.dt for item in after if item.held and item.wrong),
            'blamed': sorted(blamed), 'faulty': sorted(faulty), 'reason': reported.reason if reported else '',
            'failure': failure}


class Usual:
    """What the clean run says at an instant."""

    def __init__(self, clean: Sequence[SegmentOutcome]) -> None:
        self._clean, self._t = clean, [item.t for item in clean]

    def alarm(self, item: SegmentOutcome) -> bool:
        """Whether it raises an alarm then."""
        near = self._at(item)
        return near is not None and near.alarm

    def blamed(self, item: SegmentOutcome) -> frozenset[str]:
        """Channels that are named, and not in the clean run too."""
        near = self._at(item)
        return item.blamed - (near.blamed if near else frozenset())

    def _at(self, item: SegmentOutcome) -> SegmentOutcome | None:
        place = bisect_left(self._t, item.t - 1e-6)
        return self._clean[min(place, len(self._clean) - 1)] if self._clean else None


def clean_row(case: FaultCase, seen: Sequence[SegmentOutcome], failure: str = '') -> dict[str, Any]:
    """Figures of a run without a fault: every alarm is a false one."""
    alarms = [item for item in seen if item.alarm]
    begun = [item for item, before in zip(alarms, [None, *alarms]) if before is None or item.t - before.t > APART]
    return {'machine': case.machine, 'valve': case.valve, 'seed': case.seed, 'duration_s': case.duration,
            'false_alarms': len(begun), 'seconds_of_alarm': sum(item.dt for item in alarms), **errors(seen),
            'reasons': list(dict.fromkeys(item.reason for item in begun)), 'failure': failure}


def errors(seen: Sequence[SegmentOutcome]) -> dict[str, float]:
    """Worst error of the mass while the status is good, over its half-width and in kg, how long it was wrong, and the
    longest spell outside its interval."""
    good = [item for item in seen if item.good and isfinite(item.half_width) and item.half_width > 0]
    worst = max(good, key=lambda item: abs(item.error) / item.half_width, default=None)
    return {'worst_error_over_half_width_while_ok': abs(worst.error) / worst.half_width if worst else 0.0,
            'worst_error_kg': worst.error if worst else 0.0, 'half_width_kg': worst.half_width if worst else 0.0,
            'seconds_wrong_while_ok': sum(item.dt for item in good if item.wrong),
            'longest_outside_while_ok_s': longest(seen),
            'seconds_ok': sum(item.dt for item in good)}


def longest(seen: Sequence[SegmentOutcome]) -> float:
    """Longest time without a break, s, in which the status is good and the mass outside its interval."""
    most = spell = 0.0
    for item in seen:
        spell = spell + item.dt if item.good and item.outside else 0.0
        most = max(most, spell)
    return most


@lru_cache(maxsize=4)
def machine_of(name: str, valve: str | None = None) -> Machine:
    """A machine with a kind of valve."""
    return load_machine(name, valve)


@lru_cache(maxsize=1)
def _plant(name: str) -> Plant:
    return plant_of(machine_of(name, 'orifice'))


@lru_cache(maxsize=2)
def frames_of(name: str, seed: int, duration: float) -> list[SensorFrame]:
    """Samples and truth of random motions of all cylinders; the same for all valves and faults."""
    return simulated(machine_of(name, 'orifice'), _plant(name), seed, duration)


def simulated(machine: Machine, plant: Plant, seed: int, duration: float,
              load: Sequence[tuple[float, float]] = ((0.0, SHARE),), moves: tuple[Move, ...] = ()) -> list[SensorFrame]:
    """Such a run with any plant of a machine; ``load``: times, s, and shares of the largest payload, linear between;
    ``moves`` of the first valve."""
    drives = [c for k, c in enumerate(machine.coordinates) if k not in machine.actuated]
    cycle = random_cycle(np.random.default_rng([seed, 1]), duration, machine.valves[1:], drives)
    cycle = replace(cycle, load=tuple(load), moves=moves or cycle.moves, timed=bool(moves))
    crane = SimulatedCrane(machine, machine.payload_data.limits[1], seed, cycle, plant=plant)
    return list(crane.advance(round(duration * 1e9)))


@lru_cache(maxsize=2)
def _pipeline(name: str, valve: str, tuning: tuple[str, ...]) -> Pipeline:
    return Pipeline(machine_of(name, valve), **parse_tuning(tuning))


def fresh_pipeline(name: str, valve: str, tuning: tuple[str, ...] = ()) -> Pipeline:
    """The chain of a machine as after its start, with settings as of ``--set``; to build it again costs more than a
    run."""
    pipeline = _pipeline(name, valve, tuning)
    pipeline.interpolator = Interpolator(pipeline.machine.channels, pipeline.machine.commands,
                                         parse_tuning(tuning)['interpolation'], pipeline.machine.delays)
    pipeline.observer.reset()
    pipeline.payload.reset()
    return pipeline
