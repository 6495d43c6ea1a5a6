# SPDX-License-Identifier: Apache-2.0
"""A graph as a picture (SVG) like Figs. 2 to 4 of Blanco-Claraco et al., factor graphs: circles are variables, squares
are factors."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from html import escape

from .graph import ALWAYS, FactorGraph, key_name

COLUMN, ROW, RADIUS, SIDE, MARGIN = 190.0, 92.0, 20.0, 12.0, 70.0
INSTANTS = 4            # drawn at most
SYMBOLS = {'q': 'q', 'qd': 'q\u0307', 'qdd': 'q\u0308', 'z': 'z', 'zd': 'z\u0307', 'zdd': 'z\u0308', 'Q': 'Q',
           'parameters': 'p'}
ORDER = ('q', 'qd', 'qdd', 'zdd', 'zd', 'z', 'Q')       # from top to bottom, as in the figures
COLOURS = ('#3b6ea5', '#b5563c', '#4d8a57', '#7d5ba6', '#a88532', '#33808a', '#9c4670', '#666666')

# label, variables and blind variables of a factor
Drawn = tuple[str, tuple[tuple[str, int], ...], set[tuple[str, int]]]


@dataclass(frozen=True)
class PicturePoint:
    """A point of the picture."""

    x: float
    y: float


def draw_graph(graph: FactorGraph, title: str = '', instants: int = INSTANTS) -> str:
    """SVG of the first instants of a graph; factors that reach further are left out.

    A dotted line leads to a variable by which a factor does not change, only where its iteration starts.
    """
    known = {int(step) for series in graph.series.values() for step in series.steps}
    steps = sorted(known - {ALWAYS})[:instants]
    places = _variables(graph, steps)
    drawn = _factors(graph, places)
    labels = list(dict.fromkeys(label for label, *_ in drawn))
    colours = {label: COLOURS[k % len(COLOURS)] for k, label in enumerate(labels)}
    lines, squares = [], []
    for (label, keys, blind), at in zip(drawn, _spread(drawn, places)):
        for key in keys:
            style = ' stroke-dasharray="2 4"' if key in blind else ''
            lines.append(f'<line x1="{at.x:.1f}" y1="{at.y:.1f}" x2="{places[key].x:.1f}" y2="{places[key].y:.1f}" '
                         f'stroke="#999" stroke-width="1.2"{style}/>')
        squares.append(f'<rect x="{at.x - SIDE / 2:.1f}" y="{at.y - SIDE / 2:.1f}" width="{SIDE:g}" height="{SIDE:g}" '
                       f'fill="{colours[label]}"><title>{escape(label)}: '
                       f'{escape(", ".join(key_name(*key) for key in keys))}</title></rect>')
    circles = [_circle(key, at) for key, at in places.items()]
    width = max(at.x for at in places.values()) + MARGIN + 40
    height = max(at.y for at in places.values()) + MARGIN
    legend, bottom = _legend(colours, height, width)
    heading = f'<text x="{MARGIN / 2:g}" y="26" font-size="16">{escape(title)}</text>' if title else ''
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {bottom:.0f}" width="{width:.0f}" '
            f'height="{bottom:.0f}" font-family="sans-serif"><rect width="100%" height="100%" fill="white"/>'
            + heading + ''.join([*lines, *squares, *circles, *legend]) + '</svg>\n')


def _variables(graph: FactorGraph, steps: list[int]) -> dict[tuple[str, int], PicturePoint]:
    """Where the variables are: a column for each instant, a row for each name; constants in a column on the right."""
    names = sorted(graph.series, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
    over_time = [name for name in names if (graph.series[name].steps != ALWAYS).any()]
    places = {}
    for row, name in enumerate(over_time):
        known = set(graph.series[name].steps.tolist())
        for column, step in enumerate(steps):
            if step in known:
                places[name, step] = PicturePoint(MARGIN + 50 + COLUMN * column, MARGIN + ROW * row)
    right = MARGIN + 50 + COLUMN * max(len(steps), 1)
    constants = [name for name in names if (graph.series[name].steps == ALWAYS).any()]
    for row, name in enumerate(constants):
        places[name, ALWAYS] = PicturePoint(right, MARGIN + ROW * row)
    return places


def _factors(graph: FactorGraph, places: dict[tuple[str, int], PicturePoint]) -> list[Drawn]:
    """The factors whose variables are all drawn; each once."""
    found, seen = [], set()
    for factors in graph.factors:
        roles = list(factors.kind.variables)
        for instance in range(len(factors)):
            keys = tuple(factors.keys(instance))
            if all(key in places for key in keys) and (factors.label, keys) not in seen:
                seen.add((factors.label, keys))
                found.append((factors.label, keys, {keys[roles.index(role)] for role in factors.kind.blind}))
    return found


def _spread(drawn: list[Drawn], places: dict[tuple[str, int], PicturePoint]) -> list[PicturePoint]:
    """Where the factors are: in the middle of their variables, beside a single one, no two at one place."""
    around: dict[tuple[str, int], int] = defaultdict(int)
    taken: dict[tuple[int, int], int] = defaultdict(int)
    found = []
    for _, keys, _ in drawn:
        unique = list(dict.fromkeys(keys))
        if len(unique) == 1:
            at, number = places[unique[0]], around[unique[0]]
            around[unique[0]] += 1
            found.append(PicturePoint(at.x - 44, at.y - 24 + 24 * number))
            continue
        x, y = (sum(getattr(places[key], axis) for key in unique) / len(unique) for axis in 'xy')
        if len({places[key].x for key in unique}) == 1:
            x += 34                                     # beside its column, not on the circles
        number = taken[round(x / 20), round(y / 20)]
        taken[round(x / 20), round(y / 20)] += 1
        found.append(PicturePoint(x + 20 * number, y + 12 * number))
    return found


def _circle(key: tuple[str, int], at: PicturePoint) -> str:
    """A variable with its symbol and step."""
    name, step = key
    symbol = SYMBOLS.get(name, name)
    below = f'<tspan dy="4" font-size="10">{step}</tspan>' if step != ALWAYS else ''
    size = 15 if len(symbol) <= 2 else 9
    return (f'<circle cx="{at.x:.1f}" cy="{at.y:.1f}" r="{RADIUS:g}" fill="white" stroke="black" stroke-width="1.3"/>'
            f'<text x="{at.x:.1f}" y="{at.y + 5:.1f}" text-anchor="middle" font-size="{size}">{escape(symbol)}{below}'
            f'<title>{escape(key_name(*key))}</title></text>')


def _legend(colours: dict[str, str], top: float, width: float) -> tuple[list[str], float]:
    """Names of the factors under the picture, and where they end."""
    made, across = [], max(1, int((width - MARGIN) // 190))
    for k, (label, colour) in enumerate(colours.items()):
        x, y = MARGIN / 2 + 190 * (k % across), top + 22 * (k // across)
        made.append(f'<rect x="{x:.1f}" y="{y - 10:.1f}" width="{SIDE:g}" height="{SIDE:g}" fill="{colour}"/>'
                    f'<text x="{x + 20:.1f}" y="{y:.1f}" font-size="12">{escape(label)}</text>')
    return made, top + 22 * ((len(colours) - 1) // across + 1) + 10
