# SPDX-License-Identifier: Apache-2.0
"""``mbse calibrate``: numbers of a machine's file by its bags, and the procedure that gives the bags."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

import mbse_ros as mbse

from ..errors import refuse_options
from .arguments import (
    Attachment,
    Cluster,
    Jobs,
    Json,
    MapOf,
    Namespace,
    OfMachine,
    ScaleOf,
    Sources,
    bags_of,
    hand_over,
)
from .live_calibration import LiveRun


def calibrate(
        bags: Annotated[list[Path] | None, typer.Argument(
            help='Folders of bags of the machine; or, with --map, CSV tables.')] = None,
        machine: OfMachine = None,
        output: Annotated[Path | None, typer.Option(
            '-o', '--output', help='Calibrated machine file to write, .yaml.')] = None,
        payload: Annotated[list[str] | None, typer.Option(
            help='Load of a bag: BAG=KG, BAG=KG+-DEVIATION or BAG=unknown; repeat it. [empty]')] = None,
        free: Annotated[list[str] | None, typer.Option(
            help='A further number of the file, or another deviation: KEY or KEY=DEVIATION, such as '
                 "'bodies.*.mass=5 %'; repeat it. [all with a deviation]")] = None,
        attachment: Attachment = None,
        scale: ScaleOf = None,
        cross_validate: Annotated[bool, typer.Option(
            '--cross-validate', help='Each bag by the numbers that all others give, too.')] = False,
        force: Annotated[bool, typer.Option(
            '--force', help='Write the file though its numbers do not explain the bags.')] = False,
        plan: Annotated[str | None, typer.Option(
            help='Print the procedure for a machine, with the most informative poses; no bags.')] = None,
        live: Annotated[bool, typer.Option(
            '--live', help='Go through the procedure on the running graph, record it, and calibrate.')] = False,
        folder: Annotated[Path | None, typer.Option(
            help='With --live: for its bags; of one that was interrupted, to go on. [out/calibration]')] = None,
        page: Annotated[str | None, typer.Option(
            help='With --live: PORT or HOST:PORT of a page with the steps, for a tablet in the cab.')] = None,
        token_file: Annotated[str | None, typer.Option(
            help='With --page: text file with its token, needed where other computers reach the page.')] = None,
        plots: Annotated[Path | None, typer.Option(
            help='Folder for pictures of what is missing, by pose and speed.')] = None,
        limits: Annotated[tuple[float, float] | None, typer.Option(
            help='Half-widths of a mass, % of full scale, up to which the grade is green, and amber. [1 3]')] = None,
        jobs: Jobs = 1,
        cluster: Cluster = None,
        json_: Json = None,
        map_: MapOf = None,
        sources: Sources = None,
        namespace: Namespace = None) -> None:
    """Find numbers of a machine's file from its own bags.

    Friction, masses, centres, offsets, base: the most likely ones by the balance of forces, what the bags cannot
    determine, and which motion would help; the file's deviations are the prior.
    """
    from ..report.files import check_file, check_folder
    check_file(json_)
    if plan is not None:
        refuse_options('bags', {'machine': machine, 'output': output, 'payload': payload, 'plots': plots,
                                'sources': sources, 'map': map_, 'cross_validate': cross_validate or None,
                                'bags': bags or None, 'cluster': cluster, 'force': force or None,
                                'attachment': attachment, 'scale': scale, 'limits': limits, 'live': live or None,
                                'folder': folder, 'page': page, 'token_file': token_file})
        from ..api.calibrate import plan_calibration
        procedure = plan_calibration(plan, free or [])
        typer.echo(procedure.steps)
        hand_over(procedure, json_)
        return
    check_file(output, 'output', ('.yaml', '.yml'))
    check_folder(plots, 'plots')
    with ExitStack() as stack:
        run: LiveRun | None = None
        if live:
            refuse_options('bags, which --live records', {'bags': bags or None, 'map': map_, 'attachment': attachment,
                                                          'scale': scale})
            run = stack.enter_context(closing(LiveRun(machine, folder or Path('out/calibration'), free or [], page,
                                                      token_file or '')))
            bags, payload = run.record(payload or [], sources or '', namespace or '')
            namespace = None
        else:
            refuse_options('--live', {'folder': folder, 'page': page, 'token_file': token_file})
        logs = stack.enter_context(bags_of(bags or [], map_, machine))
        found = mbse.calibrate(logs, machine, payloads=payload or [], free=free or [],
                               cross_validate=cross_validate, jobs=jobs, cluster=cluster, sources=sources,
                               namespace=namespace, attachment=attachment, scale=scale, limits=limits)
        hand_over(replace(found, word='--free'), json_, write=None if plots is None else partial(found.report, plots))
        written = output is not None and found.write(output, force)
        if written:
            typer.echo(f'wrote {output}: mbse check {output} shows what was understood')
        if run is not None:
            run.show(found, str(output) if written else '')
    if found.unexplained:
        typer.echo(f'warning: {found.unexplained}', err=True)
    if output is not None and not written:
        why = 'see the warning; --force writes it' if not found.trouble else (
            f'what the bags ask for is not a machine that a file may describe: {found.trouble}')
        typer.echo(f'mbse: {output}: not written: {why}', err=True)
        raise typer.Exit(1)
