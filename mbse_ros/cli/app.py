# SPDX-License-Identifier: Apache-2.0
"""The command line `mbse`: its commands by name, of which only the one that is called is built."""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from keyword import iskeyword
from pkgutil import iter_modules
from typing import Annotated

import typer

from ..errors import MbseError
from ..progress import say_lengthy
from ..version import __version__
from .arguments import naming_options

HELP = 'State and payload estimation of hydraulic machines: simulate, record, estimate, replay, explain.'
HELPERS = '__main__', 'app', 'arguments', 'live_calibration'     # files of this folder that are not commands
ORDER = ('new', 'simulate', 'inverse', 'import', 'estimate', 'smooth', 'check', 'check-data', 'topics', 'doctor',
         'convert', 'export-c', 'graph', 'observability', 'tune', 'calibrate', 'loads', 'fleet', 'view', 'up',
         'replay', 'demo')


def commands() -> tuple[str, ...]:
    """Names of all commands, those of ORDER first: each file of this folder is one."""
    found = {item.name.rstrip('_').replace('_', '-') for item in iter_modules(sys.modules[__package__].__path__)
             if item.name not in HELPERS}
    return *(name for name in ORDER if name in found), *sorted(found - set(ORDER))


def command_line(*names: str) -> typer.Typer:
    """The command line with the commands of these names alone; of all without a name.

    A command `do-it` is the function ``do_it`` in ``do_it.py``, of a word of Python ``import_``; SETTINGS of that file
    are those of ``typer.Typer.command``. One with commands of its own is a ``typer.Typer`` of that name.
    """
    app = typer.Typer(no_args_is_help=True, rich_markup_mode=None,
                      pretty_exceptions_show_locals=False, help=HELP)
    app.callback(help=HELP)(_options)       # without it a single command would take no name
    for name in names or commands():
        usual = name.replace('-', '_') + '_' * iskeyword(name)
        module = import_module(f'{__package__}.{usual}')
        command = getattr(module, usual)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
            for item in command.registered_commands:
                item.callback = item.callback and naming_options(item.callback)
        else:
            app.command(name, **getattr(module, 'SETTINGS', {}))(naming_options(command))
    return app


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f'mbse_ros {__version__}')
        raise typer.Exit


INTERRUPTED = 130       # exit status after Ctrl-C, as shells have it


def _options(version: Annotated[bool, typer.Option(
        '--version', is_eager=True, callback=_say_version, help='Say the version and stop.'
        )] = False) -> None:
    """Of the command line itself."""


def called(words: list[str]) -> list[str]:
    """The command of a call, in a list; an empty one where the first word is none."""
    return [word for word in words[:1] if word in commands()]


def terminal() -> bool:
    """Whether somebody looks at what is said besides the answer."""
    return sys.stderr.isatty()


def main() -> None:
    """Entry point: an error of this package, or of a file, is one line, several of a machine's file one each, and exit
    status 2."""
    gc.set_threshold(20_000)    # of 700, the collector would take a fifth of the time of imports, and find nothing
    if terminal():
        say_lengthy(lambda what: typer.echo(f'mbse: {what} ...', err=True))
    try:
        command_line(*called(sys.argv[1:]))(prog_name='mbse')
    except MbseError as error:
        typer.echo(f'mbse: {error}', err=True)
        sys.exit(2)
    except OSError as error:
        typer.echo(f'mbse: {error.filename or "files"}: {error.strerror or error}', err=True)
        sys.exit(2)
    except (KeyboardInterrupt, SystemExit) as end:
        code = INTERRUPTED if isinstance(end, KeyboardInterrupt) else end.code     # of it typer makes the other
        if code == INTERRUPTED:
            typer.echo('mbse: interrupted', err=True)
        sys.exit(code)
