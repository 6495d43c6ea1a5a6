# SPDX-License-Identifier: Apache-2.0
"""``mbse calibrate`` and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .arguments import Cluster, Jobs, Json, OfMachine, Sources, machine_name, refuse_options, sources_of


def calibrate(
        bags: Annotated[list[Path] | None, typer.Argument(help='Folders of bags of the machine.')] = None,
        machine: OfMachine = None,
        output: Annotated[Path | None, typer.Option(
            '-o', '--output', help='Calibrated machine file to write, .yaml.')] = None,
        payload: Annotated[list[str] | None, typer.Option(
            help='Load of a bag: BAG=KG, BAG=KG+-DEVIATION or BAG=unknown; repeat it. [empty]')] = None,
        free: Annotated[list[str] | None, typer.Option(
            help='A further number of the file, or another deviation: KEY or KEY=DEVIATION, such as '
                 "'bodies.*.mass=5 %'; repeat it. [all with a deviation]")] = None,
        cross_validate: Annotated[bool, typer.Option(
            '--cross-validate', help='Each bag by the numbers that all others give, too.')] = False,
        force: Annotated[bool, typer.Option(
            '--force', help='Write the file though its numbers do not explain the bags.')] = False,
        plan: Annotated[str | None, typer.Option(
            help='Print the procedure for a machine, with the most informative poses; no bags.')] = None,
        plots: Annotated[Path | None, typer.Option(
            help='Folder for pictures of what is missing, by pose and speed.')] = None,
        jobs: Jobs = 1,
        cluster: Cluster = None,
        json_: Json = None,
        sources: Sources = None,
        namespace: Annotated[str | None, typer.Option(
            help='Namespace of the topics, where the bag has several.')] = None) -> None:
    """Find numbers of a machine's file from its own bags.

    Friction, masses, centres, offsets, base: the most likely ones by the balance of forces, what the bags cannot
    determine, and which motion would help; the file's deviations are the prior.
    """
    if plan is not None:
        from .machines.calibrate_plan import plan_command
        refuse_options('bags', {'machine': machine, 'output': output, 'payload': payload, 'plots': plots,
                                'sources': sources, 'cross-validate': cross_validate or None, 'bags': bags or None,
                                'cluster': cluster, 'force': force or None})
        plan_command(plan, free or [], json_)
        return
    from .machines.calibrate_bags import CalibrationRequest, calibrate_command
    bags = bags or []
    calibrate_command(CalibrationRequest(bags, machine_name(machine, bags, namespace), output, payload or [],
                                         free or [],
                                         cross_validate, plots, namespace, sources_of(sources), jobs, force, cluster),
                                         json_)
