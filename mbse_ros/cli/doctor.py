# SPDX-License-Identifier: Apache-2.0
"""``mbse doctor``: what would keep the nodes from working well on this computer, a line for each, with how to fix it.

Whatever may be missing is imported by the look that needs it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ..doctor.checks import FAILS, OK, WARNING, Check, examined
from ..errors import MbseError, refuse_options
from ..resources import write_whole
from .arguments import Json

LISTEN = 3.0        # s
COLOURS = {OK: typer.colors.GREEN, WARNING: typer.colors.YELLOW, FAILS: typer.colors.RED}


def doctor(
        machine: Annotated[str | None, typer.Option(
            help='Look at this machine, too: name of a file in config/machines, or a path to a .yaml file.')] = None,
        topics: Annotated[float | None, typer.Option(
            min=0, max=3600, help='With --machine NAME: listen to its graph for so many seconds, or 0. [3]')] = None,
        namespace: Annotated[str | None, typer.Option(
            help='With --machine NAME: namespace of its topics. [the one the graph shows]')] = None,
        sources: Annotated[str | None, typer.Option(
            help="With --machine NAME: map of topics of other packages to listen to, by its name or path; none: this "
                 "package's topics. [the section `sources` of the machine's file, where it has one]")] = None,
        json_: Json = None) -> None:
    """Check this computer, and say how to fix what is wrong.

    Packages, compiler, disks, real-time limits, clock, ROS 2 and DDS, a machine's file and its topics: a line each.
    Exit status 1 where something fails.
    """
    if machine is None:
        refuse_options('a machine (--machine NAME)', {'topics': topics, 'namespace': namespace, 'sources': sources})
    if json_ is not None:
        json_.parent.mkdir(parents=True, exist_ok=True)
        json_.touch()       # what cannot be written is said before the work
    checks = []
    for check in look(machine, namespace, LISTEN if topics is None else topics, sources):
        checks.append(check)
        typer.echo(line(check))
    typer.echo(summary(checks))
    if json_ is not None:      # not by report.files, which needs numpy
        write_whole(json_, json.dumps({'checks': [asdict(check) for check in checks]}, indent=2) + '\n')
    if any(check.status == FAILS for check in checks):
        raise typer.Exit(1)


def look(machine: str | None, namespace: str | None, seconds: float, sources: str | None = None) -> Iterator[Check]:
    """All checks, each as soon as it is known."""
    from ..doctor.python import dependency_checks, extras_check, python_check
    yield python_check()
    yield from dependency_checks()
    yield extras_check()
    yield from examined('compiler', compiled)
    yield from examined('disk', disks)
    yield from examined('real time', real_time)
    yield from examined('UDP buffer', buffers)
    ros = examined('ROS', ros_found)
    yield from ros
    yield from examined('clock', clocks)
    if machine is not None:
        yield from examined('machine', lambda: described(machine, namespace, seconds, ros, sources))


def compiled() -> list[Check]:
    """Compiler and cache."""
    from ..doctor.compilation import cache_check, compiler_check
    return [compiler_check(), *examined('cache', cache_check)]


def disks() -> list[Check]:
    """Room at the cache and here."""
    from ..compiled.cache import cache_folder
    from ..doctor.computer import disk_check
    return [disk_check('cache', cache_folder()), disk_check('working folder', Path.cwd())]


def real_time() -> list[Check]:
    """Limits and processors."""
    from ..doctor.computer import governor_check, memory_check, priority_check, processor_check
    return [priority_check(), memory_check(), *examined('CPU governor', governor_check), processor_check()]


def buffers() -> Check:
    """Of the network."""
    from ..doctor.computer import receive_buffer_check
    return receive_buffer_check()


def ros_found() -> list[Check]:
    """ROS 2 and its environment."""
    from ..nodes.checks.ros_checks import ros_checks
    return ros_checks()


def clocks() -> list[Check]:
    """Wall clock and steady clock."""
    from ..doctor.computer import date_check, resolution_check, synchronized_check
    from ..nodes.checks.ros_checks import alone
    return [synchronized_check(not alone()), resolution_check(), date_check()]


def described(name: str, namespace: str | None, seconds: float, ros: Sequence[Check],
              sources: str | None = None) -> Iterator[Check]:
    """The machine's file as ``mbse check`` sees it, its map, and its graph where a message went through ROS."""
    from ..api.check import model_warnings, reach_warnings
    from ..machine import load_machine
    from ..machine.reach import reach_of
    from ..nodes.checks.ros_checks import graph_checks, source_checks
    from ..sources.machine import for_machine, section_of
    from ..sources.map import NO_MAP, load_sources
    try:
        machine = load_machine(name)
        odd = [*model_warnings(machine.model), *reach_warnings(machine, reach_of(machine))]
    except MbseError as error:
        yield Check('machine', FAILS, str(error), 'correct the file: mbse check says what was understood')
        return
    try:
        used = load_sources(sources) if sources else section_of(machine)
        used = None if used is None or sources == NO_MAP else for_machine(used, machine)
    except MbseError as error:
        yield Check('map', FAILS, str(error), 'correct the map (docs/sources.md)')
        return
    yield from (Check('machine', WARNING, text, f'see mbse check {name}') for text in odd)
    if not odd:
        yield Check('machine', OK, f'{machine.description.file} is sound: {len(machine.channels)} channels')
    if seconds > 0 and any(check.name == 'DDS loopback' and check.status == OK for check in ros):
        if used is not None and used.channels:
            yield from source_checks(machine, used, namespace, seconds)
        else:
            yield from graph_checks(machine, namespace, seconds)


def line(check: Check) -> str:
    """One line of the table."""
    status = typer.style(f'{check.status:<7}', fg=COLOURS[check.status])
    mend = f'  -> {check.mend}' if check.mend else ''
    return f'{status}  {check.name:<20}  {check.found}{mend}'


def summary(checks: Sequence[Check]) -> str:
    """The sum of it."""
    counts = {status: sum(check.status == status for check in checks) for status in COLOURS}
    return f'{len(checks)} checks: ' + ', '.join(f'{count} {status}' for status, count in counts.items())
