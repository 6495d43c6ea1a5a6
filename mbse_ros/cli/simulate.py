# SPDX-License-Identifier: Apache-2.0
"""``mbse simulate`` of a machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import track

from ..bags.writer import BagWriter, write_frame
from ..description.model import MechanismDescription
from ..machine import Machine
from ..simulation.work import frame_count, working_machine


def simulate_bag(description: MechanismDescription, output: Path, storage: str = 'mcap', seed: int = 1,
                 rate: float = 100.0, **work: Any) -> None:
    """Simulate and write; the same arguments, those of ``working_machine``, give the same bag.

    Raises DescriptionError, SettingError, BagError.
    """
    machine = Machine(description)
    crane = working_machine(machine, seed=seed, rate=rate, **work)
    count = frame_count(crane)
    with BagWriter(output, storage, frame=machine.name) as writer:
        for _ in track(range(count), f'simulating {machine.name}', transient=True, disable=not Console().is_terminal):
            write_frame(writer, machine, crane.frame())
    typer.echo(f'wrote {output}: {crane.cycle.duration:.1f} s at {rate:g} Hz, payload {crane.payload:g} kg'
               f'{" at times" if len(crane.cycle.load) > 1 else ""}, seed {seed}')
