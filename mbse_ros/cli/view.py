# SPDX-License-Identifier: Apache-2.0
"""``mbse view``: a bag in the viewer of rerun."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import mbse_ros as mbse

from ..errors import SettingError, refuse_options
from .arguments import (
    Backend,
    Namespace,
    OfBag,
    OfMachine,
    Set,
    Sources,
    Valve,
    check_outputs,
)

if TYPE_CHECKING:
    from ..bags.bag import Bag
    from ..report.data import Signal

SUFFIX, PAGE = '.rrd', '.html'


def view(
        bag: OfBag,
        machine: OfMachine = None,
        output: Annotated[Path | None, typer.Option(
            '-o', '--output', help='Recording to write, .rrd, instead of opening the viewer; or .html: a page of all '
                                   'numbers on the topics over time, without a machine.')] = None,
        valve: Valve = None,
        set_: Set = None,
        sources: Sources = None,
        namespace: Namespace = None,
        backend: Backend = 'auto') -> None:
    """Show a bag in rerun, or its numbers as a page.

    In rerun the machine in 3D, measured and estimated; channels, innovations, the mass with its interval, what the bag
    itself holds of it; estimated as mbse estimate does.
    """
    from ..bags.bag import open_bag
    from ..offline.motion_estimate import MotionEstimate
    from ..report.files import check_file
    from ..report.rerun_file import show_run, viewer
    check_file(output, 'output', (SUFFIX, PAGE))
    check_outputs(output, None)
    if output is not None and output.suffix.lower() == PAGE:
        refuse_options('a recording, .rrd', {'machine': machine, 'valve': valve, 'set': set_, 'sources': sources,
                                             'namespace': namespace})
        found = mbse.topics(bag)
        for warning in found.warnings:
            typer.echo(f'warning: {warning}', err=True)
        found.write_page(output)
        typer.echo(f'wrote {output}: open it in a browser')
        return
    if output is None and sys.platform == 'linux' and not {'DISPLAY', 'WAYLAND_DISPLAY'} & set(os.environ):
        raise SettingError('output', 'none', f'a file (-o x{SUFFIX}): there is no screen here; open it with `rerun '
                                               f'x{SUFFIX}`')
    viewer()        # before the work
    estimate = mbse.estimate(bag, machine, valve=valve, tuning=set_ or (), sources=sources, namespace=namespace,
                             backend=backend)
    if isinstance(estimate, MotionEstimate):
        raise SettingError('machine', machine, 'a machine: this file has no cylinders')
    for warning in estimate.warnings:
        typer.echo(f'warning: {warning}', err=True)
    start_ns = int(estimate.track.start_ns[0])
    run = replace(run := estimate.run, signals=(*run.signals, *_recorded(open_bag(bag), namespace, start_ns)))
    show_run(run, start_ns, output)
    typer.echo(f'wrote {output}: open it with `rerun {output}`' if output else "rerun's viewer has it")


def _recorded(bag: Bag, namespace: str | None, start_ns: int) -> list[Signal]:
    """The mass that the bag itself holds, where the live nodes were recorded."""
    import numpy as np

    from ..bags.series import read_payload
    from ..bags.topics import TopicMap
    from ..report.data import Series, Signal
    found = read_payload(bag, TopicMap(namespace=namespace))
    if found is None or (np.diff(found.stamp_ns) < 0).any():    # a clock that was set back: no place on this axis
        return []
    t = 1e-9 * (found.stamp_ns - start_ns)
    return [Signal('mass as recorded', 'kg', group='Recorded mass', estimated=Series(t, found.mass, found.stddev))]
