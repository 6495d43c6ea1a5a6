# SPDX-License-Identifier: Apache-2.0
"""Ticks of a simulated machine, some with faults, and what the Python pipeline gives for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import DescriptionError, SettingError
from ..filters.hydraulic_observer import HydraulicObserver
from ..filters.hydraulic_state import variances
from ..settings import setting
from ..simulation.work import frame_count, working_machine
from ..streams.interpolation import InterpolationSettings
from ..streams.pipeline import Output, Pipeline
from ..streams.records import ObserverStatus, PayloadStatus
from .tables import ALMOST, LONGEST_TICK, EstimatorSetup, started

ENOUGH = 60             # ticks with a mass, from which on faults begin
AFTER = 60              # ticks from there on
MOST = 3_000            # ticks at all
FAULTS = {5: np.nan, 20: 300.0, 21: 300.0}      # by the tick from there on: what the last channel is off, in its noise
STATUS = {PayloadStatus.UPDATING: 0, PayloadStatus.NO_DATA: 1, PayloadStatus.TOO_SLOW: 2,
          PayloadStatus.NOT_OBSERVABLE: 3, PayloadStatus.OUTSIDE_STROKE: 4, PayloadStatus.ACCELERATING: 5,
          PayloadStatus.IMPLAUSIBLE: 6, PayloadStatus.CHANGING: 9, PayloadStatus.CONTACT: 10}
WAITING = 8
OBSERVER = {ObserverStatus.OK: 0, ObserverStatus.STARTING: 1, ObserverStatus.COASTING: 2, ObserverStatus.LOST: 3}

Tick = tuple[np.ndarray, np.ndarray | list[float]]      # samples, commands
Told = tuple[tuple[int, int], np.ndarray]       # see PythonEstimator.step


@dataclass(frozen=True)
class Recorded:
    """Ticks: ``samples`` (n, channels), ``commands`` (n, valves); ``status`` (n, 2) of observer and mass; ``expected``
    (n, 3 + g): mass, its interval, positions; NaN before the first."""

    samples: np.ndarray
    commands: np.ndarray
    status: np.ndarray
    expected: np.ndarray


def record(of: EstimatorSetup, backend: str = 'vm') -> Recorded:
    """A simulated work cycle, until the mass has been known for a while; then a sample is missing, and two are far off.
    A machine whose file cannot be simulated, since it says nothing of its valves, stands still: no mass.

    Raises SettingError where no mass comes of a cycle.
    """
    machine, reference = of.machine, PythonEstimator(of, backend)
    try:
        crane = working_machine(machine, rate=of.rate)
    except DescriptionError:
        return _collected([(row, np.zeros(len(machine.commands))) for row in _standing(of)], reference)
    rows, told, updated, since = [], [], 0, 0
    for _ in range(min(frame_count(crane), MOST)):
        frame = crane.frame()
        sample = np.array([frame.samples[name] for name in machine.channels])
        since += updated >= ENOUGH
        if since in FAULTS:
            sample[-1] += FAULTS[since] * machine.all_channels[-1].sensor.noise
        rows.append((sample, [frame.commands[name] for name in machine.commands]))
        told.append(reference.step(*rows[-1]))
        updated += told[-1][0][1] == 0
        if since >= AFTER:
            break
    if not updated:
        raise SettingError('machine', machine.name, 'a machine whose simulated cycle lets its payload be weighed')
    return _collected(rows, reference, told)


def _collected(rows: Sequence[Tick], reference: PythonEstimator, told: Sequence[Told] = ()) -> Recorded:
    """Ticks with what comes of them."""
    samples, commands = zip(*rows)
    told = told or [reference.step(*row) for row in rows]
    return Recorded(np.array(samples), np.array(commands).reshape(len(rows), -1), *map(np.array, zip(*told)))


def _standing(of: EstimatorSetup) -> np.ndarray:
    """Samples (n, channels) amid all ranges with the sensors' noise; what measures no entry of the state is missing."""
    observer = HydraulicObserver(of.machine, of.observer, 'vm')
    _, state, _ = started(of, observer)
    middle = [np.nan if item.index is None else item.gain * (state[item.index] - item.zero) + item.offset
              for item in observer.model.measured]
    noise = np.random.default_rng(1).standard_normal((AFTER, len(middle)))
    return np.array(middle) + noise * np.sqrt(variances(of.machine))


@dataclass(frozen=True)
class TickSettings(InterpolationSettings):
    """The same with steps up to a tick, which an observer of the motion alone may have."""

    step: float = setting(0.001, 'step of the observer', 's', 1e-6, LONGEST_TICK + ALMOST)


class PythonEstimator:
    """The pipeline, tick by tick, as the C has it; ``output``: what the last tick became, None where nothing."""

    def __init__(self, of: EstimatorSetup, backend: str = 'vm') -> None:
        self._machine, self._rate, self._samples, self._ticks = of.machine, of.rate, 0, 0
        self.output: Output | None = None
        self._nothing = np.full(3 + len(of.machine.coordinates), np.nan)
        self.pipeline = Pipeline(of.machine, TickSettings(step=of.step), of.observer, of.payload, backend)

    def pause(self, ticks: int) -> None:
        """No samples for so many ticks."""
        self._ticks += ticks

    def step(self, sample: np.ndarray, command: np.ndarray | Sequence[float]) -> Told:
        """Statuses of observer and mass, and mass, interval and positions, after samples and commands of one instant;
        where only a share of the guard time has passed the mass is WAITING."""
        self._ticks += 1
        stamp = round(self._ticks * 1e9 / self._rate)
        outputs: list[Output] = []
        self.output = None
        for name, value in zip((*self._machine.commands, *self._machine.channels), (*command, *sample)):
            outputs += self.pipeline.add(name, stamp, float(value))
        if not outputs:
            return (3, 1), self._nothing
        self.output = outputs[-1]
        state, payload = self.output.state, self.output.payload
        status = STATUS[payload.status]
        if status == 0 and payload.samples == self._samples:
            status = WAITING
        self._samples = payload.samples
        positions = state.mean[-1, :len(self._machine.coordinates)]
        return (OBSERVER[state.status], status), np.array([payload.mass, payload.lower, payload.upper, *positions])
