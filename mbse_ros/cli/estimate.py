# SPDX-License-Identifier: Apache-2.0
"""``mbse estimate`` and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .arguments import Every, Json, OfMachine, Set, Sources, Valve, names_of, refuse_options, sources_of


def estimate(
        bag: Annotated[Path, typer.Argument(help='Folder of a bag.')],
        machine: OfMachine = None,
        mechanism: Annotated[str | None, typer.Option(
            help='Estimate a mechanism instead of a machine: name of a file in config/mechanisms, or a path.')] = None,
        estimator: Annotated[str | None, typer.Option(
            help='Mechanism: filter, by its name in Naya et al., review. [errorEKF_FE]')] = None,
        sensors: Annotated[str | None, typer.Option(
            help='Mechanism: sensors to use, separated by commas. [all of the file]')] = None,
        step: Annotated[float | None, typer.Option(
            help="Mechanism: step of the filter, s. [the fastest sensor's period]")] = None,
        valve: Valve = None,
        output: Annotated[Path | None, typer.Option(
            '-o', '--output', help='Folder of a bag for the estimates.')] = None,
        json_: Json = None,
        full: Annotated[bool, typer.Option('--full', help='Put the whole state over time into the JSON.')] = False,
        report: Annotated[Path | None, typer.Option(
            help='Machine: folder for the report, index.html and PNGs.')] = None,
        every: Every = 0.0,
        set_: Set = None,
        sources: Sources = None,
        namespace: Annotated[str | None, typer.Option(
            help='Namespace of the topics, where the bag has several.')] = None,
        backend: Annotated[str, typer.Option(help='auto, c or vm.')] = 'auto') -> None:
    """Estimate what a machine or a mechanism did, from a bag.

    State and payload of a machine, or the state of a mechanism.
    By the same objects as the nodes; the same bag gives the same result every time.
    """
    from .logs import LogRequest
    request = LogRequest(bag, output, json_, full, set_ or [], namespace, backend, names_of(sensors), step,
                         report=report, sources=sources_of(sources), every=every)
    if mechanism is not None:
        from .mechanisms.estimate_linkage import estimate_linkage
        refuse_options('a machine', {'machine': machine, 'valve': valve, 'report': report, 'sources': sources,
                                     'every': every or None})
        estimate_linkage(mechanism, estimator or 'errorEKF_FE', request)
        return
    from .machines.estimate_machine import estimate_machine
    refuse_options('a mechanism', {'estimator': estimator, 'sensors': sensors, 'step': step})
    estimate_machine(machine, valve, request)
