# SPDX-License-Identifier: Apache-2.0
"""``mbse export-c``: a mechanism, or a machine's estimator, as C."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import mbse_ros as mbse

from .arguments import Attachment, Coordinates, ScaleOf, Set, independent_of, names_of


def export_c(
        mechanism: Annotated[str, typer.Argument(
            help='Name of a file in config/mechanisms or config/machines, or a path.')],
        output: Annotated[Path, typer.Option(
            '-o', '--output', help='Folder of the C files: new, or an earlier export.')],
        estimator: Annotated[bool, typer.Option(
            '--estimator', help='Of a machine: its observer and payload estimator, one function a tick.')] = False,
        single: Annotated[bool | None, typer.Option(
            '--single', help='Estimator: in single precision.')] = None,
        rate: Annotated[float | None, typer.Option(help='Estimator: ticks, Hz, 100 or more. [100]')] = None,
        attachment: Attachment = None,
        scale: ScaleOf = None,
        set_: Set = None,
        dt: Annotated[float, typer.Option(
            help='Step of the recorded transitions, s; of an estimator, steps in a tick.')] = 1e-3,
        order: Annotated[str | None, typer.Option(
            help='Order of the exponential integration: exact, or 1 to 4. [exact]')] = None,
        coordinates: Coordinates = None,
        independent: Annotated[str | None, typer.Option(
            help="Independent coordinates, separated by commas, or auto. [the file's]")] = None,
        free: Annotated[str | None, typer.Option(
            help='Numbers of the file that stay parameters of the C functions, separated by commas, such as '
                 'bodies.crank.mass.')] = None) -> None:
    """Write a mechanism, or a machine's estimator, as plain C99.

    Of a mechanism state rates and exact Jacobian, transition step, position problem, sensors; of a machine with
    --estimator one function a tick, samples in, mass with interval and status out. With a test of recorded outputs.
    """
    from ..report.files import check_folder
    check_folder(output)
    found = mbse.export_c(mechanism, output, dt, order, coordinates=coordinates,
                          independent=independent_of(independent), free=names_of(free), estimator=estimator,
                          single=single, rate=rate, tuning=set_ or None, attachment=attachment, scale=scale)
    typer.echo('\n'.join(found.summary()))
