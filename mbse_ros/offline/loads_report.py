# SPDX-License-Identifier: Apache-2.0
"""From weighed loads to the charts and tables of a report: a shift, or many bags, on one page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np

from ..monitor.clocks import set_back
from ..report.chart import COLORS, Chart, Curve, Panel
from ..report.data import Run, Table
from ..report.text import number, percent, wall_time
from ..scale.comparison import HOUR, Comparison, largest_causes
from ..scale.record import ZERO
from ..scale.table import mass_text, total_text, undone_loads
from ..scale.uncertain import UncertainMass
from .log_loads import CELLS, WeighedLoad
from .weigh_bags import WeighedBags

HOURS = 'time [h]'
LARGEST = 8         # causes of the total's interval that are shown


def loads_report(found: WeighedBags, comparison: Comparison | None) -> Run:
    """All that the page shows; times in hours from the start of the first load."""
    counted = found.counted
    begin = found.loads[0].record.data['start_ns'] if found.loads else 0
    trusted = [load for load in counted if load.trusted]
    charts: list[Chart | None] = [_loads_chart(found, counted, begin)] if counted else []
    charts += [_total_chart(trusted, begin)] if trusted else []
    charts += [_zero_chart(found, begin), None if comparison is None else _error_chart(comparison, begin)]
    return Run(title=f'Loads of {found.machine}', machine=found.machine, facts=_facts(found, comparison, begin),
               notes=_notes(found), tables=_tables(found, counted, comparison),
               charts=tuple(chart for chart in charts if chart is not None))


def _facts(found: WeighedBags, comparison: Comparison | None, begin: int) -> dict[str, str]:
    start = wall_time(begin)
    facts = {'Start of the first load': start} if start else {}
    facts |= {'Loads that count, 95 % interval': total_text(found.book.all)}
    return facts | ({} if comparison is None else comparison.facts)


def _notes(found: WeighedBags) -> list[str]:
    """What was odd, and what the intervals hold."""
    return [*(f'Warning: {line}' for line in found.warnings), *(f'Overload: {line}' for line in found.overloads),
            "Errors of the machine's numbers are the same in all loads: they average out neither in a total nor in the "
            'mean error.']


def _hours(stamps: Sequence[int], begin: int) -> np.ndarray:
    """In their order, without what their clock was set back."""
    return (np.array(stamps, dtype=np.int64) + set_back(stamps) - begin) / HOUR


def _bars(t: np.ndarray, lower: np.ndarray, upper: np.ndarray, label: str = '95 % interval',
          color: str = COLORS['measured']) -> Curve:
    """An upright line from lower to upper at each time."""
    gap = np.full_like(t, np.nan)
    return Curve(label, np.repeat(t, 3), np.column_stack([lower, upper, gap]).ravel(), color)


def _masses(label: str, stamps: Sequence[int], begin: int, masses: Sequence[UncertainMass], bars: str = '95 % interval',
            colors: Sequence[str] = (COLORS['measured'], COLORS['estimated'])) -> tuple[Curve, Curve]:
    """Masses as points, over the bars of their intervals."""
    t, values = _hours(stamps, begin), np.array([mass.value for mass in masses])
    lower, upper = np.array([mass.interval for mass in masses]).T
    return _bars(t, lower, upper, bars, colors[0]), Curve(label, t, values, colors[-1], 'points')


def _loads_chart(found: WeighedBags, counted: Sequence[WeighedLoad], begin: int) -> Chart:
    curves: list[Curve] = []
    inside = {id(load) for load in counted}
    for label, loads, color in (('counts', [load for load in counted if load.trusted], COLORS['estimated']), (
            'not trusted', [load for load in counted if not load.trusted], COLORS['low_passed']), ('does not count', [
            load for load in found.loads if id(load) not in inside], COLORS['measured'])):
        if loads:
            curves += _masses(label, [load.record.stamp_ns for load in loads], begin,
                              [load.record.mass for load in loads], f'95 % interval, {label}', [color])
    return Chart('Loads', 'loads', (Panel('Mass of each load', 'kg', tuple(curves), x_label=HOURS),),
                 'Each load at its end, with its 95 % interval.')


def _total_chart(counted: Sequence[WeighedLoad], begin: int) -> Chart:
    sums = list(accumulate((load.record.mass for load in counted), initial=UncertainMass(0.0)))[1:]
    curves = _masses('total', [load.record.stamp_ns for load in counted], begin, sums)
    return Chart('Total', 'total', (Panel('All loads that are trusted, so far', 'kg', curves, x_label=HOURS),),
                 'The sum, with what is common to all loads taken as common.')


def _zero_chart(found: WeighedBags, begin: int) -> Chart | None:
    """What was weighed of the empty machine, each time it was set to zero."""
    zeros = [record for record in found.records if record.kind == ZERO]
    if not zeros:
        return None
    curves = _masses('zero', [record.stamp_ns for record in zeros], begin, [record.mass for record in zeros])
    return Chart('Zero', 'zero', (Panel('The empty machine, each time it was set to zero', 'kg', curves,
                                        x_label=HOURS),), 'A zero that moves is a drift.')


def _error_chart(comparison: Comparison, begin: int) -> Chart:
    rows = comparison.rows
    t, error = _hours([row.stamp_ns for row in rows], begin), np.array([row.error for row in rows])
    width = np.array([row.half_width for row in rows])
    ends = np.array([t.min(), t.max()])
    curves = [_bars(t, error - width, error + width),
              Curve('weighed minus known', t, error, COLORS['estimated'], 'points'),
              Curve('no error', ends, np.zeros(2), COLORS['true'], 'dashes')]
    if comparison.drift is not None:
        first = _hours([rows[0].stamp_ns], begin)[0]
        line = comparison.drift.start + comparison.drift.slope * (ends - first)
        curves.append(Curve('drift', ends, line, COLORS['low_passed']))
    return Chart('Against known masses', 'errors', (Panel(
        'Error', 'kg', tuple(curves), note=f'mean {comparison.mean:+.2f} kg, RMS {comparison.rms:.2f} kg, '
        f'{percent(comparison.inside)} of the intervals hold', x_label=HOURS),),
        'Weighed minus known, with the interval of both.')


def _tables(found: WeighedBags, counted: Sequence[WeighedLoad], comparison: Comparison | None) -> list[Table]:
    undone, numbers = undone_loads(found.records), {id(load): str(k) for k, load in enumerate(counted, 1)}
    tables = [Table('Loads', ('load', 'bag', *CELLS), [
        (numbers.get(id(load), '–'), Path(load.bag).resolve().name, *load.cells(undone, found.named_trucks))
        for load in found.loads])]
    if comparison is not None:
        tables.append(Table('Against known masses', (
            '', 'weighed, kg', 'known, kg', 'error, kg', 'error, %', 'interval'), [
            (row.name, mass_text(row.weighed), f'{row.known.value:.1f}', f'{row.error:+.1f}',
             f'{100.0 * row.error / row.known.value:+.2f}', 'holds' if row.holds else 'does not hold')
            for row in comparison.rows]))
    tables.append(Table('Trucks', ('truck', 'loads', 'total, kg', 'not trusted, kg'), [
        (name, str(tally.count - tally.untrusted), mass_text(tally.mass),
         f'{tally.untrusted}: {mass_text(tally.doubted)}' if tally.untrusted else '')
        for name, tally in (found.book.trucks.items() if found.named_trucks else ())]))
    tables.append(Table('Largest causes of the total\'s interval', ('cause', '1 sigma, kg'), [
        (cause, number(kg)) for cause, kg in largest_causes(found.book.all.mass, LARGEST)]))
    return [table for table in tables if table.rows]
