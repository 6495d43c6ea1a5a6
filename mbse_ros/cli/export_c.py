# SPDX-License-Identifier: Apache-2.0
"""``mbse export-c``."""

from __future__ import annotations

from pathlib import Path

import typer

from ..dynamics.model import load_model
from ..dynamics.singular import check_regular
from ..export.write import export_c
from ..report.files import check_folder
from .arguments import independent_of, names_of


def export_command(mechanism: str, output: Path, dt: float, order: str, coordinates: str | None,
                   independent: str | None, free: str | None) -> None:
    """Write a mechanism as C and say what was written."""
    check_folder(output)
    model = load_model(mechanism, coordinates, independent_of(independent), tuple(names_of(free)), 'vm')
    check_regular(model, model.start)
    export = export_c(model, output, dt, order)
    names = export.names
    typer.echo(f'wrote {output}: {names.prefix}.h, {len(export.files)} files; {len(names.q)} coordinates, state of '
               f'{2 * len(names.z)} ({", ".join(item.name for item in names.z)} and rates), {len(names.u)} inputs, '
               f'{len(names.h)} sensor channels, {len(names.p)} parameters')
    if model.redundant:
        typer.echo(f'left out, as other constraints imply them: {", ".join(model.redundant)}')
    typer.echo(f'test: cd {output} && cc -std=c99 -O2 *.c -lm -o test_model && ./test_model')
