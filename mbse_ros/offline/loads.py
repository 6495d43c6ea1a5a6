# SPDX-License-Identifier: Apache-2.0
"""Weighed loads: series, words, JSON, charts and tables of a report, whose first page has the total, why its interval
is so wide, and what to do: of a shift, or of many bags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from ..monitor.clocks import set_back
from ..report.data import COLORS, Chart, Clock, Curve, Panel, Run, Table
from ..report.result import Result, ResultSeries
from ..report.text import clock_of, interval_text, number, percent, time_unit, wall_time
from ..scale.book import FIRST, Book
from ..scale.comparison import Comparison, largest_causes
from ..scale.load import UncertainMass
from ..scale.record import ZERO, Record
from ..scale.table import mass_text, total_text, undone_loads
from .log_loads import CELLS, WeighedLoad

LARGEST = 8         # causes of the total's interval that are shown


@dataclass(frozen=True, repr=False)
class Loads(Result):
    """Loads of a ``machine``, as the scale found or recorded them: ``loads``, those that do not count too (``start``,
    ``end``, s, ``mass``, ``lower``, ``upper``, kg, ``status``, ``trusted``, ``faults``), the ``book`` of all, its
    ``records``, ``overloads`` in words, what was odd, how long the bags are, s, and whether records are ``damaged``,
    which are in none of these; ``held``: s for which no mass was known, by kind of fault; ``comparison``: with masses
    that are known; ``several``: bags.

    ``t`` (k,): ends of the loads, s from the start of the first; ``mass``, ``lower``, ``upper`` (k,), kg.
    """

    machine: str
    loads: tuple[WeighedLoad, ...]
    book: Book
    records: tuple[Record, ...]
    overloads: tuple[str, ...]
    warnings: tuple[str, ...] = field()     # without a default, although the base has one
    seconds: float
    damaged: bool = False
    held: Mapping[str, float] = field(default_factory=dict)
    comparison: Comparison | None = None
    several: bool = False

    @property
    def t(self) -> np.ndarray:
        """Ends of the loads (k,), s from the start of the first one."""
        data = [load.record.data for load in self.loads]
        return np.array([1e-9 * (item['end_ns'] - data[0]['start_ns']) for item in data])

    @property
    def mass(self) -> np.ndarray:
        """Masses (k,), kg."""
        return self['mass']

    @property
    def lower(self) -> np.ndarray:
        """Lower ends (k,) of their 95 % intervals, kg."""
        return np.array([load.lower for load in self.loads])

    @property
    def upper(self) -> np.ndarray:
        """Upper ends (k,), kg."""
        return np.array([load.upper for load in self.loads])

    @property
    def counted(self) -> list[WeighedLoad]:
        """The loads that count, in their order; the first is load 1."""
        undone = undone_loads(self.records)
        return [load for load in self.loads if load.record.counts and load.record.number not in undone]

    @property
    def named_trucks(self) -> bool:
        """Whether any truck was named; else all loads are of the first."""
        return list(self.book.trucks) not in ([], [FIRST])

    def _values(self, full: bool) -> dict[str, Any]:
        """Loads, totals and comparison, kg, s."""
        undone = undone_loads(self.records)
        totals = {('count' if key == 'loads' else key): value for key, value in self.book.all.values.items()}
        return {'loads': [load.values(load.record.number in undone) for load in self.loads], **totals,
                'trucks': {name: tally.values for name, tally in self.book.trucks.items()},
                'overloads': list(self.overloads), 'held_s': dict(self.held),
                **({} if self.comparison is None else {'comparison': self.comparison.values})}

    def summary(self) -> list[str]:
        """Totals by truck and of all, why loads are not trusted, and what the known masses say."""
        lines = [f'{name}: {total_text(tally)}'
                 for name, tally in (self.book.trucks.items() if len(self.book.trucks) > 1 else ())]
        lines.append(f'in {self.seconds:.1f} s: {total_text(self.book.all)}')
        reasons = dict.fromkeys(load.record.data.get('why', '') for load in self.loads)
        facts = {} if self.comparison is None else self.comparison.facts
        return [*lines, *(f'not trusted: {why}' for why in reasons if why),
                *(f'{name}: {text}' for name, text in facts.items())]

    def series(self) -> list[ResultSeries]:
        """Their masses with the intervals."""
        mass = np.array([load.mass for load in self.loads])
        return [ResultSeries('mass', 'kg', mass, lower=self.lower, upper=self.upper)]

    def tables(self) -> list[Table]:
        """One row a load."""
        undone = undone_loads(self.records)
        rows = [[*([Path(load.bag).resolve().name] if self.several else []),
                 *load.cells(undone, self.named_trucks)] for load in self.loads]
        columns = [*(['bag'] if self.several else []), *CELLS]
        return [Table(f'{self.machine}: loads', columns, rows)] if rows else []

    def report(self, folder: str | Path, pictures: bool = True) -> Path:
        """Write the page of all loads with its PNGs, or without ``pictures``; gives the page. Raises OSError."""
        from ..report.writer import write_report  # here, as it takes its time to import
        return write_report(loads_report(self, self.comparison), Path(folder), pictures)

    def write(self, path: str | Path) -> None:
        """Write the table of the loads: .csv, .parquet, or .xml for the counts of ISO 15143-3. Raises OSError,
        SettingError, MissingModuleError."""
        from ..scale.table import Equipment, write_loads
        write_loads(self.records, Path(path), Equipment(self.machine))


def loads_report(found: Loads, comparison: Comparison | None) -> Run:
    """All that the page shows; times from the start of the first load."""
    counted, axis = found.counted, LoadsAxis.of(found)
    trusted = [load for load in counted if load.trusted]
    charts: list[Chart | None] = [_loads_chart(found, counted, axis)] if counted else []
    charts += [_total_chart(trusted, axis)] if trusted else []
    charts += [_zero_chart(found, axis), None if comparison is None else _error_chart(comparison, axis)]
    return Run(title=f'Loads of {found.machine}', machine=found.machine, facts=_facts(found, comparison, axis.begin),
               notes=_notes(found), tables=_tables(found, counted, comparison), headline=_headline(found),
               summary=_summary(found), clock=axis.clock,
               charts=tuple(chart for chart in charts if chart is not None))


@dataclass(frozen=True)
class LoadsAxis:
    """Times of loads: from the stamp ``begin``, ns, in a unit of ``seconds`` that fits all of them; ``clock``: None
    where one was set back, or never set."""

    begin: int
    unit: str
    seconds: float
    clock: Clock | None

    @classmethod
    def of(cls, found: Loads) -> LoadsAxis:
        """That of all loads and records."""
        begin = found.loads[0].record.data['start_ns'] if found.loads else 0
        stamps = [load.record.stamp_ns for load in found.loads] or [begin]
        shift = np.asarray(set_back(stamps))
        unit, seconds = time_unit(1e-9 * float((np.array(stamps, dtype=np.int64) + shift).max() - begin))
        return cls(begin, unit, seconds, None if shift.any() else clock_of(begin, seconds))

    @property
    def label(self) -> str:
        """Of the axis."""
        return f'time from the first load [{self.unit}]'

    def at(self, stamps: Sequence[int]) -> np.ndarray:
        """Times (k,) of stamps in their order, without what their clock was set back."""
        return (np.array(stamps, dtype=np.int64) + set_back(stamps) - self.begin) / (1e9 * self.seconds)


def _headline(found: Loads) -> tuple[str, str, list[str]]:
    tally = found.book.all
    count, doubted = tally.count - tally.untrusted, f'; not trusted: {tally.untrusted}' if tally.untrusted else ''
    if not count:
        return 'Total of the loads that are trusted', 'no load', [f'{count} loads{doubted}']
    lower, upper = tally.mass.interval
    return ('Total of the loads that are trusted', f'{interval_text(tally.mass.value, lower, upper)} kg',
            [f'95 % interval {lower:.0f} to {upper:.0f} kg', f'{count} {"load" if count == 1 else "loads"}{doubted}'])


def _summary(found: Loads) -> dict[str, str]:
    """Why the interval is as wide as it is, and what to do."""
    causes = ', '.join(f'{cause} {number(kg)} kg' for cause, kg in largest_causes(found.book.all.mass, 3))
    todo = [f'{found.book.all.untrusted} loads are not trusted: see why in the table, and weigh them again or leave '
            'them out of what is billed'] if found.book.all.untrusted else []
    todo += ['the log was odd: read the warnings below before the numbers'] if found.warnings else []
    todo += ['a load was beyond the load chart: see below'] if found.overloads else []
    return {**({'Why the interval is so wide, 1 sigma': causes} if causes else {}),
            'What to do': '; '.join(todo) or 'nothing: all loads are trusted'}


def _facts(found: Loads, comparison: Comparison | None, begin: int) -> dict[str, str]:
    start = wall_time(begin)
    facts = {'Start of the first load': start} if start else {}
    facts |= {'Loads that count, 95 % interval': total_text(found.book.all)}
    return facts | ({} if comparison is None else comparison.facts)


def _notes(found: Loads) -> list[str]:
    """What was odd, and what the intervals hold."""
    return [*(f'Warning: {line}' for line in found.warnings), *(f'Overload: {line}' for line in found.overloads),
            "Errors of the machine's numbers are the same in all loads: they average out neither in a total nor in the "
            'mean error.']


def _bars(t: np.ndarray, lower: np.ndarray, upper: np.ndarray, label: str = '95 % interval',
          color: str = COLORS['measured']) -> Curve:
    """An upright line from lower to upper at each time."""
    gap = np.full_like(t, np.nan)
    return Curve(label, np.repeat(t, 3), np.column_stack([lower, upper, gap]).ravel(), color)


def _masses(label: str, stamps: Sequence[int], axis: LoadsAxis, masses: Sequence[UncertainMass],
            bars: str = '95 % interval', colors: Sequence[str] = (COLORS['measured'], COLORS['estimated'])
            ) -> tuple[Curve, Curve]:
    """Masses as points, over the bars of their intervals."""
    t, values = axis.at(stamps), np.array([mass.value for mass in masses])
    lower, upper = np.array([mass.interval for mass in masses]).T
    return _bars(t, lower, upper, bars, colors[0]), Curve(label, t, values, colors[-1], 'points')


def _loads_chart(found: Loads, counted: Sequence[WeighedLoad], axis: LoadsAxis) -> Chart:
    curves: list[Curve] = []
    inside = {id(load) for load in counted}
    for label, loads, color in (('counts', [load for load in counted if load.trusted], COLORS['estimated']), (
            'not trusted', [load for load in counted if not load.trusted], COLORS['low_passed']), ('does not count', [
            load for load in found.loads if id(load) not in inside], COLORS['measured'])):
        if loads:
            curves += _masses(label, [load.record.stamp_ns for load in loads], axis,
                              [load.record.mass for load in loads], f'95 % interval, {label}', [color])
    return Chart('Loads', 'loads', (Panel('Mass of each load', 'kg', tuple(curves), x_label=axis.label),),
                 'Each load at its end, with its 95 % interval.')


def _total_chart(counted: Sequence[WeighedLoad], axis: LoadsAxis) -> Chart:
    sums = list(accumulate((load.record.mass for load in counted), initial=UncertainMass(0.0)))[1:]
    curves = _masses('total', [load.record.stamp_ns for load in counted], axis, sums)
    return Chart('Total', 'total', (Panel('All loads that are trusted, so far', 'kg', curves, x_label=axis.label),),
                 'The sum, with what is common to all loads taken as common.')


def _zero_chart(found: Loads, axis: LoadsAxis) -> Chart | None:
    """What was weighed of the empty machine, each time it was set to zero."""
    zeros = [record for record in found.records if record.kind == ZERO]
    if not zeros:
        return None
    curves = _masses('zero', [record.stamp_ns for record in zeros], axis, [record.mass for record in zeros])
    return Chart('Zero', 'zero', (Panel('The empty machine, each time it was set to zero', 'kg', curves,
                                        x_label=axis.label),), 'A zero that moves is a drift.')


def _error_chart(comparison: Comparison, axis: LoadsAxis) -> Chart:
    rows = comparison.rows
    t, error = axis.at([row.stamp_ns for row in rows]), np.array([row.error for row in rows])
    width = np.array([row.half_width for row in rows])
    ends = np.array([t.min(), t.max()])
    curves = [_bars(t, error - width, error + width),
              Curve('weighed minus known', t, error, COLORS['estimated'], 'points'),
              Curve('no error', ends, np.zeros(2), COLORS['true'], 'dashes')]
    if comparison.drift is not None:
        first = axis.at([rows[0].stamp_ns])[0]
        line = comparison.drift.start + comparison.drift.slope * (ends - first) * axis.seconds / 3600.0     # kg/h
        curves.append(Curve('drift', ends, line, COLORS['low_passed']))
    return Chart('Against known masses', 'errors', (Panel(
        'Error', 'kg', tuple(curves), note=f'mean {comparison.mean:+.2f} kg, RMS {comparison.rms:.2f} kg, '
        f'{percent(comparison.inside)} of the intervals hold', x_label=axis.label),),
        'Weighed minus known, with the interval of both.')


def _tables(found: Loads, counted: Sequence[WeighedLoad], comparison: Comparison | None) -> list[Table]:
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
