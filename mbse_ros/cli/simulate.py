# SPDX-License-Identifier: Apache-2.0
"""``mbse simulate``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import typer
from rich.console import Console
from rich.progress import track

from ..bags.writer import BagWriter
from ..errors import SettingError
from ..machine import load_machine
from ..simulation.crane import CraneSettings, SensorFrame, SimulatedCrane
from ..simulation.cycle import WorkCycle, lift_hold_lower, random_cycle

CYCLES = ('lift_hold_lower', 'random')
START_NS = 1_700_000_000_000_000_000     # any instant will do, but a fixed one: the same seed gives the same bag


def cycle_of(name: str, ramp: float, seed: int) -> WorkCycle:
    """Cycle by its name; raises SettingError."""
    if name not in CYCLES:
        raise SettingError('cycle', name, 'one of ' + ', '.join(CYCLES))
    if not 0.001 <= ramp <= 2.0:
        raise SettingError('ramp', ramp, 'from 0.001 to 2.0 s')
    return lift_hold_lower(ramp) if name == 'lift_hold_lower' else random_cycle(np.random.default_rng([seed, 1]))


def write_frame(writer: BagWriter, crane: SimulatedCrane, frame: SensorFrame) -> None:
    """Samples, commands and truth of one instant."""
    writer.write_samples(frame.stamp_ns, frame.samples, frame.commands)
    writer.write_truth(frame.stamp_ns, crane.machine.cylinders, frame.position, frame.velocity, frame.acceleration,
                       crane.machine.volumes, frame.pressure, frame.payload)


def simulate_bag(machine: str, output: Path, payload: float, seed: int, cycle: str, ramp: float, rate: float,
                 storage: str) -> None:
    """Simulate and write; the same arguments give the same bag."""
    if seed < 0:
        raise SettingError('seed', seed, 'a whole number from 0')
    model = load_machine(machine)
    low, high = model.description.payload.limits
    if not low <= payload <= high:
        raise SettingError('payload', payload, f'from {low} to {high} kg (payload.limits of {model.name})')
    crane = SimulatedCrane(model, payload, seed, cycle_of(cycle, ramp, seed), CraneSettings(rate=rate),
                           start_ns=START_NS)
    count = round(crane.cycle.duration * 1e9) // crane.period_ns + 1
    with BagWriter(output, storage, frame=model.name) as writer:
        for _ in track(range(count), f'simulating {model.name}', transient=True, disable=not Console().is_terminal):
            write_frame(writer, crane, crane.frame())
    typer.echo(f'wrote {output}: {crane.cycle.duration:.1f} s at {rate:g} Hz, payload {payload:g} kg, seed {seed}')
