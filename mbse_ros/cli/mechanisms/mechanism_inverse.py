# SPDX-License-Identifier: Apache-2.0
"""``mbse inverse``: forces that a motion takes, prescribed by drivers or by a table, and the joint reactions."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import typer

from ...description.coordinate_units import columns_of, unit_of
from ...dynamics.forces.driven_motion import DrivenMotion, inverse_dynamics
from ...dynamics.forces.motion_table import MotionTable, interpolated, oddities, read_motion_table
from ...dynamics.model import Model, load_model
from ...errors import BagError, DescriptionError, SettingError
from ...report.chart import Curve, Panel
from ...report.files import check_file, check_folder, write_json, write_table
from ...report.plots import write_plots

DURATION, DT = 10.0, 0.005   # s
LONGEST = 1_000_000          # instants
_UNITS = {'f': 'N', 'm': 'N*m'}
_MOST = 8                    # joints in the plot


def inverse_mechanism(name: str, output: Path, duration: float | None = None, dt: float | None = None,
                      coordinates: str | None = None, json_file: Path | None = None,
                      motion: Path | None = None) -> None:
    """Compute and write.

    ``duration``, ``dt``: s, default 10 and 0.005, of a table ``motion`` its own length and times. Raises
    DescriptionError for a mechanism that its drivers do not move alone, SettingError, BagError for the table.
    """
    for option, value in (('--dt', dt), ('--duration', duration)):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise SettingError(option, value, 'a number of seconds above 0')
    check_folder(output)
    check_file(json_file)
    if motion is None:
        length, step = DURATION if duration is None else duration, DT if dt is None else dt
        _check_count(length, step)
        model, table = load_model(name, coordinates), None
        _check_driven(model)
        found = inverse_dynamics(model, step * np.arange(math.floor(length / step * (1 + 1e-12)) + 1))
    else:
        model, table = moved_by_table(name, motion, coordinates)
        _check_count(table.t[-1] - table.t[0] if duration is None else duration, dt)
        found = inverse_dynamics(model, instants(table, duration, dt), interpolated(table, model.independent))
        for line in oddities(table, free_units(model)):
            typer.echo(f'warning: {line}', err=True)
    _write(model, found, table, output, json_file)


def _check_count(duration: float, dt: float | None) -> None:
    if dt is not None and duration / dt > LONGEST:
        raise SettingError('--dt', dt, f'at most {LONGEST} instants over the duration: a longer step')


def _write(model: Model, found: DrivenMotion, table: MotionTable | None, output: Path,
           json_file: Path | None) -> None:
    """Files of the folder, warnings and the last line."""
    output.mkdir(parents=True, exist_ok=True)
    summary = summary_of(model, found)
    if table is not None:
        summary['motion'] = {'file': table.file, 'rows': len(table.t), 'coordinates': list(model.independent)}
    write_forces(model, found, output / 'inverse.csv')
    write_json(output / 'summary.json', summary)
    write_json(json_file, summary)
    _plot(model, found, output / 'inverse.png')
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


def force_unit(model: Model, actuator: str) -> str:
    """N or N*m of a driver, or of an independent coordinate that a table moves."""
    drivers = model.description.drivers
    coordinate = drivers[actuator].coordinate if actuator in drivers else actuator
    return 'N*m' if unit_of(model.description, coordinate) == 'rad' else 'N'


def summary_of(model: Model, found: DrivenMotion) -> dict[str, Any]:
    """Largest and root mean square values, SI; None where a value is not determined."""
    return {
        'mechanism': model.description.name, 'file': model.description.file, 'instants': len(found.t),
        'duration_s': float(found.t[-1] - found.t[0]),
        'forces': {name: {'unit': force_unit(model, name), **_sizes(values)} for name, values in found.forces.items()},
        'reactions': {joint: {component: _sizes(column) for component, column in zip(found.components, values.T)}
                      for joint, values in found.reactions.items()},
        'undetermined': {name: list(components) for name, components in found.undetermined.items()},
        'power_imbalance_W': float(np.max(np.abs(found.imbalance)))}


def _sizes(values: np.ndarray) -> dict[str, float | None]:
    known = bool(np.isfinite(values).all())
    return {'largest': float(np.max(np.abs(values))) if known else None,
            'rms': float(np.sqrt(np.mean(values ** 2))) if known else None}


def write_forces(model: Model, found: DrivenMotion, path: Path) -> None:
    """Motion, forces of the drivers and reactions over time, one column each."""
    columns = ['t [s]', *columns_of(model.description, model.names, '', '_dot', '_ddot')]
    values = [found.t, *found.q.T, *found.qd.T, *found.qdd.T]
    for name, force in found.forces.items():
        columns.append(f'driver {name} [{force_unit(model, name)}]')
        values.append(force)
    for joint, reaction in found.reactions.items():
        columns += [f'joint {joint} {component} [{_UNITS[component[0]]}]' for component in found.components]
        values += list(reaction.T)
    write_table(path, [*columns, 'power [W]'], [*values, found.power])


def _plot(model: Model, found: DrivenMotion, path: Path) -> None:
    t = found.t
    driven = [*(driver.coordinate for driver in model.description.drivers.values()), *model.independent]
    units = ' / '.join(dict.fromkeys(unit_of(model.description, name) for name in driven))
    plots = [Panel('Prescribed motion', units, [
        Curve(name, t, found.q[:, model.names.index(name)]) for name in driven])]
    of_force = {name: force_unit(model, name) for name in found.forces}
    plots += [Panel('Forces of the drivers', unit, [
        Curve(name, t, found.forces[name]) for name in of_force if of_force[name] == unit])
        for unit in dict.fromkeys(of_force.values())]
    count = sum(component.startswith('f') for component in found.components)
    sizes = {joint: np.linalg.norm(values[:, :count], axis=1) for joint, values in found.reactions.items()}
    chosen = sorted(sizes, key=lambda joint: -np.max(np.nan_to_num(sizes[joint])))[:_MOST]
    if chosen:
        plots.append(Panel('Reaction forces in the joints', 'N', [
            Curve(joint, t, sizes[joint]) for joint in sizes if joint in chosen]))
    plots.append(Panel('Power of the drivers', 'W', [Curve('', t, found.power)]))
    write_plots(plots, path)


def moved_by_table(name: str, path: Path, coordinates: str | None = None) -> tuple[Model, MotionTable]:
    """Model whose independent coordinates are the table's columns, and the table.

    Raises DescriptionError where the file's drivers leave nothing free, BagError for the table.
    """
    model = load_model(name, coordinates)
    d = model.description
    if not model.degrees_of_freedom:
        raise DescriptionError(d.file, 'drivers', list(d.drivers),
                               'a degree of freedom that no driver moves, for the table to move')
    units = free_units(model)
    table = read_motion_table(path, units, _impossible(model, units))
    chosen, g = tuple(table.position), model.degrees_of_freedom
    if len(chosen) != g:
        usual = [name for name in model.independent if name in units]
        raise BagError(str(path), f'line 1: got {len(chosen)} coordinates ({", ".join(chosen) or "none"}), expected '
                       f'{g}, the degrees of freedom' + (f': such as {", ".join(usual)}' if usual else ''))
    if set(chosen) != set(model.independent):
        model = load_model(d, coordinates, chosen)
    return model, table


def free_units(model: Model) -> dict[str, str]:
    """Coordinates that a table may move, with their SI units: those that the file names and no driver moves."""
    d = model.description
    driven = {driver.coordinate for driver in d.drivers.values()}
    return {name: unit_of(d, name) or '1' for name in model.names
            if (name in d.coordinates or name in d.joints) and name not in driven}


def _impossible(model: Model, units: dict[str, str]) -> dict[str, str]:
    """The other coordinates, and why a table cannot move them."""
    d = model.description
    reasons = {name: f'{d.file} does not name it (named: ...), so the body is unknown on which its force acts'
               for name in model.names if name not in units}
    return reasons | {driver.coordinate: f'driver {driver.name} of {d.file} moves it already'
                      for driver in d.drivers.values()}


def instants(table: MotionTable, duration: float | None, dt: float | None) -> np.ndarray:
    """Times (k,), s: the table's, or even ones in steps of ``dt`` from its first; the first ``duration`` of them."""
    first, last = table.t[0], table.t[-1]
    length = last - first
    if duration is not None and duration > length * (1 + 1e-9):
        raise SettingError('--duration', duration, f'at most {length:.9g} s, the length of {table.file}')
    end = last if duration is None else first + duration
    if dt is None:
        return table.t[table.t <= end + 1e-9 * length]
    return np.minimum(first + dt * np.arange(math.floor((end - first) / dt * (1 + 1e-12)) + 1), last)
