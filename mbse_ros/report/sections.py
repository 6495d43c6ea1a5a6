# SPDX-License-Identifier: Apache-2.0
"""Tables of text on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..description.tables import Section

T = TypeVar('T')


WIDEST = 1000       # characters of a line in a file


def wide_console() -> Console:
    """Console that does not break the lines of a file or a pipe."""
    console = Console()
    return console if console.is_terminal else Console(width=120)


def tracked(items: Iterable[T], what: str, count: int) -> Iterable[T]:
    """The same items, with a bar on a terminal."""
    from rich.progress import track  # here, because it takes its time to import
    console = wide_console()
    return track(items, what, count, console=console, transient=True, disable=not console.is_terminal)


def print_sections(console: Console, sections: Sequence[Section]) -> None:
    """Print tables of name, value and note."""
    for section in sections:
        table = Table(title=Text(section.title), title_justify='left', show_header=False, box=None, padding=(0, 2))
        for row in section.rows:
            table.add_row(Text(row.name), Text(row.value), Text(row.note))     # no markup in a file's words
        console.print(table)
        console.print()


def print_table(console: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table of figures: the first column to the left, all others to the right."""
    table = Table(title=Text(title), title_justify='left', box=SIMPLE_HEAD, padding=(0, 1))
    for k, column in enumerate(columns):
        table.add_column(column, justify='right' if k else 'left')
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    if not console.is_terminal:     # nothing is cut in a file
        console.width = max(console.width, console.measure(table, options=console.options.update(
            max_width=WIDEST)).maximum)
    console.print(table)
