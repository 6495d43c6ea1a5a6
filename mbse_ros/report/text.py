# SPDX-License-Identifier: Apache-2.0
"""Numbers and results as text, with no more digits than they carry; tables of text on the terminal."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from .data import Clock, PayloadTrack

if TYPE_CHECKING:
    from rich.console import Console

    from ..description.tables import Section

T = TypeVar('T')
LONG = 10800.0      # s: an axis that is longer has hours, and times of day without seconds
WIDEST = 1000       # characters of a line in a file


def number(value: float, digits: int = 3) -> str:
    """The value with so many significant digits and no exponent in ordinary ranges; a dash where it is not finite."""
    if not math.isfinite(value):
        return '–'
    if value != 0 and not 1e-4 <= abs(value) < 1e6:
        return f'{value:.{digits - 1}e}'
    return f'{value:.{_decimals(value, digits)}f}'


def _decimals(value: float, digits: int) -> int:
    """Decimals that show the value with so many significant digits."""
    if value == 0 or not math.isfinite(value):
        return 0
    rounded = float(f'{abs(value):.{digits - 1}e}')
    return max(0, digits - 1 - math.floor(math.log10(rounded)))


def percent(share: float) -> str:
    """A share in per cent with one decimal; a dash where there is none."""
    return f'{100 * share:.1f} %' if math.isfinite(share) else '–'


def slug(text: str) -> str:
    """A file name of lower-case letters, digits and underscores."""
    return re.sub(r'[^a-z0-9]+', '_', text.lower()).strip('_') or 'chart'


def interval_text(value: float, lower: float, upper: float) -> str:
    """A value and its half-width, with the digits that this supports."""
    half = 0.5 * (upper - lower)
    decimals = min(3, _decimals(half, 2)) if math.isfinite(half) else 1
    return f'{value:.{decimals}f}' + (f' ± {half:.{decimals}f}' if math.isfinite(half) else '')


def mass_answer(track: PayloadTrack) -> tuple[str, list[str]]:
    """The mass at the end of the run as one headline, and the lines that explain it."""
    known = np.flatnonzero(np.isfinite(track.mass))
    ending, of = _ending(track), f'{track.name}: ' if track.name else ''
    if known.size == 0:
        return f'{of}no mass', ['No sample went into the mass.', *filter(None, [track.reference]), ending]
    last = known[-1]
    mass, lower, upper = (float(column[last]) for column in (track.mass, track.lower, track.upper))
    half = 0.5 * (upper - lower)
    decimals = min(3, _decimals(half, 2)) if math.isfinite(half) else 1
    lines = [f'95 % interval {lower:.{decimals}f} to {upper:.{decimals}f} kg'] if math.isfinite(half) else [
        'Its interval is not known.']
    if track.true is not None and np.isfinite(track.true[last]):
        where = 'inside' if lower <= track.true[last] <= upper else 'outside'
        error = mass - track.true[last]
        lines.append(f'True mass {track.true[last]:.6g} kg: {where} the interval, error {error:+.{decimals}f} kg')
    if track.reference:
        lines.append(track.reference)
    lines.append(ending)
    return f'{of}{interval_text(mass, lower, upper)} kg', lines


def _ending(track: PayloadTrack) -> str:
    """The status at the end of the run as a sentence."""
    if track.t.size == 0:
        return 'There is no data.'
    code = int(track.status[-1])
    return f'At the end of the run: {"" if code == track.updating else "held, "}{track.status_names[code]}'


def cost(seconds: float, log_seconds: float) -> dict[str, float]:
    """Computing time of a log as JSON."""
    return {'seconds': seconds, 'real_time_share': seconds / log_seconds}


def cost_line(seconds: float, log_seconds: float, what: str = '') -> str:
    """The same in words."""
    return f'{log_seconds:.1f} s of data{what} in {computing_time(seconds, log_seconds)}'


def computing_time(seconds: float, log_seconds: float) -> str:
    """With its share of real time."""
    return f'{seconds:.3f} s ({100 * seconds / log_seconds:.2f} % of real time)'


def wall_time(*stamps_ns: int) -> str:
    """Stamps as times of day, UTC; '' where one is of a clock that was never set."""
    moments = [datetime.fromtimestamp(stamp // 1_000_000_000, timezone.utc) for stamp in stamps_ns]
    if any(moment.year <= 1970 for moment in moments):
        return ''
    same = all(moment.date() == moments[0].date() for moment in moments)
    words = [f'{moment:%H:%M:%S}' if same and k else f'{moment:%Y-%m-%d %H:%M:%S}' for k, moment in enumerate(moments)]
    return f'{" to ".join(words)} UTC'


def clock_of(zero_ns: int, seconds: float = 1.0) -> Clock | None:
    """The time of day of an axis whose zero has a stamp; None where that is of a clock that was never set."""
    return Clock(zero_ns, seconds) if wall_time(zero_ns) else None


def time_of_day(clock: Clock, value: float, span: float) -> str:
    """At a value of the axis, UTC; with seconds where its ``span`` is short, and with the decimals of them that tell
    its labels from each other."""
    seconds = span * clock.seconds
    digits = max(0, min(3, 1 - math.floor(math.log10(seconds / 6.0)))) if seconds > 0.0 else 3
    ticks = 10 ** digits
    count = round((clock.zero_ns * 1e-9 % 86400.0 + value * clock.seconds) * ticks)
    moment = datetime.fromtimestamp(count // ticks, timezone.utc)
    if seconds >= LONG:
        return f'{moment:%H:%M}'
    return f'{moment:%H:%M:%S}' + (f'.{count % ticks:0{digits}d}' if digits else '')


def time_unit(seconds: float) -> tuple[str, float]:
    """Unit of time in which a length of time is read best, and its seconds."""
    return next((name, size) for name, size, most in (('s', 1.0, 300.0), ('min', 60.0, LONG), ('h', 3600.0, math.inf))
                if seconds <= most)


def lag_text(lag: float | None) -> str:
    """Lag of a smoother, s, or whole log, in words."""
    return 'all at once' if lag is None else f'{lag:g} s of lag'


def wide_console(width: int = 120) -> Console:
    """Console that is as wide as the terminal, in a file or a pipe as given."""
    from rich.console import Console  # here, as below: slow to import
    console = Console()
    return console if console.is_terminal else Console(width=width)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines of text, with columns as wide as their widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ['  '.join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def tracked(items: Iterable[T], what: str, count: int) -> Iterable[T]:
    """The same items, with a bar on a terminal."""
    from rich.progress import track
    console = wide_console()
    return track(items, what, count, console=console, transient=True, disable=not console.is_terminal)


def print_sections(console: Console, sections: Sequence[Section]) -> None:
    """Print tables of name, value and note."""
    from rich.table import Table
    from rich.text import Text
    for section in sections:
        table = Table(title=Text(section.title), title_justify='left', show_header=False, box=None, padding=(0, 2))
        for _ in range(3):
            table.add_column(overflow='fold')
        for row in section.rows:
            table.add_row(Text(row.name), Text(row.value), Text(row.note))     # no markup in a file's words
        console.print(table)
        console.print()


def print_table(console: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table of figures: the first column to the left, all others to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text
    table = Table(title=Text(title), title_justify='left', box=SIMPLE_HEAD, padding=(0, 1))
    for k, column in enumerate(columns):
        table.add_column(column, justify='right' if k else 'left')
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    if not console.is_terminal:     # nothing is cut in a file
        console.width = max(console.width, console.measure(table, options=console.options.update(
            max_width=WIDEST)).maximum)
    console.print(table)
