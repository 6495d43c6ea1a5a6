# SPDX-License-Identifier: Apache-2.0
"""``mbse smooth`` and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...errors import SettingError
from ..arguments import Json, OfMachine, Set, Sources, Valve, names_of, refuse_options, sources_of


def smooth(
        bag: Annotated[Path, typer.Argument(help='Folder of a bag.')],
        machine: OfMachine = None,
        mechanism: Annotated[str | None, typer.Option(
            help='Smooth a mechanism instead of a machine: name of a file in config/mechanisms, or a path.')] = None,
        lag: Annotated[float | None, typer.Option(
            help='Estimate each instant so many seconds after it, as could be done online.')] = None,
        batch: Annotated[bool, typer.Option('--batch', help='The whole log at once. [without --lag]')] = False,
        sensors: Annotated[str | None, typer.Option(
            help='Mechanism: sensors to use, separated by commas. [all of the file]')] = None,
        step: Annotated[float | None, typer.Option(
            help="Mechanism: step of the estimates, s. [the fastest sensor's period]")] = None,
        valve: Valve = None,
        output: Annotated[Path | None, typer.Option('-o', '--output', help='Folder for plot and table.')] = None,
        json_: Json = None,
        full: Annotated[bool, typer.Option('--full', help='Put the whole state over time into the JSON.')] = False,
        set_: Set = None,
        sources: Sources = None,
        namespace: Annotated[str | None, typer.Option(
            help='Namespace of the topics, where the bag has several.')] = None,
        backend: Annotated[str, typer.Option(help='auto, c or vm.')] = 'auto') -> None:
    """Find the most likely motion, from all samples.

    By the factor graph of the machine or the mechanism; the filter's result beside it, both with their intervals.
    """
    from ..logs import LogRequest
    from ..smooth import smooth_command
    if batch and lag is not None:
        raise SettingError('--batch', '--lag', 'one of the two')
    if mechanism is not None:
        refuse_options('a machine', {'valve': valve, 'sources': sources})
    smooth_command(machine, mechanism, valve, LogRequest(bag, output, json_, full, set_ or [], namespace, backend,
                                                         names_of(sensors), step, lag, sources=sources_of(sources)))
