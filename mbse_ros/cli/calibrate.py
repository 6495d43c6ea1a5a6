# SPDX-License-Identifier: Apache-2.0
"""``mbse calibrate``: numbers of a machine's file by its bags, and the procedure that gives the bags."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import typer

import mbse_ros as mbse

from ..errors import MbseError, SettingError, refuse_options
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

if TYPE_CHECKING:
    from ..calibration.steps import PlanStep
    from ..nodes.live_calibration import LiveCalibration

KEYS = 'Enter: the load is on; s Enter: skip a step that is not safe; q Enter: end, and go on another time'


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
                                'folder': folder})
        from ..api.calibrate import plan_calibration
        procedure = plan_calibration(plan, free or [])
        typer.echo(procedure.steps)
        hand_over(procedure, json_)
        return
    check_file(output, 'output', ('.yaml', '.yml'))
    check_folder(plots, 'plots')
    if live:
        refuse_options('bags, which --live records', {'bags': bags or None, 'map': map_, 'attachment': attachment,
                                                      'scale': scale})
        bags, payload = _recorded(machine, folder or Path('out/calibration'), payload or [], free or [], sources,
                                  namespace or '')
        namespace = None
    else:
        refuse_options('--live', {'folder': folder})
    with bags_of(bags or [], map_, machine) as logs:
        found = mbse.calibrate(logs, machine, payloads=payload or [], free=free or [],
                               cross_validate=cross_validate, jobs=jobs, cluster=cluster, sources=sources,
                               namespace=namespace, attachment=attachment, scale=scale, limits=limits)
    hand_over(replace(found, word='--free'), json_, write=None if plots is None else partial(found.report, plots))
    written = output is not None and found.write(output, force)
    if written:
        typer.echo(f'wrote {output}: mbse check {output} shows what was understood')
    if found.unexplained:
        typer.echo(f'warning: {found.unexplained}', err=True)
    if output is not None and not written:
        why = 'see the warning; --force writes it' if not found.trouble else (
            f'what the bags ask for is not a machine that a file may describe: {found.trouble}')
        typer.echo(f'mbse: {output}: not written: {why}', err=True)
        raise typer.Exit(1)


def _recorded(machine: str | None, folder: Path, payload: list[str], free: list[str], sources: str | None,
              namespace: str) -> tuple[list[Path], list[str]]:
    """Bags of the procedure, recorded on the running graph, and their loads; ends the command where it is interrupted.
    Raises MbseError without ROS 2."""
    try:
        from ..nodes.live_calibration import LiveCalibration
    except ImportError as error:
        raise MbseError(f'without ROS 2 (rclpy) there is no running graph: record bags, mbse calibrate BAG... ({error})'
                        ) from None
    from ..api.calibrate import plan_calibration  # here, as they take their time to import
    from ..calibration.balance import CalibrationBalance
    from ..calibration.guide import Guide
    from ..offline.calibration.live_session import LiveSession
    if machine is None:
        raise SettingError('machine', machine, 'the machine of the graph: --machine NAME or a path to a .yaml file')
    if any(word.partition('=')[0] != 'load' for word in payload) or len(payload) > 1:
        raise SettingError('payload', ', '.join(payload), 'with --live load=KG or load=KG+-DEVIATION: of all bags with '
                           'the known load')
    procedure = plan_calibration(machine, free)
    session = LiveSession(folder, procedure.machine)
    guide = Guide(CalibrationBalance(procedure.machine), procedure.found, session.done)
    load = payload[0].partition('=')[2] if payload else f'{procedure.found.load:g}'
    typer.echo(f'{len(guide.steps)} steps, {len(guide.done)} done; bags in {folder}. {KEYS}')
    with closing(LiveCalibration(guide, session, sources or '', namespace)) as node:
        whole = _guided(node)
    if not whole:
        typer.echo(f'interrupted: {len(guide.done)} of {len(guide.steps)} steps are done and kept in {folder}; the '
                   'same command goes on')
        raise typer.Exit(1)
    if guide.skipped:
        typer.echo(f'skipped: {", ".join(guide.skipped)}')
    return [folder / name for name in session.bags], session.payloads(load)


def _guided(node: LiveCalibration) -> bool:
    """Through all steps: a line for each, and one where what to do changes; False where the operator ends it."""
    from ..offline.calibration.live_session import state_line, step_line
    guide, said, noted = node.guide, '', set[str]()
    step: PlanStep | None = None
    keys = Thread(target=lambda: words.extend(iter(sys.stdin.readline, '')), daemon=True)
    words: list[str] = []
    keys.start()
    try:
        while guide.step is not None:
            node.step()
            if guide.step is not step and guide.step is not None:
                step, said = guide.step, ''
                typer.echo('\n' + step_line(guide.machine, step, guide.last))
            if node.state.step is step and node.state.words != said:
                said = node.state.words
                typer.echo(f'  {state_line(node.state)}')
            for note in node.notes:
                if note not in noted:
                    typer.echo(f'warning: {note}', err=True)
                    noted.add(note)
            while words:
                word = words.pop(0).strip()
                if word == 'q':
                    return False
                if word == 's':
                    guide.skip()
                else:
                    guide.confirm()
        return True
    except KeyboardInterrupt:
        return False
