# SPDX-License-Identifier: Apache-2.0
"""Several results in one figure, as a paper prints it: names of the filters, units, colours that colour-blind readers
distinguish."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..errors import SettingError
from .data import Curve, Panel
from .result import Result, figure_of, first_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito, Color Universal Design, 2008; with a kind of line each, as some print in grey
COLORS = '#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#000000'
KINDS = 'line', 'dashes', 'dotted'
TRUE = '#888888'


def compare(results: Mapping[str, Result], *names: str, truth: Result | None = None) -> Figure:
    """Draw several ``results``, by what the legend calls them, over each other: the series of these ``names``, by
    default the main ones of the first result, one pair of axes each, and the ``truth``. Gives the matplotlib Figure;
    saved as PDF its fonts are embedded. Raises SettingError.

    >>> motion = simulate('four_bar', 2.0, sensors=['encoder'])
    >>> found = {name: Observer('four_bar', name, ['encoder']).run(motion.samples) for name in ('UKF', 'errorEKF_FE')}
    >>> compare(found, 'theta', 'theta_dot', truth=motion).savefig('filters.pdf')
    """
    if not isinstance(results, Mapping) or not results or not all(
            isinstance(item, Result) for item in results.values()):
        raise SettingError('results', type(results).__name__, 'results by name, one or more: {"UKF": ..., "DEKF": ...}')
    first = next(iter(results.values()))
    wanted = names or tuple(item.name for item in first_panels(first.main_series()))
    chosen = {label: {item.name: item for item in result.chosen(wanted)} for label, result in results.items()}
    known = {} if truth is None else {item.name: item for item in truth.series()}
    panels = []
    for name in wanted:
        curves = [Curve(label, results[label].t, found[name].values, COLORS[k % len(COLORS)],
                        KINDS[k // len(COLORS) % len(KINDS)]) for k, (label, found) in enumerate(chosen.items())]
        if truth is not None and name in known:
            curves.insert(0, Curve('truth', truth.t, known[name].values, TRUE))
        unit = chosen[next(iter(chosen))][name].unit
        panels.append(Panel(name, '' if unit == '1' else unit, curves))
    return figure_of(panels)
