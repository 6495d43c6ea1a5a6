# SPDX-License-Identifier: Apache-2.0
"""``mbse benchmark reality``: simulated machines that differ from their files as real ones do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from statistics import fmean

from rich.console import Console

from ..errors import SettingError, check_choice
from ..machine import VALVE_KINDS
from ..offline.bag import parse_tuning
from ..report.files import check_file, check_folder, parts_of, write_between, write_json
from ..report.plots import Bars, write_bars
from ..report.text import number, print_table, wide_console
from ..simulation.effects import EFFECTS, effects_of
from .fault_cases import machine_of
from .faults import MACHINES, VALVES
from .many import many
from .reality_cases import RealityCase, RealityOutcome, run_reality

COLUMNS = 'effect', 'size', 'hold', 'error %', 'wrong s', 'unknown %', 'position', 'velocity'
MARK = 'mbse benchmark reality'


def run_reality_study(machines: Sequence[str], valves: Sequence[str], effects: Sequence[str], seeds: int,
                      duration: float, jobs: int, json_file: Path | None, output: Path | None, page: Path | None,
                      cluster: str | None = None, tuning: Sequence[str] = ()) -> None:
    """Run, write, print; the rows come in the order of the cases, whatever process was the first. Times in s;
    ``tuning``: of interpolation, observer and payload, as ``--set`` of ``mbse estimate``.

    Raises SettingError and DescriptionError.
    """
    parse_tuning(tuning)
    check_file(json_file)
    check_folder(output)
    if page is not None:
        parts_of(page, MARK)
    if not 12.0 <= duration <= 1000.0:
        raise SettingError('duration', duration, 'seconds from 12 to 1000')
    found = many(run_reality, reality_cases(machines, valves, effects, seeds, duration, tuning), jobs, cluster,
                 'cases')
    write_json(json_file, {'rows': [item.row for item in found]})
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        write_bars(bars(found), output / 'reality.png')
    if page is not None:
        write_between(page, MARK, table(found, duration, tuning))
    show(wide_console(), found)


def reality_cases(machines: Sequence[str], valves: Sequence[str], effects: Sequence[str], seeds: int,
                  duration: float, tuning: Sequence[str] = ()) -> list[RealityCase]:
    """All combinations, empty sequences standing for all, of each machine the effects that apply to it.

    Raises SettingError for unknown names, and where no effect applies, DescriptionError for unknown machines.
    """
    for valve in valves:
        check_choice('valve', valve, VALVE_KINDS)
    found = [RealityCase(name, effect.name, valve, seed, duration, tuple(tuning)) for name in machines or MACHINES
             for seed in range(1, seeds + 1) for effect in effects_of(effects, machine_of(name))
             for valve in valves or VALVES]
    if not found:
        parts = {EFFECTS[name].body for name in effects}
        others = [name for name in MACHINES if parts <= machine_of(name).description.bodies.keys()]
        raise SettingError('effect', ','.join(effects), f'machines with a body {" and ".join(sorted(parts))}, as '
                           f'{" and ".join(others)}: {" and ".join(machines)} has none')
    return found


def summary(found: Sequence[RealityOutcome], name: str = '') -> list[str]:
    """Figures of all runs of an effect, or of what ``name`` says, in the order of ``COLUMNS``: how many intervals hold,
    the largest error over the full scale, the longest time that one was wrong, the share of the motion without a mass,
    mean and lowest share of bands that hold."""
    rows, moved = [item.row for item in found], sum(item.moved for item in found)
    errors = [abs(row['share_of_full_scale']) for row in rows if row['share_of_full_scale'] == row[
        'share_of_full_scale']]
    bands = [[row[key] for row in rows if row[key] is not None] for key in ('coverage_position', 'coverage_velocity')]
    unknown = sum(row['seconds_unknown'] for row in rows)
    return [name or rows[0]['effect'], '' if name else rows[0]['size'] or '–',
            f'{sum(row["holds"] for row in rows)}/{len(rows)}', number(100.0 * max(errors), 2) if errors else '–',
            f'{max(row["seconds_wrong"] for row in rows):.1f}', f'{100.0 * unknown / moved:.0f}' if moved else '–',
            *(f'{fmean(some):.2f} {min(some):.2f}' if some else '–' for some in bands)]


def summaries(found: Sequence[RealityOutcome]) -> list[list[str]]:
    """Of each effect, and of all where there are several."""
    groups = by_effect(found)
    return [*map(summary, groups), *([summary(found, 'all')] if len(groups) > 1 else [])]


def by_effect(found: Sequence[RealityOutcome]) -> list[list[RealityOutcome]]:
    """Runs of each effect, in the order of the effects."""
    return [some for name in EFFECTS if (some := [item for item in found if item.row['effect'] == name])]


def show(console: Console, found: Sequence[RealityOutcome]) -> None:
    """A table by effect for each machine and valve, and what ended early."""
    for machine, valve in dict.fromkeys((item.row['machine'], item.row['valve']) for item in found):
        own = [item for item in found if (item.row['machine'], item.row['valve']) == (machine, valve)]
        print_table(console, f'{machine}, valve {valve}', COLUMNS, summaries(own))
    for item in found:
        if item.failure:
            console.print(' '.join(str(item.row[key]) for key in ('machine', 'effect', 'valve', 'seed'))
                          + f': {item.failure}', markup=False)


def table(found: Sequence[RealityOutcome], duration: float, tuning: Sequence[str]) -> str:
    """Of all machines and valves, for a page."""
    kinds = [list(dict.fromkeys(str(item.row[key]) for item in found)) for key in ('machine', 'valve', 'seed')]
    names = [', '.join(f'`{name}`' for name in some) for some in (*kinds[:2], tuning)]
    return '\n'.join([f'{len(found)} runs of {duration:g} s, {len(kinds[2])} of each case, {date.today():%d %B %Y}.',
                      f'Machines {names[0]}; valves {names[1]}; settings {names[2] or "as they are by default"}.', '',
                      f'| {" | ".join(COLUMNS)} |', f'|{"---|" * len(COLUMNS)}',
                      *(f'| {" | ".join(row)} |' for row in summaries(found))])


def bars(found: Sequence[RealityOutcome]) -> list[Bars]:
    """Of each effect, one bar a kind of valve: whether the interval at the end and the bands of the motion hold, and
    how long the mass was wrong."""
    groups = by_effect(found)
    valves = list(dict.fromkeys(item.row['valve'] for item in found))

    def series(key: str, of: Callable[[list[float]], float]) -> dict[str, list[float | None]]:
        values = [[[float(item.row[key]) for item in some if item.row['valve'] == valve and item.row[key] is not None]
                   for some in groups] for valve in valves]
        return {f'valve {valve}': [of(one) if one else None for one in some] for valve, some in zip(valves, values)}
    names = [some[0].row['effect'] for some in groups]
    return [Bars('interval at the end holds', 'share of the runs', names, series('holds', fmean)),
            Bars('mass wrong while the status is good, worst run', 's', names, series('seconds_wrong', max)),
            Bars('bands of the velocity hold, mean', 'share', names, series('coverage_velocity', fmean))]
