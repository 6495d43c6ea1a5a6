# SPDX-License-Identifier: Apache-2.0
"""``mbse view``: a bag in the viewer of rerun."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import SettingError
from .arguments import (
    Backend,
    Namespace,
    OfBag,
    OfMachine,
    Set,
    Sources,
    Valve,
    check_outputs,
    machine_name,
    sources_of,
)

if TYPE_CHECKING:
    from ..bags.bag import Bag
    from ..offline.estimate import Estimate
    from ..report.data import Signal

SUFFIX = '.rrd'


def view(
        bag: OfBag,
        machine: OfMachine = None,
        output: Annotated[Path | None, typer.Option(
            '-o', '--output', help='Recording to write, .rrd, instead of opening the viewer.')] = None,
        valve: Valve = None,
        set_: Set = None,
        sources: Sources = None,
        namespace: Namespace = None,
        backend: Backend = 'auto') -> None:
    """Show a bag in the viewer of rerun.

    The machine in 3D, measured and estimated; channels, innovations, the mass with its interval, what the bag itself
    holds of it; estimated as mbse estimate does.
    """
    from ..bags.bag import open_bag
    from ..machine import load_machine
    from ..offline.bag import estimate_bag, parse_tuning
    from ..offline.estimate_report import report_run
    from ..report.files import check_file
    from ..report.rerun_file import show_run, viewer
    check_file(output, '--output', (SUFFIX,))
    check_outputs(output, None)
    if output is None and sys.platform == 'linux' and not {'DISPLAY', 'WAYLAND_DISPLAY'} & set(os.environ):
        raise SettingError('--output', 'none', f'a file (-o x{SUFFIX}): there is no screen here; open it with `rerun '
                                               f'x{SUFFIX}`')
    viewer()        # before the work
    opened = open_bag(bag)
    described = load_machine(machine_name(machine, [bag], namespace), valve)
    estimate = estimate_bag(opened, described, parse_tuning(set_ or []), namespace, backend, sources_of(sources))
    for warning in estimate.warnings:
        typer.echo(f'warning: {warning}', err=True)
    run = report_run(estimate, f'Estimate from {bag.resolve().name}', {'Bag': str(bag)})
    run = replace(run, signals=(*run.signals, *_recorded(opened, namespace, estimate)))
    show_run(run, int(estimate.track.start_ns[0]), output)
    typer.echo(f'wrote {output}: open it with `rerun {output}`' if output else "rerun's viewer has it")


def _recorded(bag: Bag, namespace: str | None, estimate: Estimate) -> list[Signal]:
    """The mass that the bag itself holds, where the live nodes were recorded."""
    import numpy as np

    from ..bags.series import read_payload
    from ..bags.topics import TopicMap
    from ..report.data import Series, Signal
    found = read_payload(bag, TopicMap(namespace=namespace))
    if found is None or (np.diff(found.stamp_ns) < 0).any():    # a clock that was set back: no place on this axis
        return []
    t = 1e-9 * (found.stamp_ns - estimate.track.start_ns[0])
    return [Signal('mass as recorded', 'kg', group='Recorded mass', estimated=Series(t, found.mass, found.stddev))]
