# SPDX-License-Identifier: Apache-2.0
"""``mbse export-c --estimator``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from ..embedded.tables import EstimatorSetup
from ..embedded.write import export_estimator
from ..machine import load_machine
from ..offline.bag import TUNING, parse_tuning
from ..report.files import check_folder

KINDS = {room: kind for room, kind in TUNING.items() if room in ('observer', 'payload')}


def export_estimator_command(machine: str, output: Path, rate: float, step: float, single: bool, words: Sequence[str]
                             ) -> None:
    """Write a machine's estimator as C and say what was written."""
    check_folder(output)
    tuning = parse_tuning(['observer.weighing=apart', *words], KINDS)
    of = EstimatorSetup(load_machine(machine), tuning['observer'], tuning['payload'], rate, step)
    export = export_estimator(of, output, single)
    typer.echo(f'wrote {output}: {export.prefix}.h, {len(export.files)} files; {len(of.machine.channels)} channels, '
               f'{len(of.machine.commands)} commands, {rate:g} ticks a second of {of.substeps} steps, '
               f'{"single" if single else "double"} precision')
    typer.echo(f'test: cd {output} && cc -std=c99 -O2 *.c -lm -o test_estimator && ./test_estimator')
