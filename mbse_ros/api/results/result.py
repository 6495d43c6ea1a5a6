# SPDX-License-Identifier: Apache-2.0
"""What all results have in common: named series over time with units, as a table and as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import MissingModuleError, check_choice
from .series import ResultSeries, panels_of

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

MOST = 8                # pairs of axes in a figure where no names are given


class Result:
    """Series over the times ``t`` (k,), s. What a class of results adds: ``series()`` in the order of its columns."""

    if TYPE_CHECKING:
        @property
        def t(self) -> np.ndarray:
            """Times (k,), s."""

    def series(self) -> list[ResultSeries]:
        """All columns."""
        raise NotImplementedError

    @property
    def units(self) -> dict[str, str]:
        """Unit of each column, SI; '1' where it has none."""
        return {item.name: item.unit for item in self.series()}

    def __getitem__(self, name: str) -> np.ndarray:
        """The column (k,) of a name; raises SettingError that lists the names."""
        return self.chosen([name])[0].values

    def chosen(self, names: Sequence[str]) -> list[ResultSeries]:
        """The series of these names; raises SettingError."""
        found = {item.name: item for item in self.series()}
        for name in names:
            check_choice('name', name, found)
        return [found[name] for name in names]

    def to_dataframe(self) -> pandas.DataFrame:
        """A pandas.DataFrame with the index ``t`` and a column for each series, ``name stddev`` beside it where that is
        known; units in ``attrs['units']``. Raises MissingModuleError without pandas."""
        pandas = _pandas()
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


def first_panels(series: Sequence[ResultSeries]) -> list[ResultSeries]:
    """The series of the first ``MOST`` panels."""
    kept = list(dict.fromkeys(item.panel or item.name for item in series))[:MOST]
    return [item for item in series if (item.panel or item.name) in kept]


def drawn(t: np.ndarray, series: Sequence[ResultSeries], truth: Result | None = None) -> Figure:
    """Figure of series over times (k,), s."""
    from matplotlib import pyplot  # here, because it takes its time to import

    from ...report.plots import draw_plots
    known = {} if truth is None else {item.name: (truth.t, item.values) for item in truth.series()}
    panels = panels_of(t, series, known)
    return draw_plots(panels, lambda width, height: pyplot.figure(figsize=(width, height), facecolor='white'))


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise MissingModuleError('pandas', 'to_dataframe() makes one of its tables',
                                 'pip install pandas, or pip install "mbse_ros[table]"', str(error)) from error
    return pandas
