# SPDX-License-Identifier: Apache-2.0
"""``mbse observability`` of a machine: what its sensors leave blind of the motion and of the payload."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from ..description.model import MechanismDescription
from ..errors import SettingError
from ..estimators.filters.sight import Sight
from ..estimators.machine_poses import Poses, all_poses, in_motion, motion_poses, start_pose, sweep
from ..estimators.machine_sight import machine_sight
from ..estimators.payload_observability import PayloadSight, measured_equations, payload_sight, pressure_needs
from ..machine import Machine
from ..report.files import write_json
from ..report.text import number
from .observability import Request, summary_of, write_observability_plots
from .trajectory import read_trajectory

FEW = 12        # poses at which the motion is looked at
START, ALL, MOVING, TABLE = 'the start', 'all coordinates', 'all coordinates, accelerating', 'the motion'


def observe_machine(description: MechanismDescription, request: Request, sensors: Sequence[str],
                    json_file: Path | None, output: Path | None) -> None:
    """Look, print, write."""
    if request.model is not None:
        raise SettingError('--model', request.model, 'no such option for a machine: its motion is looked at as the '
                           'observer does, with constant accelerations')
    machine = Machine(description)
    for name in sensors:
        if name not in description.sensors:
            raise SettingError('--sensors', name, 'one of ' + ', '.join(description.sensors))
    sets = pose_sets(machine, request.trajectory)
    where, widest = list(sets.items())[-1]
    few = widest if widest.dt else Poses(widest.q[:FEW], widest.zd[:FEW], widest.zdd[:FEW])
    motion = machine_sight(machine, sensors, few, request.window)
    payload = payload_sights(machine, sensors, sets)
    better = more_pressures(machine, sensors, widest)
    write_json(json_file, {'machine': machine.name, 'sensors': list(sensors), 'trajectory': request.trajectory,
                           'window_s': request.window, 'motion': summary_of(motion, request),
                           'payload': {label: as_json(sight) for label, sight in payload.items()}})
    if output is not None:
        write_observability_plots([motion], request.window, output)
    show(machine, motion, payload, better, where)


def pose_sets(machine: Machine, trajectory: str) -> dict[str, Poses]:
    """Poses by what they are: the start, each coordinate alone, all; or a motion alone."""
    if trajectory == 'rest':
        return {START: start_pose(machine)}
    if trajectory != 'free':
        motion = read_trajectory(Path(trajectory), machine.model)
        return {TABLE: motion_poses(machine, motion.q, motion.qd, motion.dt)}
    every = all_poses(machine)
    return {START: start_pose(machine), **{f'{name} alone': sweep(machine, name) for name in machine.coordinates},
            ALL: every, MOVING: in_motion(every)}


def payload_sights(machine: Machine, sensors: Sequence[str], sets: dict[str, Poses]) -> dict[str, PayloadSight]:
    """What the pressures say of the payload over each set of poses; nothing where no equation has its pressures."""
    volumes = {c.sensor.volume for c in machine.all_channels if c.sensor.name in sensors and c.kind == 'pressure'}
    if machine.description.payload is None or not measured_equations(machine, volumes):
        return {}
    return {label: payload_sight(machine, sensors, poses) for label, poses in sets.items()}


def more_pressures(machine: Machine, sensors: Sequence[str], poses: Poses) -> dict[str, PayloadSight]:
    """The same over some poses with all pressures of one more coordinate, by the names of the sensors to add."""
    found = {}
    if machine.description.payload is None:
        return found
    by_volume = {c.sensor.volume: c.sensor.name for c in machine.all_channels if c.kind == 'pressure'}
    for needed in pressure_needs(machine):
        added = [name for name in machine.volumes if name in needed and by_volume.get(name) not in sensors]
        if added and all(name in by_volume for name in added):
            names = [by_volume[name] for name in added]
            found[' and '.join(names)] = payload_sight(machine, [*sensors, *names], poses)
    return found


def as_json(sight: PayloadSight) -> dict[str, Any]:
    """Rank, information, what is blind, and standard deviations."""
    return {'rank': sight.rank, 'information': sight.window.information, 'blind': sight.blind, 'stddev': sight.stddev}


def show(machine: Machine, motion: Sight, payload: dict[str, PayloadSight], better: dict[str, PayloadSight], where: str
         ) -> None:
    """The motion in a sentence or two, the payload in a line for each set of poses, and what would help."""
    blind = '; '.join(f'{words} ({count} of {len(motion.windows)} places)' for words, count in motion.blind.items())
    typer.echo(f'{machine.name}, motion: {motion.verdict}' + (f': not seen: {blind}' if blind else ''))
    if blind:
        typer.echo('  ' + _helper(motion))
    if machine.description.payload is None:
        typer.echo('payload: the machine has none')
        return
    if not payload:
        typer.echo('payload: not seen: of no cylinder are all pressures among the sensors')
    else:
        typer.echo('payload, mass and centre by the pressures, positions known; poses of')
    for label, sight in payload.items():
        rest = f'; not: {"; ".join(sight.blind)}' if sight.blind else f', after a sample a pose to {_stddev(sight)}'
        typer.echo(f'  {label}: {sight.rank} of {len(sight.stddev)} directions seen{rest}')
    for line in advice(payload):
        typer.echo(line)
    for names, sight in better.items():
        more = sight.rank - (payload[list(payload)[-1]].rank if payload else 0)
        typer.echo(f'with {names}, over {where}: {sight.rank} seen, {more or "no"} more')


def advice(payload: dict[str, PayloadSight]) -> list[str]:
    """Which motions see more than the start does, and what no motion sees."""
    if START not in payload or len(payload) == 1:
        return []
    start, still, moving = payload[START].rank, payload[ALL], payload[MOVING]
    helping = [label for label, sight in payload.items() if label.endswith(' alone') and sight.rank > start]
    lines = [f'more than at the start is seen by moving {", ".join(label.removesuffix(" alone") for label in helping)}'
             if helping else 'no coordinate moved alone shows more than the start does']
    if still.blind:
        lines.append(f'no pose shows {"; ".join(still.blind)}' + (
            ': accelerations do' if not moving.blind else ', nor do accelerations: these pressures cannot; take a load '
            'whose centre is known'))
    return lines


def _stddev(sight: PayloadSight) -> str:
    """Of mass and centre, 1 sigma."""
    return f'{number(float(sight.stddev[0]))} kg and {", ".join(number(float(v)) for v in sight.stddev[1:])} m'


def _helper(motion: Sight) -> str:
    if not motion.helpers:
        return 'the machine has no other sensor that would help'
    name, least = next(iter(motion.helpers.items()))
    return f'{name} would help most' + (': it would see all' if least > 0.0 else ', but not alone')
