# SPDX-License-Identifier: Apache-2.0
"""``mbse inverse``: forces that a motion takes, prescribed by drivers or by a table, and the joint reactions."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import DescriptionError, SettingError
from .arguments import Coordinates

if TYPE_CHECKING:
    import numpy as np

    from ..api.inverse_dynamics import Forces
    from ..dynamics.forces.motion_table import MotionTable
    from ..dynamics.model import Model

DURATION, DT = 10.0, 0.005   # s
LONGEST = 1_000_000          # instants


def inverse(
        mechanism: Annotated[str, typer.Argument(help='Name of a file in config/mechanisms, or a path.')],
        output: Annotated[Path, typer.Option('-o', '--output', help='Folder for table, summary and plot.')],
        motion: Annotated[Path | None, typer.Option(
            help='CSV table of the motion: t, and the independent coordinates, such as theta [deg].')] = None,
        duration: Annotated[float | None, typer.Option(
            help="Length of the motion, s. [10, or the table's]")] = None,
        dt: Annotated[float | None, typer.Option(
            help="Time between two instants, s. [0.005, or the table's times]")] = None,
        coordinates: Coordinates = None,
        json_: Annotated[Path | None, typer.Option('--json', help='Write the summary to this file too.')] = None,
) -> None:
    """Compute the forces that a motion needs.

    Its drivers prescribe the motion, or a table does.
    """
    import numpy as np

    from ..api.inverse_dynamics import Forces
    from ..dynamics.forces.driven_motion import inverse_dynamics
    from ..dynamics.forces.motion_table import free_units, interpolated, moved_by_table, oddities
    from ..dynamics.model import load_model
    from ..report.files import check_file, check_folder
    for option, value in (('--dt', dt), ('--duration', duration)):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise SettingError(option, value, 'a number of seconds above 0')
    check_folder(output)
    check_file(json_)
    if motion is None:
        length, step = DURATION if duration is None else duration, DT if dt is None else dt
        _check_count(length, step)
        model, table = load_model(mechanism, coordinates), None
        _check_driven(model)
        found = inverse_dynamics(model, step * np.arange(math.floor(length / step * (1 + 1e-12)) + 1))
    else:
        model, table = moved_by_table(mechanism, motion, coordinates)
        _check_count(table.t[-1] - table.t[0] if duration is None else duration, dt)
        found = inverse_dynamics(model, instants(table, duration, dt), interpolated(table, model.independent))
        for line in oddities(table, free_units(model)):
            typer.echo(f'warning: {line}', err=True)
    _write(Forces(model, found), table, output, json_)


def _check_count(duration: float, dt: float | None) -> None:
    if dt is not None and duration / dt > LONGEST:
        raise SettingError('--dt', dt, f'at most {LONGEST} instants over the duration: a longer step')


def _write(forces: Forces, table: MotionTable | None, output: Path, json_file: Path | None) -> None:
    """Files of the folder, warnings and the last line."""
    import numpy as np

    from ..report.files import write_json
    model, found = forces.model, forces.found
    output.mkdir(parents=True, exist_ok=True)
    summary = forces.to_json()
    if table is not None:
        summary['motion'] = {'file': table.file, 'rows': len(table.t), 'coordinates': list(model.independent)}
    forces.write_table(output / 'inverse.csv')
    write_json(output / 'summary.json', summary)
    write_json(json_file, summary)
    forces.write_plot(output / 'inverse.png')
    for joint, components in found.undetermined.items():
        typer.echo(f'warning: {joint}: {", ".join(components)} not determined, because of redundant constraints: '
                   f'{", ".join(model.redundant)}', err=True)
    largest = ', '.join(f'{name} {item["largest"]:.4g} {item["unit"]}' for name, item in summary['forces'].items()
                        if item['largest'] is not None)
    typer.echo(f'wrote {output}: {len(found.t)} instants over {found.t[-1] - found.t[0]:g} s; largest {largest}; power '
               f'balance within {np.max(np.abs(found.imbalance)):.2g} W')


def _check_driven(model: Model) -> None:
    d = model.description
    if not d.drivers:
        raise DescriptionError(d.file, 'drivers', None,
                               'a driver, or --motion TABLE.csv: inverse dynamics needs a prescribed motion')
    if model.degrees_of_freedom:
        raise DescriptionError(d.file, 'drivers', list(d.drivers),
                               f'drivers of all degrees of freedom; {", ".join(model.independent)} still free: '
                               'drivers or --motion TABLE.csv for them')


def instants(table: MotionTable, duration: float | None, dt: float | None) -> np.ndarray:
    """Times (k,), s: the table's, or even ones in steps of ``dt`` from its first; the first ``duration`` of them."""
    import numpy as np
    first, last = table.t[0], table.t[-1]
    length = last - first
    if duration is not None and duration > length * (1 + 1e-9):
        raise SettingError('--duration', duration, f'at most {length:.9g} s, the length of {table.file}')
    end = last if duration is None else first + duration
    if dt is None:
        return table.t[table.t <= end + 1e-9 * length]
    return np.minimum(first + dt * np.arange(math.floor((end - first) / dt * (1 + 1e-12)) + 1), last)
