# SPDX-License-Identifier: Apache-2.0
"""``mbse demo --offline``: what the demo shows without ROS 2: a simulated lift to a bag, its estimate, a report."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from rich.console import Console

from ..description.load import describe
from .demo import run_mechanism_demo
from .logs import LogRequest
from .machines.estimate_machine import estimate_machine
from .simulate import simulate_bag

MACHINE = 'patu655_lift'


def run_offline_demo(payload: float, seed: int, output: Path) -> int:
    """Simulate, estimate, report; gives the exit status."""
    console = Console()
    folder = output / datetime.now().strftime('%Y-%m-%d_%H-%M-%S')
    folder.mkdir(parents=True)
    console.print(f'[bold]A crane lifts {payload:g} kg[/bold], simulated and estimated without ROS 2')
    bag = folder / 'bag'
    simulate_bag(describe(MACHINE), bag, payload=payload, seed=seed)
    estimate_machine(MACHINE, None, LogRequest(bag, None, folder / 'estimate.json', report=folder / 'report'))
    run_mechanism_demo(console, folder / 'mechanism')
    return 0
