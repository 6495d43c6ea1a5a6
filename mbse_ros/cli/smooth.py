# SPDX-License-Identifier: Apache-2.0
"""``mbse smooth``: the most likely motion of a machine, or of a mechanism, by its factor graph."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from ..errors import SettingError
from .arguments import Json, OfMachine, Set, Sources, Valve, machine_name, names_of, refuse_options, sources_of


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
    from .logs import LogRequest, hand_over
    if batch and lag is not None:
        raise SettingError('--batch', '--lag', 'one of the two')
    if mechanism is not None:
        refuse_options('a machine', {'valve': valve, 'sources': sources})
    request = LogRequest(bag, output, json_, full, set_ or [], namespace, backend, names_of(sensors), step, lag,
                         sources=sources_of(sources))
    if lag is not None and not (math.isfinite(lag) and lag > 0):
        raise SettingError('--lag', lag, 'a positive number, s')
    if machine is not None and mechanism is not None:
        raise SettingError('--machine', machine, 'a machine or a mechanism, not both')
    request.check_outputs()
    if mechanism is not None:
        from .mechanisms.smooth_linkage import smooth_linkage
        hand_over(smooth_linkage(mechanism, request), request)
    else:
        from .machines.smooth_machine import smooth_machine
        hand_over(smooth_machine(machine_name(machine, [bag], namespace), valve, request), request)
