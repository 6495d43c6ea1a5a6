# SPDX-License-Identifier: Apache-2.0
"""Options that several commands have."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from inspect import unwrap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, get_type_hints

import typer
from typer.models import OptionInfo

from ..errors import BagError, SettingError
from ..settings import names_in

if TYPE_CHECKING:
    from ..description.model import MechanismDescription
    from ..dynamics.model import Model
    from ..report.data import Table
    from ..report.result import Answer, Result


def machine_names(incomplete: str) -> list[str]:
    """Names of machines for the shell, that begin with what is written of one."""
    from ..description.load import every_machine  # here, as it takes its time to import
    return [name for name in every_machine() if name.startswith(incomplete)]


# by the names of arguments, where they differ
OPTIONS = {'tuning': 'set', 'payloads': 'payload', 'kind': 'model', 'folder': 'output'}
Json = Annotated[Path | None, typer.Option('--json', help='Write the result as JSON to this file.')]
OfBag = Annotated[Path, typer.Argument(help='Folder of a bag.')]
OfLog = Annotated[Path, typer.Argument(help='Folder of a bag; or, with --map, a CSV table.')]
MapOf = Annotated[Path | None, typer.Option(
    '--map', help='Of a table: YAML that says which column is which channel.')]
Full = Annotated[bool, typer.Option('--full', help='Put the whole state over time into the JSON.')]
Pictures = Annotated[bool, typer.Option('--pictures/--no-pictures', help='PNGs and the film of the machine beside the '
                                       'page of the report; they take most of its time.')]
Namespace = Annotated[str | None, typer.Option(help='Namespace of the topics, where a bag has several.')]
Backend = Annotated[str, typer.Option(help='auto, c or vm.')]
OfSensors = Annotated[str | None, typer.Option(
    help='Mechanism: sensors to use, separated by commas. [all of the file]')]
Jobs = Annotated[int, typer.Option(min=1, help='Processes; the results do not depend on it.')]
Cluster = Annotated[str | None, typer.Option(
    help='Address of a Dask scheduler, tcp://HOST:PORT, instead of processes here.')]
Every = Annotated[float, typer.Option(
    '--every', min=0.0, max=10.0, help='Machine: a result every so many s; 0.1 takes half of the time, and faults of '
                                       'sensors are found later. 0: one a sensor period, as the nodes.')]
Plots = Annotated[Path | None, typer.Option('-o', '--output', help='Folder for the plots.')]

Valve = Annotated[str | None, typer.Option(help="Model of all valves instead of the file's: orifice, compensated "
                                                'or unknown.')]
Attachment = Annotated[str | None, typer.Option(
    help='Attachment on the machine, by its name in the file of the scale: the equations have its mass. [none]')]
ScaleOf = Annotated[str | None, typer.Option(
    help="File of attachments and load chart. [the section `scale` of the machine's file]")]
SetOfMachine = Annotated[list[str] | None, typer.Option(
    '--set', help='Tuning, e.g. observer.pressure_psd=1.0, payload.min_speed=0.02, interpolation.max_gap=0.2; repeat '
                  'it.')]
Set = Annotated[list[str] | None, typer.Option(
    '--set', help='Tuning, e.g. observer.pressure_psd=1.0, payload.min_speed=0.02, interpolation.max_gap=0.2, '
                  'of a mechanism linkage.gate=0.999; repeat it.')]
Coordinates = Annotated[str | None, typer.Option(
    help="natural, reference_point or relative instead of the mechanism file's.")]
OfMachine = Annotated[str | None, typer.Option(
    '--machine', autocompletion=machine_names,
    help='Name of a file in config/machines, or a path to a .yaml file. [the one that the bag names, else '
         'patu655_lift]')]
Sources = Annotated[str | None, typer.Option(
    '--sources', help="Which topics and fields the channels are, a .yaml file or a name of config/sources; none: the "
                      "package's own topics. [the section of the machine's or mechanism's file, else our own topics]")]


def names_of(text: str | None, option: str = '', least: int = 0) -> list[str]:
    """Names separated by commas, each once; raises SettingError where there are fewer than ``least``."""
    names = list(dict.fromkeys(names_in(text or '')))
    if len(names) < least:
        raise SettingError(option, text, 'names separated by commas')
    return names


def independent_of(text: str | None) -> tuple[str, ...] | None:
    """Independent coordinates separated by commas; None: the file's; empty, of the word auto: to be chosen."""
    return None if text is None else () if text.strip() == 'auto' else tuple(names_of(text))


def whole_numbers(option: str, text: str) -> list[int]:
    """Whole numbers above zero, separated by commas; raises SettingError."""
    try:
        found = [int(part) for part in names_in(text)]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise SettingError(option, text, 'whole numbers above zero, separated by commas')
    return found


def check_sensors(description: MechanismDescription, chosen: Sequence[str]) -> str:
    """What to say of pressures and inclinations of the base, which filters of a mechanism do not know; '' of none.

    Raises SettingError where one of them was chosen by name.
    """
    others = [name for name in description.sensors if name not in description.mechanical_sensors]
    for name in chosen:
        if name in others:
            raise SettingError('sensors', name, 'sensors of the motion, this one is of the hydraulics or the base; '
                               f'of {description.name}: {", ".join(description.mechanical_sensors)} (mbse estimate BAG '
                               f'--machine {description.name} uses pressures)')
    if chosen or not others:
        return ''
    return (f'{", ".join(others)} not used: filters of a mechanism know neither hydraulics nor base (mbse estimate BAG '
            f'--machine {description.name} does)')


def mechanism_of(name: str | None, sensors: Sequence[str], backend: str) -> Model | None:
    """The mechanism of a name, with a note on sensors that filters do not know."""
    if name is None:
        return None
    from ..description.load import load_mechanism  # here, as they take their time to import
    from ..dynamics.model import load_model
    description = load_mechanism(name)
    note = check_sensors(description, sensors)
    if note:
        typer.echo(f'note: {note}', err=True)
    return load_model(description, backend=backend)


def naming_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command, whose errors name its options instead of the arguments of the Python API."""
    command = unwrap(command)       # those of a group are asked for each time

    @wraps(command)
    def run(*arguments: object, **options: object) -> None:
        try:
            command(*arguments, **options)
        except SettingError as error:
            raise error.renamed(options_of(command)) from None
    return run


def options_of(command: Callable[..., None]) -> dict[str, str]:
    """Options of a command by the names of the arguments that they stand for."""
    found: dict[str, str] = {}
    for name, hint in get_type_hints(command, include_extras=True).items():
        for item in getattr(hint, '__metadata__', ()):
            if isinstance(item, OptionInfo):
                words = [str(word) for word in (item.default, *(item.param_decls or ()))]      # the first is a default
                option = next((word.partition('/')[0] for word in words if word.startswith('--')),
                              '--' + name.strip('_').replace('_', '-'))
                found[name] = found[option.lstrip('-').replace('-', '_')] = option
    return {**{argument: found[option] for argument, option in OPTIONS.items() if option in found}, **found}


@contextmanager
def bags_of(logs: Sequence[Path], map_: Path | None, machine: str | None = None) -> Iterator[list[Path]]:
    """The logs, of which tables become bags of their names for a time by the map of their columns, whose units are
    those of the ``machine``; what is missing in them is said. Raises SettingError where map and tables are not
    together."""
    from ..bags.bag import TABLES  # here, as it takes its time to import
    tables = [log for log in logs if log.suffix.lower() in TABLES and log.is_file()]
    if bool(tables) != (map_ is not None):
        raise SettingError('map', map_, f"a map of the columns of {', '.join(map(str, tables))}; or "
                           '`mbse import TABLE --map MAP -o BAG` makes a bag' if tables else
                           'no map: it is for tables, ' + ', '.join(TABLES))
    if map_ is None:
        yield list(logs)
        return
    from ..api.bags import import_log  # here, as above
    if machine is not None:
        from ..bags.table_map import load_table_map
        from ..description.load import describe
        from ..sources.machine import check_table
        check_table(load_table_map(map_), describe(machine))
    with TemporaryDirectory() as folder:
        found = []
        for place, log in enumerate(logs):
            found.append(log)
            if log in tables:
                found[-1] = Path(folder, str(place), log.name)
                for warning in import_log(log, found[-1], map_).warnings:
                    typer.echo(f'warning: {log}: {warning}', err=True)
        try:
            yield found
        except BagError as error:
            own = next((log for log, bag in zip(logs, found) if error.path == str(bag)), None)
            raise error if own is None else BagError(str(own), error.reason) from None


def check_outputs(output: Path | None, json_file: Path | None, report: Path | None = None) -> None:
    """Refuse, before the work on a log, what cannot be written; raises BagError or SettingError."""
    from ..report.files import check_file, check_folder, check_new  # here, as it takes its time to import
    check_new(output)
    check_file(json_file)
    check_folder(report, 'report')


def hand_over(found: Answer, json_file: Path | None, full: bool = False, write: Callable[[], object] | None = None,
              wrote: str = '') -> None:
    """Warnings of a result, those of the compiled functions too; files, by ``write`` those that are not JSON; and last
    the answer, ``wrote`` before it."""
    from ..compiled.compiler import remarks  # here, as it takes its time to import
    from ..report.files import write_plain
    doubts = set(found.doubts)      # which the answer has
    for warning in (*(item for item in found.warnings if item not in doubts), *remarks()):
        typer.echo(f'warning: {warning}', err=True)
    if write is not None:
        write()
    if json_file is not None:
        write_plain(json_file, found.to_json(full), None if full else 2)
    show_tables(found.tables())
    if lines := found.summary():
        typer.echo(wrote + '\n'.join(lines))


def write_report(found: Result, folder: Path, pictures: bool) -> None:
    """Write the report of a result, and say where it is and how long it took."""
    begin = time.monotonic()
    place = found.report(folder, pictures)
    typer.echo(f'report: {place}\nwritten in {time.monotonic() - begin:.1f} s, '
               + ('with its pictures (--no-pictures: without)' if pictures else 'without pictures'))


def show_tables(tables: Sequence[Table]) -> None:
    """Print them, as wide as they are in a file."""
    if tables:
        from ..report.text import print_table, wide_console
        console = wide_console()
        for table in tables:
            print_table(console, table.title, table.columns, table.rows)
