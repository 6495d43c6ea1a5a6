# SPDX-License-Identifier: Apache-2.0
"""``mbse export-c`` and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..arguments import Coordinates, Set, refuse_options


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
    if estimator:
        from ..export_estimator import export_estimator_command
        refuse_options('a mechanism, not --estimator', {
            'order': order, 'coordinates': coordinates, 'independent': independent, 'free': free})
        export_estimator_command(mechanism, output, 100.0 if rate is None else rate, dt, bool(single), set_ or [])
        return
    from ..export_c import export_command
    refuse_options('--estimator', {'single': single, 'rate': rate, 'set': set_ or None})
    export_command(mechanism, output, dt, order or 'exact', coordinates, independent, free)
