# SPDX-License-Identifier: Apache-2.0
"""``mbse smooth``: the most likely motion of a machine, or of a mechanism, by its factor graph."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import SettingError
from .arguments import (
    Backend,
    Full,
    Json,
    Namespace,
    OfBag,
    OfMachine,
    OfSensors,
    Set,
    Sources,
    Valve,
    check_outputs,
    hand_over,
    log_of_mechanism,
    machine_name,
    names_of,
    refuse_options,
    sources_of,
)

if TYPE_CHECKING:
    from ..offline.smooth_linkage import SmoothedLog
    from ..offline.smooth_machine import SmoothedBag


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
        raise SettingError('--batch', '--lag', 'one of the two')
    if mechanism is not None:
        refuse_options('a machine', {'valve': valve, 'sources': sources})
    names, maps = names_of(sensors), sources_of(sources)
    if lag is not None and not (math.isfinite(lag) and lag > 0):
        raise SettingError('--lag', lag, 'a positive number, s')
    if machine is not None and mechanism is not None:
        raise SettingError('--machine', machine, 'a machine or a mechanism, not both')
    check_outputs(output, json_)
    found: SmoothedLog | SmoothedBag
    if mechanism is not None:
        from ..offline.linkage import linkage_settings
        from ..offline.smooth_linkage import check_filter, smooth_linkage_log
        settings = linkage_settings(set_ or [])
        check_filter(settings)
        log = log_of_mechanism(bag, mechanism, settings, names, step, namespace, backend)
        found = smooth_linkage_log(log, settings, lag, backend, str(bag))
    else:
        from ..graph.machines.machine_settings import MachineGraphSettings
        from ..machine import load_machine
        from ..offline.bag import TUNING, estimate_bag, parse_tuning
        from ..offline.smooth_machine import smooth_estimate
        machine = machine_name(machine, [bag], namespace)
        refuse_options('a mechanism', {'sensors': names or None, 'step': step})
        tuning = parse_tuning(set_ or [], {**TUNING, 'graph': MachineGraphSettings})
        of_graph = tuning.pop('graph')
        estimate = estimate_bag(bag, load_machine(machine, valve), tuning, namespace, backend, maps)
        found = smooth_estimate(estimate, lag, of_graph)
    hand_over(found, json_, full, output, found.write)
