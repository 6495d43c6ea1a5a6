# SPDX-License-Identifier: Apache-2.0
"""``mbse estimate``: what a machine or a mechanism did, from a bag."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .arguments import (
    Backend,
    Every,
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


def estimate(
        bag: OfBag,
        machine: OfMachine = None,
        mechanism: Annotated[str | None, typer.Option(
            help='Estimate a mechanism instead of a machine: name of a file in config/mechanisms, or a path.')] = None,
        estimator: Annotated[str | None, typer.Option(
            help='Mechanism: filter, by its name in Naya et al., review. [errorEKF_FE]')] = None,
        sensors: OfSensors = None,
        step: Annotated[float | None, typer.Option(
            help="Mechanism: step of the filter, s. [the fastest sensor's period]")] = None,
        valve: Valve = None,
        output: Annotated[Path | None, typer.Option(
            '-o', '--output', help='Folder of a bag for the estimates.')] = None,
        json_: Json = None,
        full: Full = False,
        report: Annotated[Path | None, typer.Option(
            help='Machine: folder for the report, index.html and PNGs.')] = None,
        every: Every = 0.0,
        set_: Set = None,
        sources: Sources = None,
        namespace: Namespace = None,
        backend: Backend = 'auto') -> None:
    """Estimate what a machine or a mechanism did, from a bag.

    State and payload of a machine, or the state of a mechanism.
    By the same objects as the nodes; the same bag gives the same result every time.
    """
    names, maps = names_of(sensors), sources_of(sources)
    if mechanism is not None:
        refuse_options('a machine', {'machine': machine, 'valve': valve, 'report': report, 'sources': sources,
                                     'every': every or None})
        check_outputs(output, json_)
        from ..offline.linkage import linkage_settings
        settings = linkage_settings([f'linkage.estimator={estimator or "errorEKF_FE"}', *(set_ or [])])
        found = log_of_mechanism(bag, mechanism, settings, names, step, namespace, backend)
        hand_over(found, json_, full, output, found.write)
        return
    refuse_options('a mechanism', {'estimator': estimator, 'sensors': sensors, 'step': step})
    check_outputs(output, json_, report)
    from ..bags.writer import written_outputs
    from ..machine import load_machine
    from ..offline.bag import KINDS, estimate_bag, parse_tuning
    tuning = parse_tuning(set_ or [], KINDS)
    described = load_machine(machine_name(machine, [bag], namespace), valve)
    with written_outputs(described, output) as take:
        estimated = estimate_bag(bag, described, tuning, namespace, backend, maps, full or report is not None, take,
                                 None, every)
    if report is not None:
        from ..offline.estimate_report import report_run
        from ..report.writer import write_report
        facts = {'Bag': str(bag)} | ({'Tuning': ', '.join(set_)} if set_ else {})
        run = report_run(estimated, f'Estimate from {bag.resolve().name}', facts)
        typer.echo(f'report: {write_report(run, report)}')
    hand_over(estimated, json_, full)
