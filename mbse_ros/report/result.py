# SPDX-License-Identifier: Apache-2.0
"""What all results have in common: words, JSON, a report, by which the command line hands them over; named series over
time with units, as table and figure.

In a figure series of one panel share its axes, 95 % intervals are bands, the truth is dashed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..description.coordinate_units import unit_of
from ..description.model import MechanismDescription
from ..errors import MissingModuleError, check_choice
from .data import COLORS, PALETTE, Band, Curve, Panel, Table
from .series import interval

if TYPE_CHECKING:
    import pandas
    import xarray  # type: ignore[import-not-found,unused-ignore]
    from matplotlib.figure import Figure

MOST = 8                # pairs of axes in a figure where no names are given
Known = Mapping[str, tuple[np.ndarray, np.ndarray]]
OTHERS = {'pressure': 'Pa', 'supply': 'Pa', 'spool': 'V', 'flow': 'm^3/s', 'inclination': 'rad', 'payload': 'kg',
          'base_acceleration': 'm/s^2', 'moment': 'kg m', 'command': 'V', 'swing_rate': '1/s'}
RATES = {'position': '', 'velocity': '/s', 'acceleration': '/s^2'}


class Answer:
    """What a verb of the Python API gives. Its classes add the words: ``summary``, ``_values``, what else they have."""

    if TYPE_CHECKING:
        @property
        def warnings(self) -> Sequence[str]:
            """What was odd, one line each."""

        @property
        def doubts(self) -> Sequence[str]:
            """Why it is not to be trusted, one line each, some of the ``warnings``; ``summary`` has them, too."""
    else:
        warnings = doubts = ()       # dataclasses have fields of these names

    @property
    def _distrust(self) -> list[str]:
        """Lines of ``summary`` with the doubts."""
        return [f'not trusted: {doubt}' for doubt in self.doubts]

    @property
    def _trust(self) -> dict[str, Any]:
        """The same in JSON, nothing without doubts."""
        return {'trusted': False, 'doubts': list(self.doubts)} if self.doubts else {}

    def tables(self) -> list[Table]:
        """What the command line prints as tables, first."""
        return []

    def summary(self) -> list[str]:
        """What it prints then, a line each."""
        return []

    def to_json(self, full: bool = False) -> dict[str, Any]:
        """What ``--json`` writes, in lists, numbers and words of Python, None where a number is not known; ``full``:
        with every instant."""
        from .files import plain  # here, as it takes its time to import
        found: dict[str, Any] = plain(self._values(full))
        return found

    def _values(self, full: bool) -> dict[str, Any]:
        """The same with arrays."""
        return {}


@dataclass(frozen=True)
class Written(Answer):
    """What was written, in words, and what was odd."""

    words: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    def summary(self) -> list[str]:
        """The words."""
        return list(self.words)


class Result(Answer):
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
        described = getattr(of, 'description', None)
        name = f'{type(self).__name__} {described.name}' if described else type(self).__name__
        return f'<{name}: {", ".join([_span(self.t), *self._end()])}>'

    def _repr_html_(self) -> str:
        """The same in a notebook, with the main columns at the end and the warnings."""
        rows = ''.join(f'<tr><td>{escape(item.name)}</td><td>{item.values[-1]:.6g}</td><td>'
                       f'{"" if item.stddev is None else f"&plusmn; {item.stddev[-1]:.2g}"}</td><td>'
                       f'{escape(item.unit)}</td></tr>' for item in self.main_series()[:MOST] if len(self.t))
        said = ''.join(f'<li>{escape(line)}</li>' for line in self.warnings)
        return f'<p>{escape(repr(self)[1:-1])}</p><table>{rows}</table>{f"<ul>{said}</ul>" if said else ""}'

    def _end(self) -> list[str]:
        """What it is at the end, in a word or two."""
        return [_at_end(item) for item in self.main_series()[:1] if len(self.t)]

    def summary(self) -> list[str]:
        """What the command line prints of it, a line each; of other results the main columns at the end."""
        lines = [f'{_span(self.t)}; at the end']
        return [*lines, *(f'  {_at_end(item)}' for item in self.main_series())]

    def _values(self, full: bool) -> dict[str, Any]:
        result: dict[str, Any] = {'instants': len(self.t), 'end': {
            item.name: {'value': item.values[-1], 'unit': item.unit,
                        'stddev': None if item.stddev is None else item.stddev[-1]} for item in self.series()}}
        return result | ({'t': self.t, 'state': {item.name: item.values for item in self.series()}} if full else {})

    def report(self, folder: str | Path, pictures: bool = True) -> Path:
        """Write all columns as ``table.csv`` and, with ``pictures``, the main ones as ``plot.png`` into a folder;
        gives it. Some results have a report of their own. Raises OSError."""
        from .files import write_table  # here, as it takes its time to import
        from .plots import write_plots
        place, series = Path(folder), self.series()
        place.mkdir(parents=True, exist_ok=True)
        columns = [(f'{item.name} [{item.unit}]', item.values) for item in series]
        columns += [(f'{item.name} stddev [{item.unit}]', item.stddev) for item in series if item.stddev is not None]
        write_table(place / 'table.csv', ['t [s]', *(name for name, _ in columns)],
                    [self.t, *(values for _, values in columns)])
        if pictures:
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

    def to_xarray(self) -> xarray.Dataset:
        """An xarray.Dataset over ``t`` with a variable for each series, ``<name>_stddev`` beside it if that is
        known; units in the variables' ``attrs``. Raises MissingModuleError without xarray."""
        try:
            import xarray
        except ImportError as error:
            raise MissingModuleError('xarray', 'to_xarray() makes one of its datasets', 'pip install xarray',
                                     str(error)) from error
        found = {}
        for item in self.series():
            found[item.name] = ('t', item.values, {'units': item.unit})
            if item.stddev is not None:
                found[f'{item.name}_stddev'] = ('t', item.stddev, {'units': item.unit})
        return xarray.Dataset(found, {'t': ('t', self.t, {'units': 's'})}, {'warnings': list(self.warnings)})

    def save(self, path: str | Path, covariance: str = 'bands') -> Path:
        """Write all series into a file .npz, which ``mbse_ros.read_result`` and numpy.load read; ``covariance``:
        'none', 'bands' (deviations), or 'full': also the covariances (k, l, l) of a mechanism's filter. Gives its
        path. Raises SettingError, OSError."""
        from .files import save_result  # here, as it takes its time to import
        return save_result(self, Path(path), covariance)

    def _saved(self) -> dict[str, np.ndarray]:
        """Further arrays of a class, for ``save``."""
        return {}

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

    from .plots import draw_plots, with_fonts
    return with_fonts(draw_plots(panels, lambda width, height: pyplot.figure(figsize=(width, height),
                                                                             facecolor='white')))


@dataclass(frozen=True)
class ResultSeries:
    """One column (k,) over time, SI; ``stddev`` (k,), or ``lower`` and ``upper`` ends (k,) of its 95 % interval, where
    they are known; ``panel``: what it is drawn with, default alone."""

    name: str
    unit: str
    values: np.ndarray
    stddev: np.ndarray | None = None
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None
    panel: str = ''

    @property
    def interval(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Ends (k,) of the 95 % interval."""
        if self.lower is not None and self.upper is not None:
            return self.lower, self.upper
        if self.stddev is None:
            return None
        return interval(self.values, self.stddev)


def panels_of(t: np.ndarray, series: Sequence[ResultSeries], truth: Known) -> list[Panel]:
    """Panels over times (k,), s; ``truth``: times and values by the name of a series."""
    groups: dict[str, list[ResultSeries]] = {}
    for item in series:
        groups.setdefault(item.panel or item.name, []).append(item)
    return [_panel(title, t, members, truth) for title, members in groups.items()]


def _panel(title: str, t: np.ndarray, members: Sequence[ResultSeries], truth: Known) -> Panel:
    alone = len(members) == 1
    curves, bands = [], []
    for k, item in enumerate(members):
        color = COLORS['estimated'] if alone else PALETTE[k % len(PALETTE)]
        samples = bool(np.isnan(item.values).any()) and item.interval is None
        shown = alone and (item.name in truth or item.interval is not None)
        curves.append(Curve('estimate' if shown else '' if alone else item.name, t, item.values, color,
                            'samples' if samples else 'line'))
        if item.interval is not None:
            bands.append(Band('95 %' if alone else '', t, *item.interval, color))
        if item.name in truth:
            curves.append(Curve('truth' if alone else '', *truth[item.name],
                                COLORS['true'] if alone else color, 'dashes'))
    unit = '' if members[0].unit == '1' else members[0].unit
    return Panel(title, unit, curves, tuple(bands), limits=_limits(members))


def _limits(members: Sequence[ResultSeries]) -> tuple[float, float] | None:
    """Limits of y that the widest intervals, such as those of a start, do not stretch; None: as all fits."""
    ends = [item.interval for item in members if item.interval is not None]
    values = np.concatenate([item.values[np.isfinite(item.values)] for item in members])
    if not ends or not values.size:
        return None
    low = min([values.min(), *(_quantile(lower, 0.05) for lower, _ in ends)])
    high = max([values.max(), *(_quantile(upper, 0.95) for _, upper in ends)])
    margin = 0.05 * (high - low) or 1.0
    return float(low - margin), float(high + margin)


def _quantile(values: np.ndarray, share: float) -> float:
    finite = values[np.isfinite(values)]
    return float(np.quantile(finite, share)) if finite.size else 0.0


def with_entries(found: Mapping[str, ResultSeries], names: Sequence[str], mean: np.ndarray, stddev: np.ndarray,
                 unit: Callable[[str], str]) -> dict[str, ResultSeries]:
    """Series by name, and after them the entries ``names`` (l,) of a state that have no series of that name, from its
    ``mean`` and ``stddev`` (k, l)."""
    return {**found, **{name: ResultSeries(name, unit(name), mean[:, k], stddev[:, k])
                        for k, name in enumerate(names) if name not in found}}


def entry_unit(description: MechanismDescription, name: str) -> str:
    """Unit of an entry of the state such as 'position/lift', SI; '1' of one that has none."""
    kind, _, owner = name.partition('/')
    return rate_unit(description, owner, kind) if kind in RATES else OTHERS.get(kind, '1')


def rate_unit(description: MechanismDescription, name: str, kind: str) -> str:
    """Unit of a coordinate or its rate, SI; '1' where it has none."""
    return (unit_of(description, name) or '1') + RATES[kind]
