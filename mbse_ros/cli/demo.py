# SPDX-License-Identifier: Apache-2.0
"""``mbse demo``: a crane and an excavator lift through the real graph, or without ROS 2; a linkage."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from ..errors import MbseError


def demo(
        payload: Annotated[float, typer.Option(help='True payload of the simulated crane, kg.')] = 50.0,
        seed: Annotated[int, typer.Option(help='Seed of the sensors\' noise.')] = 1,
        output: Annotated[Path, typer.Option(
            '-o', '--output', help='Folder for bags and reports.')] = Path('out/demo'),
        duration: Annotated[float, typer.Option(min=2.0, max=3600.0, help='Length of each lift in ROS 2, s.')] = 24.0,
        offline: Annotated[bool, typer.Option(
            '--offline', help='Without ROS 2: the crane, simulated to a bag and estimated from it.')] = False) -> None:
    """Run a simulated crane and an excavator through ROS 2.

    Then the same offline; the measured lift, if its data are there; and a four-bar linkage and its observers.
    """
    if offline:
        raise typer.Exit(run_offline_demo(payload, seed, output))
    raise typer.Exit(run_demo(payload, seed, output, duration))


def run_demo(payload: float, seed: int, output: Path, duration: float) -> int:
    """All of the demo, with lifts of ``duration``, s; exit status 0 when online and offline agree. Raises MbseError
    without ROS 2."""
    from ..nodes.graphs.machine_graph import MachineArguments, machine_graph
    from ..nodes.graphs.run_graph import check_ros
    from ..nodes.measuring.demo import EXCAVATOR_LOAD, MEASURED, live, measured_lift, run_mechanism_demo
    try:
        check_ros(machine_graph(MachineArguments()))
    except MbseError as error:
        raise MbseError(f'{error}; mbse demo --offline needs no ROS 2') from error
    from rich.console import Console
    console = Console()
    folder = output / datetime.now().strftime('%Y-%m-%d_%H-%M-%S')
    folder.mkdir(parents=True)
    agree = live(console, 'A crane', MachineArguments(payload=payload, seed=seed, duration=duration), folder,
                 both_ways=True)
    (folder / 'excavator').mkdir()
    agree &= live(console, 'An excavator of 20 t', MachineArguments(
        machine='zx200', payload=EXCAVATOR_LOAD, cycle='boom', seed=seed, duration=duration), folder / 'excavator')
    if MEASURED.is_file():
        measured_lift(console, folder)
    run_mechanism_demo(console, folder / 'mechanism')
    return 0 if agree else 1


def run_offline_demo(payload: float, seed: int, output: Path) -> int:
    """What the demo shows without ROS 2: a simulated lift to a bag, its estimate, a report; gives the exit status."""
    from rich.console import Console

    from ..nodes.measuring.demo import run_mechanism_demo
    from .estimate import estimate
    from .simulate import simulate
    console, name = Console(), 'patu655_lift'
    folder = output / datetime.now().strftime('%Y-%m-%d_%H-%M-%S')
    folder.mkdir(parents=True)
    console.print(f'[bold]A crane lifts {payload:g} kg[/bold], simulated and estimated without ROS 2')
    bag = folder / 'bag'
    simulate(name, bag, payload=str(payload), seed=seed)
    estimate(bag, name, json_=folder / 'estimate.json', report=folder / 'report')
    run_mechanism_demo(console, folder / 'mechanism')
    return 0
