# SPDX-License-Identifier: Apache-2.0
"""Short simulated logs of the four machines, each made once per process, and their samples with a fault."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from mbse_ros.machine import Machine, load_machine
from mbse_ros.offline.checks.plausibility import Verdict, judged
from mbse_ros.offline.log_samples import LogSamples
from mbse_ros.simulation.crane import CraneSettings, SensorFrame, SimulatedCrane, plant_of
from mbse_ros.simulation.cycle import Move, WorkCycle
from mbse_ros.simulation.sensor_faults import FAULTS, faulty_samples

MACHINES = ('patu655_lift', 'patu655', 'zx200', 'zx200_can')
HIGH = {'patu655_lift': 400.0, 'patu655': 400.0, 'zx200': 2000.0, 'zx200_can': 2000.0}      # kg
FIRST = (Move(0.0, 0.4), Move(5.0, 1.8, 0.2), Move(0.0, 0.6), Move(-4.0, 1.6, 0.3), Move(0.0, 0.6), Move(6.0, 1.0, 0.2))
SECOND = (Move(0.0, 0.6), Move(4.0, 1.6, 0.3), Move(0.0, 0.4), Move(-5.0, 1.4, 0.2), Move(0.0, 2.0))
SWING = (Move(0.0, 0.5), Move(0.3, 3.0, 0.5), Move(0.0, 2.5))
Change = Callable[[str, float], tuple[str, float]]


@cache
def machine_of(name: str, valve: str | None = None) -> Machine:
    """A machine of the repository."""
    return load_machine(name, valve)


@cache
def plant(name: str):
    """Its plant."""
    return plant_of(machine_of(name))


@cache
def frames_of(name: str, load: float) -> tuple[SensorFrame, ...]:
    """6 s in which all cylinders go forth and back."""
    machine = machine_of(name)
    others = {valve: SECOND for valve in machine.valves[1:]}
    others |= {drive: SWING for drive in plant(name).drives}
    return tuple(SimulatedCrane(machine, load, 1, WorkCycle(0.35, FIRST, others), CraneSettings(rate=100.0),
                                plant=plant(name)).run())


def log_of(name: str, load: float | None = None) -> list[tuple[str, int, float]]:
    """Samples and commands ``(channel, stamp in ns, value)``; by default with the high load."""
    frames = frames_of(name, HIGH[name] if load is None else load)
    return [(channel, frame.stamp_ns, value) for frame in frames
            for channel, value in (*frame.samples.items(), *frame.commands.items())]


def wrong_log(name: str, fault: str, sensor: str, begin: float = 2.0) -> list[tuple[str, int, float]]:
    """The same with a fault of a sensor."""
    found = faulty_samples(FAULTS[fault], sensor, machine_of(name), frames_of(name, HIGH[name]), begin)
    return [(channel, stamp, value) for stamp, channel, value in found]


def changed(log: list[tuple[str, int, float]], change: Change) -> list[tuple[str, int, float]]:
    """The log with ``change`` of each channel and value."""
    return [(name, stamp, value) for channel, stamp, old in log for name, value in [change(channel, old)]]


def verdict(log: list[tuple[str, int, float]], machine: Machine) -> Verdict:
    """On the channels that the machine knows."""
    known = {*machine.channels, *machine.commands}
    return judged(LogSamples.of(sample for sample in log if sample[0] in known), machine)


def named(found: Verdict) -> dict[str, list[str]]:
    """Channels by kind of finding."""
    kinds: dict[str, list[str]] = {}
    for finding in found.findings:
        kinds.setdefault(finding.kind, []).extend(finding.channels)
    return kinds
