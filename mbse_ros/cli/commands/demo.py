# SPDX-License-Identifier: Apache-2.0
"""``mbse demo`` and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
        payload: Annotated[float, typer.Option(help='True payload of the simulated crane, kg.')] = 50.0,
        seed: Annotated[int, typer.Option(help='Seed of the sensors\' noise.')] = 1,
        output: Annotated[Path, typer.Option(
            '-o', '--output', help='Folder for bags and reports.')] = Path('out/demo'),
        duration: Annotated[float, typer.Option(min=2.0, max=3600.0, help='Length of each lift in ROS 2, s.')] = 24.0,
        offline: Annotated[bool, typer.Option(
            '--offline', help='Without ROS 2: the crane, simulated to a bag and estimated from it.')] = False) -> None:
    """Run a simulated crane through ROS 2, then offline.

    And the measured lift, where its data are found; and a four-bar linkage.
    """
    from ..demo import run_demo, run_offline_demo
    if offline:
        raise typer.Exit(run_offline_demo(payload, seed, output))
    raise typer.Exit(run_demo(payload, seed, output, duration))
