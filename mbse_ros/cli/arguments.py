# SPDX-License-Identifier: Apache-2.0
"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import SettingError

if TYPE_CHECKING:
    from ..sources.map import SourceMap

Json = Annotated[Path | None, typer.Option('--json', help='Write the result as JSON to this file.')]
Jobs = Annotated[int, typer.Option(min=1, help='Processes; the results do not depend on it.')]
Cluster = Annotated[str | None, typer.Option(
    help='Address of a Dask scheduler, tcp://HOST:PORT, instead of processes here.')]
Every = Annotated[float, typer.Option(
    '--every', min=0.0, max=10.0, help='Machine: a result every so many s; 0.1 takes half of the time, and faults of '
                                       'sensors are found later. 0: one a sensor period, as the nodes.')]
Plots = Annotated[Path | None, typer.Option('-o', '--output', help='Folder for the plots.')]

Valve = Annotated[str | None, typer.Option(help="Model of all valves instead of the file's: orifice, compensated "
                                                'or unknown.')]
Set = Annotated[list[str] | None, typer.Option(
    '--set', help='Tuning, e.g. observer.pressure_psd=1.0, payload.min_speed=0.02, interpolation.max_gap=0.2, '
                  'of a mechanism linkage.gate=0.999; repeat it.')]
Coordinates = Annotated[str | None, typer.Option(
    help="natural, reference_point or relative instead of the mechanism file's.")]
OfMachine = Annotated[str | None, typer.Option(
    '--machine', help='Name of a file in config/machines, or a path to a .yaml file. [the one that the bag names, else '
                      'patu655_lift]')]
Sources = Annotated[str | None, typer.Option(
    help="Machine: which topics and fields its channels are, a .yaml file or a name of config/sources; none: the "
         "package's own topics. [the section of the machine's file, else our own topics]")]


def sources_of(name: str | None) -> SourceMap | None:
    """The map of a name; raises DescriptionError."""
    from ..sources.map import load_sources  # here, as it takes its time to import
    return None if name is None else load_sources(name)


def machine_name(given: str | None, bags: Sequence[str | Path], namespace: str | None) -> str:
    """The machine given, else the one that the bags name; raises BagError, see ``recorded_machine``."""
    if given is not None:
        return given
    from ..offline.bag import recorded_machine  # here, as it takes its time to import
    return recorded_machine(bags, namespace)


def names_of(text: str | None, option: str = '', least: int = 0) -> list[str]:
    """Names separated by commas, each once; raises SettingError where there are fewer than ``least``."""
    names = list(dict.fromkeys((text or '').replace(',', ' ').split()))
    if len(names) < least:
        raise SettingError(option, text, 'names separated by commas')
    return names


def independent_of(text: str | None) -> tuple[str, ...] | None:
    """Independent coordinates separated by commas; None: the file's; empty, of the word auto: to be chosen."""
    return None if text is None else () if text.strip() == 'auto' else tuple(names_of(text))


def whole_numbers(option: str, text: str) -> list[int]:
    """Whole numbers above zero, separated by commas; raises SettingError."""
    try:
        found = [int(part) for part in text.split(',') if part.strip()]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise SettingError(option, text, 'whole numbers above zero, separated by commas')
    return found


def refuse_options(needs: str, options: Mapping[str, object]) -> None:
    """Raise SettingError for the first option that was given, though it applies only to what ``needs`` says."""
    for option, value in options.items():
        if value is not None:
            raise SettingError(f'--{option}', str(value), f'no such option here: it is for {needs}')
