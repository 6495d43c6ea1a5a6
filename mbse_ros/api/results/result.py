# SPDX-License-Identifier: Apache-2.0
"""What all results have in common: words, JSON, a report; named series over time with units, as table and figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import MissingModuleError, check_choice
from .series import ResultSeries, panels_of

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

    from ...report.chart import Panel
    from ...report.data import Table

MOST = 8                # pairs of axes in a figure where no names are given


class Result:
    """Series over the times ``t`` (k,), s. What a class of results adds: ``series()`` in the order of its columns, and
    the words of the command line that gives it: ``summary``, ``to_json``, ``report``."""

    if TYPE_CHECKING:
        @property
        def t(self) -> np.ndarray:
            """Times (k,), s."""

    def __repr__(self) -> str:
        """What it is, how long, and the mass, or what else is first, at the end; subclasses keep it by ``repr=False``
        of their dataclass, since arrays fill a screen."""
        of = getattr(self, 'machine', None) or getattr(self, 'model', None)
        name = f'{type(self).__name__} {of.description.name}' if of else type(self).__name__
        return f'<{name}: {", ".join([_span(self.t), *self._end()])}>'

    def _end(self) -> list[str]:
        """What it is at the end, in a word or two."""
        return [_at_end(item) for item in self.main_series()[:1] if len(self.t)]

    @property
    def _kept(self) -> Any:
        """What was kept of a log, with words of its own; None of what was not made of one."""
        return None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was odd, one line each."""
        return () if self._kept is None else tuple(self._kept.warnings)

    def tables(self) -> list[Table]:
        """What the command line prints as tables before it."""
        return []

    def summary(self) -> list[str]:
        """What the command line prints of it, a line each; of other results the main columns at the end."""
        if self._kept is not None:
            return list(self._kept.summary())
        lines = [f'{_span(self.t)}; at the end']
        return [*lines, *(f'  {_at_end(item)}' for item in self.main_series())]

    def to_json(self, full: bool = False) -> dict[str, Any]:
        """What ``--json`` writes, in lists, numbers and words of Python, None where a number is not known; ``full``:
        with every instant."""
        from ...report.files import plain  # here, as it takes its time to import
        found: dict[str, Any] = plain(self._values(full))
        return found

    def _values(self, full: bool) -> dict[str, Any]:
        """The same with arrays."""
        if self._kept is not None:
            return dict(self._kept.to_json(full))
        result: dict[str, Any] = {'instants': len(self.t), 'end': {
            item.name: {'value': item.values[-1], 'unit': item.unit,
                        'stddev': None if item.stddev is None else item.stddev[-1]} for item in self.series()}}
        return result | ({'t': self.t, 'state': {item.name: item.values for item in self.series()}} if full else {})

    def report(self, folder: str | Path) -> Path:
        """Write all columns as ``table.csv`` and the main ones as ``plot.png`` into a folder; gives it. Some results
        have a report of their own. Raises OSError."""
        from ...report.files import write_table  # here, as it takes its time to import
        from ...report.plots import write_plots
        place, series = Path(folder), self.series()
        place.mkdir(parents=True, exist_ok=True)
        columns = [(f'{item.name} [{item.unit}]', item.values) for item in series]
        columns += [(f'{item.name} stddev [{item.unit}]', item.stddev) for item in series if item.stddev is not None]
        write_table(place / 'table.csv', ['t [s]', *(name for name, _ in columns)],
                    [self.t, *(values for _, values in columns)])
        write_plots(panels_of(self.t, first_panels(self.main_series()), {}), place / 'plot.png')
        return place

    def series(self) -> list[ResultSeries]:
        """All columns."""
        raise NotImplementedError

    def _found(self) -> dict[str, ResultSeries]:
        """The columns by name, and those that have a further name."""
        return {item.name: item for item in self.series()}

    @property
    def units(self) -> dict[str, str]:
        """Unit of each column, SI; '1' where it has none."""
        return {name: item.unit for name, item in self._found().items()}

    def __getitem__(self, name: str) -> np.ndarray:
        """The column (k,) of a name; raises SettingError that lists the names."""
        return self.chosen([name])[0].values

    def chosen(self, names: Sequence[str]) -> list[ResultSeries]:
        """The series of these names; raises SettingError."""
        found = self._found()
        for name in names:
            check_choice('name', name, found)
        return [found[name] for name in names]

    def to_dataframe(self) -> pandas.DataFrame:
        """A pandas.DataFrame with the index ``t`` and a column for each series, ``name stddev`` beside it where that is
        known; units in ``attrs['units']``. Raises MissingModuleError without pandas."""
        try:
            import pandas
        except ImportError as error:
            raise MissingModuleError('pandas', 'to_dataframe() makes one of its tables',
                                     'pip install pandas, or pip install "mbse_ros[table]"', str(error)) from error
        columns: dict[str, np.ndarray] = {}
        for item in self.series():
            columns[item.name] = item.values
            if item.stddev is not None:
                columns[f'{item.name} stddev'] = item.stddev
        table = pandas.DataFrame(columns, index=pandas.Index(self.t, name='t'))
        table.attrs['units'] = self.units
        return table

    def plot(self, *names: str, truth: Result | None = None) -> Figure:
        """Draw the series of these names, by default the main ones; 95 % intervals as bands, and what ``truth`` has
        under the same names as dashes. Gives the matplotlib Figure, which pyplot knows. Raises SettingError."""
        return drawn(self.t, self.chosen(names) if names else first_panels(self.main_series()), truth)

    def main_series(self) -> list[ResultSeries]:
        """What a figure shows where no names are given, as far as it has room."""
        return self.series()


def _span(t: np.ndarray) -> str:
    return f'{len(t)} instants' + (f' over {t[-1] - t[0]:g} s' if len(t) else '')


def _at_end(item: ResultSeries) -> str:
    """Its last value, with the deviation."""
    stddev = '' if item.stddev is None else f' +- {item.stddev[-1]:.2g}'
    return f'{item.name} {item.values[-1]:.6g}{stddev}{"" if item.unit == "1" else " " + item.unit}'


def first_panels(series: Sequence[ResultSeries]) -> list[ResultSeries]:
    """The series of the first ``MOST`` panels."""
    kept = list(dict.fromkeys(item.panel or item.name for item in series))[:MOST]
    return [item for item in series if (item.panel or item.name) in kept]


def drawn(t: np.ndarray, series: Sequence[ResultSeries], truth: Result | None = None) -> Figure:
    """Figure of series over times (k,), s."""
    known = {} if truth is None else {item.name: (truth.t, item.values) for item in truth.series()}
    return figure_of(panels_of(t, series, known))


def figure_of(panels: Sequence[Panel]) -> Figure:
    """Panels as a figure that pyplot knows."""
    from matplotlib import pyplot  # here, because it takes its time to import

    from ...report.plots import draw_plots
    return draw_plots(panels, lambda width, height: pyplot.figure(figsize=(width, height), facecolor='white'))
