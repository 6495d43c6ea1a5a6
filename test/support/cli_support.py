# SPDX-License-Identifier: Apache-2.0
"""The command line in this process, and a recorded lift whose messages a test can spoil."""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import typer.main

from mbse_ros.bags.bag import Bag, RawMessage, decode
from mbse_ros.bags.writer import BagWriter
from mbse_ros.cli.app import main

START_NS = 1_700_000_000_000_000_000
POSITION, PISTON, ROD = '/sensors/position', '/sensors/pressure/lift_piston', '/sensors/pressure/lift_rod'
COMMAND, TRUTH = '/sensors/valve_command', '/truth'
Edit = Callable[[str, float, Any], Any]
typer.main.get_command = cache(typer.main.get_command)      # from the signatures of all commands, 50 ms: once


class Done(NamedTuple):
    """Exit status and output of a command."""

    status: int
    out: str
    err: str

    @property
    def warnings(self) -> list[str]:
        """Doubts in the answer, then warnings, without the words before them."""
        return [line.partition(': ')[2] for line in (*self.out.splitlines(), *self.err.splitlines())
                if line.startswith(('warning: ', 'not trusted: ', 'payload unknown: '))]


def mbse(*words: object) -> Done:
    """Run the entry point; any exception but SystemExit goes through: it would be a traceback."""
    out, err, argv = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ['mbse', *map(str, words)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main()
                status = 0
            except SystemExit as end:
                status = end.code or 0
    finally:
        sys.argv = argv
    return Done(status, out.getvalue(), err.getvalue())


def refused(*words: object) -> str:
    """The one line of a command that ends with status 2."""
    done = mbse(*words)
    lines = done.err.splitlines()
    assert done.status == 2 and len(lines) == 1 and lines[0].startswith('mbse: '), done
    return lines[0][len('mbse: '):]


@cache
def lift() -> tuple[RawMessage, ...]:
    """All messages of `mbse simulate patu655_lift` with its defaults: 24 s, 50 kg."""
    with tempfile.TemporaryDirectory() as folder:
        done = mbse('simulate', 'patu655_lift', '-o', f'{folder}/lift')
        assert done.status == 0, done
        return tuple(Bag(f'{folder}/lift').messages())


def recorded(folder: Path, edit: Edit | None = None, until: float = 5.6, truth: bool = False) -> Path:
    """A bag of the first seconds of the lift: up, a hold, and from 4.7 s on down again; without the truth.

    ``edit`` gets topic, time from the start, s, and message, and returns a message or None: lost. Without it the
    messages are those of the lift, byte by byte.
    """
    with BagWriter(folder, frame='patu655_lift') as writer:
        for raw in lift():
            t = (raw.stamp_ns - START_NS) * 1e-9
            if t > until + 1e-6 or raw.topic == TRUTH and not truth:
                continue
            if edit is None:
                writer.write_cdr(raw.topic, raw.msgtype, raw.stamp_ns, raw.data)
                continue
            message = edit(raw.topic, t, decode(raw))
            if message is not None:
                writer.write(raw.topic, raw.msgtype, raw.stamp_ns, message)
    return folder


def stamped(message: Any, stamp_ns: int) -> Any:
    """The message with another stamp in its header."""
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp_ns, 1_000_000_000)
    return message
