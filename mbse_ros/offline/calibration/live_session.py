# SPDX-License-Identifier: Apache-2.0
"""The folder of a calibration on the running graph: a bag for each group of steps, and which steps are done, so that an
interrupted session goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from ...calibration.guide import GuideState
from ...calibration.plan import AROUND
from ...calibration.steps import PlanStep
from ...description.coordinate_units import unit_and_scale
from ...description.model import fingerprint
from ...errors import SettingError
from ...machine import Machine
from ...resources import write_whole
from .calibration_words import cell, readings

FILE = 'steps.json'


class LiveSession:
    """``done``: keys of the steps whose bags are complete; ``bags``: names of these, with whether the load is on.

    Raises SettingError for a folder of another machine, or one that is not of a session.
    """

    def __init__(self, folder: str | Path, machine: Machine) -> None:
        self.folder, self._machine = Path(folder), fingerprint(machine.description)
        self.done: list[str] = []
        self.bags: dict[str, bool] = {}
        path = self.folder / FILE
        if path.exists():
            try:
                said = json.loads(path.read_text('utf-8'))
                of, self.done, self.bags = said['machine'], list(said['done']), dict(said['bags'])
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise SettingError('folder', str(folder), f'the folder of a session; {FILE}: {error}') from None
            if of != self._machine:
                raise SettingError('folder', str(folder), 'a new folder, or that of a session with this machine file: '
                                   'the bags there were recorded for another one')

    def bag(self, group: str) -> Path:
        """A new bag for a group of steps: after an interruption the first of pose_1, pose_1_2, ... that is free."""
        path, count = self.folder / group, 1
        while path.exists():
            count += 1
            path = self.folder / f'{group}_{count}'
        return path

    def completed(self, bag: Path, loaded: bool, done: Iterable[str]) -> None:
        """A bag is complete: what is in it is kept, whatever happens from here on."""
        self.bags[bag.name] = loaded
        self.done += [key for key in done if key not in self.done]
        text = json.dumps({'machine': self._machine, 'done': self.done, 'bags': self.bags}, indent=2)
        write_whole(self.folder / FILE, text + '\n')

    def payloads(self, load: str) -> list[str]:
        """Words of the loads of all bags, of which those with the load have that of ``load``: KG or KG+-DEVIATION."""
        return [f'{name}={load if loaded else 0}' for name, loaded in self.bags.items()]


class StepReading(NamedTuple):
    """What a ``channel`` shall show, in its ``unit``: ``wanted``, with how far around it the motion goes, and what it
    shows ``now``, '' where nothing is known."""

    channel: str
    unit: str
    wanted: str
    now: str


def step_readings(machine: Machine, step: PlanStep, last: Mapping[str, float]) -> list[StepReading]:
    """Which pose or motion a step wants, as the sensors show it, with their ``last`` values, SI."""
    moved = dict(zip(machine.coordinates, step.around.tolist()))
    if not step.sweeps:
        moved |= {step.cylinder: float(AROUND * (machine.stroke[step.place, 1] - machine.stroke[step.place, 0]))}
    found = []
    for name, wanted in readings(machine, step.z, step.pistons, moved).items():
        unit = unit_and_scale(machine.description, name)
        now = cell((last[name], 0.0), unit) if name in last else ''
        found.append(StepReading(name, unit[0], cell(wanted, unit), now))
    return found


def step_line(machine: Machine, step: PlanStep, last: Mapping[str, float]) -> str:
    """The same on one line, with what is to be done."""
    parts = [f'{item.channel} {item.wanted} {item.unit}' + f', now {item.now}' * bool(item.now)
             for item in step_readings(machine, step, last)]
    of = f'with {step.load:g} kg, ' * (step.load > 0.0)
    way = 'over its stroke, out and in, from' if step.sweeps else 'slowly out and in around'
    return f'{step.group}: {of}{step.cylinder} {way} ' + '; '.join(parts)


def state_line(state: GuideState) -> str:
    """What to do, how far it is, and how long the rest takes."""
    return (f'{state.words} [{"#" * round(10 * state.progress):.<10}] step {state.number} of {state.count}, '
            f'{state.all:.0%}, about {max(1, round(state.seconds / 60))} min left')
