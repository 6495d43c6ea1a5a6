# SPDX-License-Identifier: Apache-2.0
"""What ``mbse estimate`` and ``mbse smooth`` share: what is asked of a log, and how the answer is handed over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import typer

from ..compiled.compiler import remarks
from ..errors import BagError, SettingError
from ..report.files import check_file, write_json
from ..sources.map import SourceMap


@dataclass(frozen=True)
class LogRequest:
    """What was asked of a ``bag``; ``words`` are tuning, ``room.name=value``; ``sensors``, ``step``, s: of a mechanism;
    ``lag``, s, of a smoother, None for the whole log at once; ``report``: folder of a machine's report;
    ``sources``: which topics and fields its channels are; ``every`` so many s a result of it."""

    bag: Path
    output: Path | None = None
    json_file: Path | None = None
    full: bool = False
    words: Sequence[str] = ()
    namespace: str | None = None
    backend: str = 'auto'
    sensors: Sequence[str] = ()
    step: float | None = None
    lag: float | None = None
    report: Path | None = None
    sources: SourceMap | None = None
    every: float = 0.0

    def check_outputs(self) -> None:
        """Refuse, before the work, what cannot be written; raises BagError or SettingError."""
        if self.output is not None and self.output.exists():
            raise BagError(str(self.output), 'exists already and is not overwritten')
        check_file(self.json_file)
        if self.report is not None and self.report.exists() and not self.report.is_dir():
            raise SettingError('--report', str(self.report), 'a folder: this is a file')


@dataclass(frozen=True)
class Answer:
    """What was found: warnings, lines to print, the fixed machine-readable form, and how to write it to --output where
    that is not done."""

    warnings: Sequence[str]
    lines: Sequence[str]
    json: dict[str, Any]
    write: Callable[[Path], None] | None = None


def hand_over(answer: Answer, request: LogRequest) -> None:
    """Warnings, those of the compiled functions too; files; and last the answer."""
    for warning in (*answer.warnings, *remarks()):
        typer.echo(f'warning: {warning}', err=True)
    if request.output is not None and answer.write is not None:
        answer.write(request.output)
    write_json(request.json_file, answer.json, None if request.full else 2)
    typer.echo('\n'.join(answer.lines))


def cost(seconds: float, log_seconds: float) -> dict[str, float]:
    """Computing time of a log as JSON."""
    return {'seconds': seconds, 'real_time_share': seconds / log_seconds}


def cost_line(seconds: float, log_seconds: float, what: str = '') -> str:
    """The same in words."""
    return f'{log_seconds:.1f} s of data{what} in {seconds:.3f} s ({100 * seconds / log_seconds:.2f} % of real time)'


def wall_time(*stamps_ns: int) -> str:
    """Stamps as times of day, UTC; '' where one is of a clock that was never set."""
    moments = [datetime.fromtimestamp(stamp // 1_000_000_000, timezone.utc) for stamp in stamps_ns]
    if any(moment.year <= 1970 for moment in moments):
        return ''
    same = all(moment.date() == moments[0].date() for moment in moments)
    words = [f'{moment:%H:%M:%S}' if same and k else f'{moment:%Y-%m-%d %H:%M:%S}' for k, moment in enumerate(moments)]
    return f'{" to ".join(words)} UTC'
