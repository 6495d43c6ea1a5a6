# SPDX-License-Identifier: Apache-2.0
"""Machines and simulated runs that the tests of the numerical core share, each built once per process."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from machine_variants import changed, exact_sensors

from mbse_ros.description.basics import Scalar
from mbse_ros.description.load import parse_mechanism
from mbse_ros.description.machine_parts import Friction
from mbse_ros.errors import SampleError
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.machine import Machine, load_machine, with_valves
from mbse_ros.payload.mass import PayloadSettings
from mbse_ros.simulation.crane import SensorFrame, SimulatedCrane
from mbse_ros.simulation.cycle import WorkCycle, lift_hold_lower
from mbse_ros.simulation.plant import Plant
from mbse_ros.streams.pipeline import Output, Pipeline

TWO_CYLINDERS = (Path(__file__).parent / 'two_cylinders.yaml').read_text()
VALVES = ('orifice', 'unknown')


@cache
def crane(valve: str = 'orifice') -> Machine:
    """The default machine with a valve model."""
    return load_machine('patu655_lift', valve)


@cache
def exact_crane(valve: str = 'orifice') -> Machine:
    """The default machine whose file calls its sensors exact."""
    return Machine(with_valves(changed('patu655_lift', exact_sensors('patu655_lift')).description, valve))


def kinematic(**changes: float | str) -> ObserverSettings:
    """Tuning of the paper's observer, of the motion alone."""
    return ObserverSettings(weighing='apart', **changes)


@cache
def two_cylinders(valve: str = 'orifice') -> Machine:
    """A boom and a jib, each with its own cylinder and valve."""
    return Machine(with_valves(parse_mechanism(TWO_CYLINDERS, 'two_cylinders.yaml'), valve))


@cache
def plant() -> Plant:
    """Plant of the default machine."""
    return Plant(crane())


@dataclass(frozen=True)
class Run:
    """A simulated run through the pipeline; ``moved`` is how long the piston had moved, s, at each output."""

    frames: list[SensorFrame]
    outputs: list[Output]
    moved: np.ndarray

    @property
    def masses(self) -> np.ndarray:
        """Mass after each output, kg."""
        return np.array([o.payload.mass for o in self.outputs])

    def truth(self, name: str) -> np.ndarray:
        """A field of the truth at the stamps of the outputs."""
        by_stamp = {f.stamp_ns: f for f in self.frames}
        return np.array([getattr(by_stamp[o.state.stamp_ns], name) for o in self.outputs])


def feed(pipeline: Pipeline, frames: list[SensorFrame]) -> list[Output]:
    """Outputs of all samples of some frames; unusable samples are left out."""
    outputs: list[Output] = []
    for frame in frames:
        for channel, value in (*frame.samples.items(), *frame.commands.items()):
            try:
                outputs.extend(pipeline.add(channel, frame.stamp_ns, value))
            except SampleError:
                continue
    return outputs


def simulate(payload: float, seed: int, cycle: WorkCycle | None = None,
             parameters: np.ndarray | None = None) -> list[SensorFrame]:
    """Frames of a whole cycle of the default machine."""
    return SimulatedCrane(crane(), payload, seed, cycle, parameters=parameters, plant=plant()).run()


def estimate(valve: str, frames: list[SensorFrame], observer: ObserverSettings = ObserverSettings(),
             payload: PayloadSettings = PayloadSettings(), machine: Machine | None = None, segment: float = 0.0) -> Run:
    """Frames through a fresh pipeline of a machine, of the default one where none is given."""
    outputs = feed(Pipeline(machine or crane(valve), observer=observer, payload=payload, segment=segment), frames)
    times = {f.stamp_ns: t for f, t in zip(frames, np.cumsum([0.01 * (abs(f.velocity[0]) > 0.01) for f in frames]))}
    return Run(frames, outputs, np.array([times[o.state.stamp_ns] for o in outputs]))


@cache
def work_cycle(payload: float = 50.0, seed: int = 1, ramp: float = 0.2) -> list[SensorFrame]:
    """Frames of the work cycle: lift, hold, lower at three speeds."""
    return simulate(payload, seed, lift_hold_lower(ramp))


@cache
def cycle_run(valve: str, payload: float = 50.0, seed: int = 1, ramp: float = 0.2) -> Run:
    """The work cycle with the default settings."""
    return estimate(valve, work_cycle(payload, seed, ramp))


def frictionless(machine: Machine, viscous: float = 0.0) -> Machine:
    """The same machine with viscous friction, N s/m, in its cylinders and no other."""
    none = Friction(*(Scalar(v) for v in (0.0, 0.0, 5e-3, viscous, 0.0, 0.0, 1.0)))
    d = machine.description
    return Machine(replace(d, cylinders={n: replace(c, friction=none) for n, c in d.cylinders.items()}))
