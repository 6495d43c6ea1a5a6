# SPDX-License-Identifier: Apache-2.0
"""``mbse smooth``: the most likely motion of a machine, or of a mechanism, by its factor graph."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

import mbse_ros as mbse

from ..errors import SettingError
from .arguments import (
    Attachment,
    Backend,
    Full,
    Json,
    Namespace,
    OfBag,
    OfMachine,
    OfSensors,
    ScaleOf,
    Set,
    Sources,
    Valve,
    check_outputs,
    hand_over,
    mechanism_of,
    names_of,
)


def smooth(
        bag: OfBag,
        machine: OfMachine = None,
        mechanism: Annotated[str | None, typer.Option(
            help='Smooth a mechanism instead of a machine: name of a file in config/mechanisms, or a path.')] = None,
        lag: Annotated[float | None, typer.Option(
            help='Estimate each instant so many seconds after it, as could be done online.')] = None,
        batch: Annotated[bool, typer.Option('--batch', help='The whole log at once. [without --lag]')] = False,
        sensors: OfSensors = None,
        step: Annotated[float | None, typer.Option(
            help="Mechanism: step of the estimates, s. [the fastest sensor's period]")] = None,
        valve: Valve = None,
        attachment: Attachment = None,
        scale: ScaleOf = None,
        output: Annotated[Path | None, typer.Option('-o', '--output', help='Folder for plot and table.')] = None,
        json_: Json = None,
        full: Full = False,
        set_: Set = None,
        sources: Sources = None,
        namespace: Namespace = None,
        backend: Backend = 'auto') -> None:
    """Find the most likely motion, from all samples.

    By the factor graph of the machine or the mechanism; the filter's result beside it, both with their intervals.
    """
    if batch and lag is not None:
        raise SettingError('lag', lag, 'no lag with --batch, which smooths the whole log at once')
    check_outputs(output, json_)
    names = names_of(sensors)
    found = mbse.smooth(bag, machine, mechanism=mechanism_of(mechanism, names, backend), lag=lag,
                        sensors=names or None, step=step, valve=valve, tuning=set_ or (), sources=sources,
                        namespace=namespace, backend=backend, attachment=attachment, scale=scale)
    hand_over(found, json_, full, None if output is None else partial(found.report, output))
