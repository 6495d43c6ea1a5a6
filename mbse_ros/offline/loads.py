# SPDX-License-Identifier: Apache-2.0
"""Weighed loads: series, words, JSON, charts and tables of a report: a shift, or many bags, on one page;
beside masses that are known from elsewhere, by one number, or a table of a weighbridge."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from ..description.language.units import split_number, unit_factor
from ..errors import SettingError
from ..monitor.clocks import set_back
from ..report.data import COLORS, Chart, Curve, Panel, Run, Table
from ..report.result import Result, ResultSeries
from ..report.text import number, percent, wall_time
from ..resources import regular
from ..scale.book import FIRST, Book
from ..scale.comparison import HOUR, Compared, Comparison, KnownMass, largest_causes
from ..scale.load import UncertainMass, combined
from ..scale.record import ZERO, Record
from ..scale.table import mass_text, total_text, undone_loads
from .log_loads import CELLS, WeighedLoad

HOURS = 'time [h]'
LARGEST = 8         # causes of the total's interval that are shown
OPTION = 'known'
HEAVIEST = 1e7      # kg
KEYS = ('load', 'truck', 'bag')
EXPECTED = ('a mass, such as 500 kg or 500+-2.5 kg, of every load; or a CSV table with one of the columns '
            f'{", ".join(KEYS)}, a column mass [kg], and perhaps stddev [kg]')
Weighed = tuple[UncertainMass, int]      # and the stamp, ns
NAMES: dict[str, Callable[[WeighedLoad], str]] = {
    'truck': lambda load: str(load.record.data['truck']), 'bag': lambda load: Path(load.bag).resolve().name}


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

    def report(self, folder: str | Path) -> Path:
        """Write the page of all loads with its PNGs; gives the page. Raises OSError."""
        from ..report.writer import write_report  # here, as it takes its time to import
        return write_report(loads_report(self, self.comparison), Path(folder))

    def write(self, path: str | Path) -> None:
        """Write the table of the loads: .csv, .parquet, or .xml for the counts of ISO 15143-3. Raises OSError,
        SettingError, MissingModuleError."""
        from ..scale.table import Equipment, write_loads
        write_loads(self.records, Path(path), Equipment(self.machine))


def loads_report(found: Loads, comparison: Comparison | None) -> Run:
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


def _loads_chart(found: Loads, counted: Sequence[WeighedLoad], begin: int) -> Chart:
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


def _zero_chart(found: Loads, begin: int) -> Chart | None:
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


def check_known(text: str) -> None:
    """Refuse, before the work on bags, what is neither a mass nor a table of masses; raises SettingError."""
    if _mass(text) is None:
        _table(Path(text))


def compared(text: str, found: Loads) -> list[Compared]:
    """What was weighed of the loads that count against what is known; raises SettingError."""
    counted = found.counted
    if not counted:
        raise SettingError(OPTION, text, 'loads to compare: none counts')
    known = _mass(text)
    if known is not None:
        return [Compared(f'load {k}', load.record.stamp_ns, load.record.mass, known)
                for k, load in enumerate(counted, 1)]
    kind, rows = _table(Path(text))
    weighed = _sums(counted, NAMES[kind]) if kind in NAMES else {
        str(k): (load.record.mass, load.record.stamp_ns) for k, load in enumerate(counted, 1)}
    strange = next((name for name in rows if name not in weighed), None)
    if strange is not None:
        raise SettingError(OPTION, f'{text}: {kind} {strange}', f'one of {", ".join(weighed)}')
    return [Compared(f'{kind} {name}', weighed[name][1], weighed[name][0], mass) for name, mass in rows.items()]


def _sums(counted: Sequence[WeighedLoad], name_of: Callable[[WeighedLoad], str]) -> dict[str, Weighed]:
    names = dict.fromkeys(map(name_of, counted))
    parts = {name: [load.record for load in counted if name_of(load) == name] for name in names}
    return {name: (combined((1.0, record.mass) for record in records), records[-1].stamp_ns)
            for name, records in parts.items()}


def _mass(text: str) -> KnownMass | None:
    """One mass; None where the text is none, and so a file's name."""
    value, sign, deviation = text.partition('+-')
    try:
        number, unit = split_number(value.strip())
        stddev, other = split_number(deviation.strip()) if sign else (0.0, '')
        factors = [unit_factor(name or 'kg', 'kg') for name in (unit or other, other or unit)]
    except ValueError:
        return None
    return _checked(number * factors[0], stddev * factors[1], text)


def _checked(mass: float, stddev: float, shown: str) -> KnownMass:
    if not (0.0 < mass <= HEAVIEST and 0.0 <= stddev <= HEAVIEST):
        raise SettingError(OPTION, shown, f'a mass above 0 and a standard deviation of 0 or more, to {HEAVIEST:g} kg')
    return KnownMass(mass, stddev)


def _table(path: Path) -> tuple[str, dict[str, KnownMass]]:
    """What its rows are of, and their masses; raises SettingError, OSError."""
    if not path.is_file():
        raise SettingError(OPTION, str(path), f'{EXPECTED}; there is no file of this name')
    try:
        with open(regular(path), newline='', encoding='utf-8') as file:
            rows = [row for row in csv.reader(file) if any(cell.strip() for cell in row)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise SettingError(OPTION, str(path), f'{EXPECTED}: {error}') from None
    headings = {name.strip(): (place, unit.strip(' ]')) for place, (name, _, unit) in enumerate(
        heading.partition('[') for heading in (rows[0] if rows else ()))}
    kinds = [kind for kind in KEYS if kind in headings]
    unknown = set(headings) - {*KEYS, 'mass', 'stddev'}
    if len(kinds) != 1 or 'mass' not in headings or unknown or len(rows) < 2:
        raise SettingError(OPTION, f'{path}: {", ".join(rows[0]) if rows else "nothing"}', EXPECTED)
    factors = {}
    for name in ('mass', 'stddev'):
        try:
            factors[name] = unit_factor(headings.get(name, (0, 'kg'))[1] or 'kg', 'kg')
        except ValueError as error:
            raise SettingError(OPTION, f'{path}: {name}', f'a unit of mass: {error}') from None
    found: dict[str, KnownMass] = {}
    for line, row in enumerate(rows[1:], 2):
        try:
            name = row[headings[kinds[0]][0]].strip()
            mass, stddev = (float(row[headings[item][0]]) * factors[item] if item in headings else 0.0
                            for item in ('mass', 'stddev'))
        except (IndexError, ValueError):
            raise SettingError(OPTION, f'{path}, row {line}: {", ".join(row)}', 'a name and numbers') from None
        if name in found:
            raise SettingError(OPTION, f'{path}, row {line}: {kinds[0]} {name}', f'each {kinds[0]} once')
        found[name] = _checked(mass, stddev, f'{path}, row {line}: {", ".join(row)}')
    return kinds[0], found
