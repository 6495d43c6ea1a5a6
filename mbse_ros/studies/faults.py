# SPDX-License-Identifier: Apache-2.0
"""``mbse benchmark faults``: faults of sensors on simulated machines, and what a user of the estimate sees of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from ..errors import SettingError, check_choice
from ..machine import VALVE_KINDS
from ..report.files import check_file, check_folder, write_json
from ..report.plots import Bars, write_bars
from ..report.text import number, print_table, wide_console
from ..simulation.sensor_faults import BUS, FAULTS, chosen_faults, sensors_of
from .fault_cases import TWICE, FaultCase, machine_of, run_case
from .many import machine_name, many

MACHINES = ('patu655_lift', 'patu655', 'zx200', 'zx200_can')
VALVES = ('orifice', 'unknown')
SHOWN = 40          # of the worst cases
BEGINS = 8.0, 0.0   # s: while it works, and at the first sample
WORST, WRONG = 'worst_error_over_half_width_while_ok', 'seconds_wrong_while_ok'
Row = dict[str, Any]


def run_faults(machines: Sequence[str], valves: Sequence[str], faults: Sequence[str], sensors: Sequence[str],
               seeds: int, begin: float | None, duration: float, clean: float, jobs: int, json_file: Path | None,
               output: Path | None, cluster: str | None = None) -> None:
    """Run, write, print; the rows come in the order of the cases, whatever process was the first. Times in s.

    Raises SettingError and DescriptionError.
    """
    check_file(json_file)
    check_folder(output)
    begins = BEGINS if begin is None else (begin,)
    if not 0.0 <= max(begins) < duration <= 1000.0 or min(begins) < 0.0:
        raise SettingError('start', max(begins), f'seconds from 0 to the duration, {duration:g}, and that up to 1000')
    if clean and not 1.0 <= clean <= 36000.0:
        raise SettingError('clean', clean, 'seconds from 1 to 36000, or 0 for no run without a fault')
    cases = fault_cases(machines, valves, faults, sensors, seeds, begin, duration, clean)
    rows = dict(zip(cases, many(run_case, cases, jobs, cluster, 'cases')))
    found = [rows[case] for case in cases if case.fault]
    sound = [rows[case] for case in cases if not case.fault]
    write_json(json_file, {'machine': machine_name(), 'duration_s': duration, 'begin_s': list(begins), 'seeds': seeds,
                           'cases': found, 'clean': sound, 'false_alarms_per_hour': alarms_per_hour(sound)})
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        write_bars(bars(found), output / 'faults.png')
    show(wide_console(), found, sound)


def fault_cases(machines: Sequence[str], valves: Sequence[str], faults: Sequence[str], sensors: Sequence[str],
                seeds: int, begin: float | None, duration: float, clean: float) -> list[FaultCase]:
    """All combinations, empty sequences standing for all; first those without a fault, if they last any time.

    ``begin``, s; None: at 8 s, and once more at the first sample what does not hold from there on anyway.
    Raises SettingError for unknown names, DescriptionError for unknown machines.
    """
    chosen = chosen_faults(faults)
    for valve in valves:
        check_choice('valve', valve, VALVE_KINDS)
    machines, valves = machines or MACHINES, valves or VALVES
    known = {name: machine_of(name).channels for name in machines}
    for sensor in sensors:
        if sensor != BUS and not any(sensor in channels for channels in known.values()):
            raise SettingError('sensor', sensor, 'one of ' + ', '.join(dict.fromkeys(sum(known.values(), ()))))
    begins, found = BEGINS if begin is None else (begin,), list[FaultCase]()
    for name in machines:
        pairs = [(fault.name, sensor) for fault in chosen for sensor in sensors_of(fault, machine_of(name))
                 if not sensors or sensor in sensors]
        for seed in range(1, seeds + 1):
            for valve in valves:
                found += [FaultCase(name, valve, seed, '', '', begins[0], clean)] if clean else []
                for fault, sensor in pairs:
                    found += [FaultCase(name, valve, seed, fault, sensor, at, duration)
                              for at in ((begins[0],) if FAULTS[fault].whole else begins)]
    return found


def alarms_per_hour(sound: Sequence[Row]) -> float | None:
    """Alarms of the runs without a fault; None where there is none."""
    seconds = sum(row['duration_s'] for row in sound)
    return 3600.0 * sum(row['false_alarms'] for row in sound) / seconds if seconds else None


def show(console: Console, rows: Sequence[Row], sound: Sequence[Row]) -> None:
    """A table by fault for each machine and valve, the worst cases, the runs without a fault."""
    for key in dict.fromkeys((row['machine'], row['valve']) for row in rows):
        chosen = [row for row in rows if (row['machine'], row['valve']) == key]
        cells = [summary([row for row in chosen if row['fault'] == name], name)
                 for name in FAULTS if any(row['fault'] == name for row in chosen)]
        print_table(console, f'{key[0]}, valve {key[1]}: by fault, all sensors and seeds',
                    ['fault', 'cases', 'reported', 'median s', 'names it', 'only it', 'others only', 'worst error',
                     'wrong s', 'held s'], cells)
    console.print('names it: the first reason that names sensors names the faulty one. Of the worst case: worst error '
                  'over the half-width while the status is good; wrong s: time outside '
                  f'{TWICE:g} half-widths while the status is good; held s: the same of a mass held as nothing moves',
                  markup=False)
    _show_wrong(console, rows)
    if sound:
        print_table(console, f'without a fault: {number(alarms_per_hour(sound) or 0.0)} false alarms an hour',
                    ['machine', 'valve', 'seed', 's', 'alarms', 'alarmed s', 'worst error', 'wrong s'],
                    [[row['machine'], row['valve'], str(row['seed']), number(row['duration_s']),
                      str(row['false_alarms']), *_figures(row, 'seconds_of_alarm', WORST, WRONG)] for row in sound])
    for row in (*rows, *sound):
        if row['failure']:
            console.print(f'{row["machine"]}, valve {row["valve"]}, {row.get("fault", "no fault")} '
                          f'{row.get("sensor", "")}: {row["failure"]}', markup=False)


def _show_wrong(console: Console, rows: Sequence[Row]) -> None:
    """The cases that were silently wrong, the longest first."""
    wrong = sorted((row for row in rows if row[WRONG] > 0.0), key=lambda row: -row[WRONG])
    if wrong:
        print_table(console, f'wrong while the status is good: {len(wrong)} of {len(rows)} cases, the longest first',
                    ['machine', 'valve', 'fault', 'sensor', 'seed', 'wrong s', 'worst', 'error kg', 'half kg',
                     'reported s'],
                    [[*(str(row[key]) for key in ('machine', 'valve', 'fault', 'sensor', 'seed')),
                      *_figures(row, WRONG, WORST, 'worst_error_kg', 'half_width_kg', 'detected_s')]
                     for row in wrong[:SHOWN]])


def _figures(row: Row, *keys: str) -> list[str]:
    return ['–' if row[key] is None else number(row[key]) for key in keys]


def summary(rows: Sequence[Row], name: str) -> list[str]:
    """One line of all cases of a fault."""
    times = [row['detected_s'] for row in rows if row['detected_s'] is not None]
    alone = sum(bool(row['blamed']) and set(row['blamed']) <= set(row['faulty']) for row in rows)
    others = sum(bool(row['blamed']) and not row['isolated'] for row in rows)
    return [name, str(len(rows)), str(len(times)), number(median(times)) if times else '–',
            str(sum(row['isolated'] for row in rows)), str(alone), str(others),
            *(number(max(row[key] for row in rows)) for key in (WORST, WRONG, 'seconds_wrong_while_held'))]


def bars(rows: Sequence[Row]) -> list[Bars]:
    """Of each fault, one bar a kind of valve: how often and how fast it is reported, how long the mass is wrong."""
    names = [name for name in FAULTS if any(row['fault'] == name for row in rows)]
    valves = list(dict.fromkeys(row['valve'] for row in rows))

    def series(value: Any) -> dict[str, list[float | None]]:
        return {f'valve {valve}': [value([row for row in rows if (row['fault'], row['valve']) == (name, valve)])
                                   for name in names] for valve in valves}

    def reported(some: Sequence[Row]) -> list[float]:
        return [row['detected_s'] for row in some if row['detected_s'] is not None]
    return [Bars('reported at all', '% of the cases', names,
                 series(lambda some: 100 * len(reported(some)) / len(some))),
            Bars('time until it is reported, median of these', 's', names,
                 series(lambda some: median(reported(some)) if reported(some) else None)),
            Bars('mass wrong while the status is good, worst case', 's', names,
                 series(lambda some: max(row[WRONG] for row in some)))]
