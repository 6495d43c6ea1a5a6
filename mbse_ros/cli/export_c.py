# SPDX-License-Identifier: Apache-2.0
"""``mbse export-c``: a mechanism, or a machine's estimator, as C."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from .arguments import Coordinates, Set, independent_of, names_of, refuse_options


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
        refuse_options('a mechanism, not --estimator', {
            'order': order, 'coordinates': coordinates, 'independent': independent, 'free': free})
        _export_estimator(mechanism, output, 100.0 if rate is None else rate, dt, bool(single), set_ or [])
        return
    refuse_options('--estimator', {'single': single, 'rate': rate, 'set': set_ or None})
    _export_model(mechanism, output, dt, order or 'exact', coordinates, independent, free)


def _export_model(mechanism: str, output: Path, dt: float, order: str, coordinates: str | None,
                  independent: str | None, free: str | None) -> None:
    """Write a mechanism as C and say what was written."""
    from ..dynamics.model import load_model
    from ..dynamics.singular import check_regular
    from ..export.write import export_c as write_model
    from ..report.files import check_folder
    check_folder(output)
    model = load_model(mechanism, coordinates, independent_of(independent), tuple(names_of(free)), 'vm')
    check_regular(model, model.start)
    export = write_model(model, output, dt, order)
    names = export.names
    typer.echo(f'wrote {output}: {names.prefix}.h, {len(export.files)} files; {len(names.q)} coordinates, state of '
               f'{2 * len(names.z)} ({", ".join(item.name for item in names.z)} and rates), {len(names.u)} inputs, '
               f'{len(names.h)} sensor channels, {len(names.p)} parameters')
    if model.redundant:
        typer.echo(f'left out, as other constraints imply them: {", ".join(model.redundant)}')
    typer.echo(f'test: cd {output} && cc -std=c99 -O2 *.c -lm -o test_model && ./test_model')


def _export_estimator(machine: str, output: Path, rate: float, step: float, single: bool, words: Sequence[str]
                      ) -> None:
    """Write a machine's estimator as C and say what was written."""
    from ..embedded.tables import EstimatorSetup
    from ..embedded.write import export_estimator
    from ..machine import load_machine
    from ..offline.bag import TUNING, parse_tuning
    from ..report.files import check_folder
    check_folder(output)
    kinds = {room: kind for room, kind in TUNING.items() if room in ('observer', 'payload')}
    tuning = parse_tuning(['observer.weighing=apart', *words], kinds)
    of = EstimatorSetup(load_machine(machine), tuning['observer'], tuning['payload'], rate, step)
    export = export_estimator(of, output, single)
    typer.echo(f'wrote {output}: {export.prefix}.h, {len(export.files)} files; {len(of.machine.channels)} channels, '
               f'{len(of.machine.commands)} commands, {rate:g} ticks a second of {of.substeps} steps, '
               f'{"single" if single else "double"} precision')
    typer.echo(f'test: cd {output} && cc -std=c99 -O2 *.c -lm -o test_estimator && ./test_estimator')
