# SPDX-License-Identifier: Apache-2.0
"""``mbse estimate``: what a machine or a mechanism did, from a bag."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

import mbse_ros as mbse

from .arguments import (
    Attachment,
    Backend,
    Every,
    Full,
    Json,
    MapOf,
    Namespace,
    OfLog,
    OfMachine,
    OfSensors,
    Pictures,
    ScaleOf,
    Set,
    Sources,
    Valve,
    bags_of,
    check_outputs,
    hand_over,
    mechanism_of,
    names_of,
    write_report,
)


def estimate(
        bag: OfLog,
        machine: OfMachine = None,
        mechanism: Annotated[str | None, typer.Option(
            help='Estimate a mechanism instead of a machine: name of a file in config/mechanisms, or a path.')] = None,
        estimator: Annotated[str | None, typer.Option(
            help='Filter by its name: hydraulic or hydraulic_errorEKF_FE of a machine, of a mechanism as in Naya et '
                 'al., review. [hydraulic, errorEKF_FE]')] = None,
        sensors: OfSensors = None,
        step: Annotated[float | None, typer.Option(
            help="Mechanism: step of the filter, s. [the fastest sensor's period]")] = None,
        valve: Valve = None,
        attachment: Attachment = None,
        scale: ScaleOf = None,
        output: Annotated[Path | None, typer.Option(
            '-o', '--output', help='Folder of a bag for the estimates.')] = None,
        json_: Json = None,
        full: Full = False,
        report: Annotated[Path | None, typer.Option(
            help='Folder for the report: index.html and PNGs, of a mechanism table and plot.')] = None,
        pictures: Pictures = True,
        every: Every = 0.0,
        preset: Annotated[str | None, typer.Option(
            help='Settings of a published method, before --set: paper (mass by inverse dynamics), or a file of ROS '
                 'parameters.')] = None,
        set_: Set = None,
        map_: MapOf = None,
        sources: Sources = None,
        namespace: Namespace = None,
        backend: Backend = 'auto') -> None:
    """Estimate what a machine or a mechanism did, from a bag.

    State and payload of a machine, or the state of a mechanism.
    By the same objects as the nodes; the same bag gives the same result every time.
    """
    from ..offline.estimate import MachineEstimate  # here, as it takes its time to import
    check_outputs(output, json_, report)
    names = names_of(sensors)
    with bags_of([bag], map_, machine) as [log]:
        found = mbse.estimate(log, machine, mechanism=mechanism_of(mechanism, names, backend), estimator=estimator,
                              sensors=names or None, step=step, valve=valve, attachment=attachment, scale=scale,
                              output=output, preset=preset, tuning=set_ or (), every=every, sources=sources,
                              namespace=namespace, backend=backend, full=full or report is not None)
        if map_ is not None and isinstance(found, MachineEstimate):
            found = replace(found, facts={**found.facts, 'Bag': str(bag)})
        if report is not None:
            write_report(found, report, pictures)
        hand_over(found, json_, full)
