# SPDX-License-Identifier: Apache-2.0
"""One difference between a simulated machine and its file, through the whole chain: the mass at the end, how long it
was silently wrong, and whether the bands of the motion hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import Any

import numpy as np

from ..machine import Machine
from ..offline.bag import parse_tuning
from ..simulation.crane import SensorFrame, plant_of
from ..simulation.effects import BEGIN, EFFECTS, SHARE, Effect
from ..simulation.plant import Plant
from ..simulation.sensor_faults import samples_with
from ..streams.pipeline import Output, Pipeline
from .fault_cases import (
    SegmentOutcome,
    frames_of,
    fresh_pipeline,
    machine_of,
    outcome_of,
    outputs_of,
    simulated,
    truth_of,
)

WITHIN = 1.959964       # standard deviations, of a band of 95 %


@dataclass(frozen=True)
class RealityCase:
    """An effect by its name on a machine, ``duration`` in s; ``tuning``: of observer and payload, as ``--set``."""

    machine: str
    effect: str
    valve: str
    seed: int
    duration: float
    tuning: tuple[str, ...] = ()


@dataclass(frozen=True)
class RealityOutcome:
    """The ``row`` of a case, how long the machine ``moved``, s, and what ended the chain early, '' if nothing did."""

    row: dict[str, Any]
    moved: float
    failure: str


def run_reality(case: RealityCase) -> RealityOutcome:
    """Simulate and estimate it."""
    effect = EFFECTS[case.effect]
    machine = effect.filed(machine_of(case.machine, case.valve))
    pipeline = (fresh_pipeline(case.machine, case.valve, case.tuning) if effect.known is None else
                Pipeline(machine, **parse_tuning(case.tuning)))
    frames = frames_with(case.machine, case.effect, case.seed, case.duration)
    samples = samples_with(effect.faulty(machine), machine, frames, BEGIN, case.seed)
    outputs, failure = outputs_of(pipeline, samples)
    if not outputs and not failure:
        failure = 'no estimate'
    truth = truth_of(frames)
    seen = [outcome_of(output, machine, truth) for output in outputs]
    full = machine.payload_data.limits[1]
    error = seen[-1].error if seen else float('nan')
    position, velocity = coverage(machine, frames, [output for output, item in zip(outputs, seen) if item.good])
    return RealityOutcome({
        'machine': case.machine, 'effect': case.effect, 'size': effect.size, 'valve': case.valve, 'seed': case.seed,
        'error_kg': error, 'share_of_full_scale': error / full, 'holds': bool(seen) and held(seen[-1]),
        'seconds_wrong': sum((item.dt for item in seen if item.good and item.wrong), 0.0),
        'seconds_unknown': unknown(seen),
        'coverage_position': position, 'coverage_velocity': velocity}, float(truth.moved[-1]), failure)


def held(last: SegmentOutcome) -> bool:
    """Whether an interval holds the mass; one without an end, or whose limits are not numbers, holds nothing."""
    return isfinite(last.half_width) and not last.outside


def unknown(seen: Sequence[SegmentOutcome]) -> float:
    """Seconds of the motion in which the user has no mass: the observer is not OK, or the payload neither UPDATING nor
    held from before with an interval."""
    found, moved = 0.0, 0.0
    for item in seen:
        known = item.good or item.held and isfinite(item.half_width)
        found, moved = found + (0.0 if known else item.moved - moved), item.moved
    return found


def coverage(machine: Machine, frames: Sequence[SensorFrame], outputs: Sequence[Output]
             ) -> tuple[float | None, float | None]:
    """Shares of outputs whose bands of 95 % hold the true position and velocity, of the worst coordinate; None without
    outputs."""
    if not outputs:
        return None, None
    t = np.array([frame.stamp_ns - frames[0].stamp_ns for frame in frames]) * 1e-9
    at = np.array([output.state.stamp_ns - frames[0].stamp_ns for output in outputs]) * 1e-9
    found = []
    for kind in ('position', 'velocity'):
        places = [outputs[0].state.names.index(f'{kind}/{name}') for name in machine.coordinates]
        mean = np.array([output.state.mean[-1, places] for output in outputs])
        stddev = np.sqrt([np.diag(output.state.covariance)[places] for output in outputs])
        true = np.array([getattr(frame, kind) for frame in frames])
        true = np.column_stack([np.interp(at, t, column) for column in true.T])
        found.append(float((np.abs(mean - true) <= WITHIN * stddev).mean(axis=0).min()))
    return found[0], found[1]


@lru_cache(maxsize=2)
def frames_with(name: str, effect: str, seed: int, duration: float) -> list[SensorFrame]:
    """Samples, as sound sensors give them, and truth of random motions with an effect; the same for all valves."""
    own = EFFECTS[effect]
    if not own.of_plant and own.load == ((0.0, SHARE),):
        return frames_of(name, seed, duration)
    return simulated(own.filed(machine_of(name, 'orifice')), plant_with(name, own), seed, duration, own.load, own.moves)


@lru_cache(maxsize=64)
def _plant(name: str, effect: str) -> Plant:
    own = EFFECTS[effect]
    machine = own.filed(machine_of(name, 'orifice'))
    return plant_of(Machine(own.change(machine.description)) if own.change else machine, physics=own.physics)


def plant_with(name: str, effect: Effect) -> Plant:
    """The simulated machine with an effect, built once."""
    return _plant(name, effect.name if effect.of_plant else 'none')
