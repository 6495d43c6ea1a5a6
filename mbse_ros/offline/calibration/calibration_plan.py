# SPDX-License-Identifier: Apache-2.0
"""The procedure for the bags of a calibration: steps, poses, what they tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...calibration.plan import AROUND, FAST, PAUSE, SLOW, CandidateMotion, Plan
from ...description.coordinate_units import unit_and_scale
from ...filters.observability.machine import mass_accuracy
from ...machine import Machine
from ...report.data import Table
from ...report.result import Answer
from ...report.text import number
from .calibration_words import cell, determined, position_channels, readings, undetermined

STEPS = '''\
1. Warm up the oil. Place the machine as it will work, and note its attitude. Empty and clean the bucket or grapple.
2. Record one bag, `empty`: all channels of the machine. Go to each pose below; there move one cylinder after the other
   slowly out through the pose and back in again, as far to both sides as the table says (+-), each way in about
   {seconds:.1f} s, so that each is approached from below and from above, at steady speed for 1 s or more each way.
   Leave out what cannot be reached safely.
3. In the same bag sweep each cylinder once over its stroke, out and in, in about {sweep:.0f} s each way, from where the
   table says.
'''
UNLOADED = '''\
4. mbse calibrate empty --machine {machine} -o {name}_calibrated.yaml

The motion takes about {empty:.0f} min, with rests of {pause:g} s.
'''
LOADED = '''\
4. Take a weight that is known to 0.5 % or better, near {load:g} kg. Record a second bag, `load`: the poses with a load,
   in the same way.
5. mbse calibrate empty load --payload load={load:g} --machine {machine} -o {name}_calibrated.yaml --cross-validate
6. Weigh the known load once more with the new file, in a pose that was not among them: it must be within its interval.

The motion takes about {empty:.0f} min empty and {loaded:.0f} min with the load, with rests of {pause:g} s.
'''


@dataclass(frozen=True)
class CalibrationPlan(Answer):
    """The procedure that ``found`` for a ``machine``, of the file ``name``: steps, poses, and what they tell."""

    machine: Machine
    name: str
    found: Plan

    @property
    def steps(self) -> str:
        """What to do, a line each."""
        machine, (empty, loaded) = self.machine, self.minutes
        steps = STEPS + (LOADED if self.found.loaded else UNLOADED)
        return f'Calibration of {machine.name}\n' + steps.format(
            seconds=2 * AROUND / SLOW, sweep=1 / FAST, pause=PAUSE, empty=max(1.0, empty), loaded=max(1.0, loaded),
            load=self.found.load, machine=self.name, name=machine.name)

    @property
    def minutes(self) -> tuple[float, float]:
        """Time of the motion empty and with the load, min."""
        empty, loaded = self.found.duration(np.diff(self.machine.stroke)[:, 0])
        return empty / 60, loaded / 60

    @cached_property
    def mass_half_widths(self) -> tuple[float, float] | None:
        """Half-widths of 95 % intervals of a mass, kg, by the file as it is and after the procedure, in the middle of
        all poses and at half of the largest mass; None without a payload."""
        if self.machine.description.payload is None:
            return None
        before, after = (mass_accuracy(self.machine, factor=factor).all for factor in (None, self.found.factor))
        return before, after

    def tables(self) -> list[Table]:
        """Poses, and deviations before and after."""
        found = self.found
        units = [unit_and_scale(self.machine.description, channel.name) for channel in position_channels(self.machine)]
        rows = [[label, *map(cell, self._readings(item).values(), units)] for label, item in [
            *((f'pose {k + 1}', item) for k, item in enumerate(found.poses)),
            *((f'sweep {item.cylinder}', item) for item in found.sweeps),
            *((f'with {item.load:g} kg, pose {k + 1}', item) for k, item in enumerate(found.loaded))]]
        heads = [f'{channel.name}, {unit}' for channel, (unit, _) in zip(position_channels(self.machine), units)]
        tables = [Table('positions, as their sensors measure them', ['', *heads], rows)]
        return [*tables, determined(self._deviations)]

    def summary(self) -> list[str]:
        """What stays unknown, and how well the machine weighs."""
        lines = undetermined(self._deviations)
        if self.mass_half_widths is not None:
            before, after = self.mass_half_widths
            lines.append(f'a mass, by the sensors and numbers of the file: +- {number(before)} kg (95 %) as it is, '
                         f'+- {number(after)} kg after the procedure')
        return lines

    @property
    def _deviations(self) -> list[tuple[str, float, float]]:
        found = self.found
        return list(zip(found.keys, found.before.tolist(), found.after.tolist()))

    def _readings(self, item: CandidateMotion) -> dict[str, tuple[float, float]]:
        """What the channels show at a pose, SI, and by how much it changes to both sides where the motion is around
        it."""
        machine = self.machine
        moved = None
        if item.cylinder == '':
            moved = dict(zip(machine.cylinders, AROUND * np.diff(machine.stroke)[:, 0])) | dict(
                zip(machine.coordinates, AROUND / SLOW * np.abs(item.speeds).max(axis=0)))
        return readings(machine, item.z, item.pistons, moved)

    def _values(self, full: bool) -> dict[str, Any]:
        """The same."""
        found = self.found
        return {'machine': self.machine.name, 'poses': self._poses(found.poses), 'sweeps': self._poses(found.sweeps),
                'loaded': self._poses(found.loaded), 'load': found.load,
                'minutes': sum(self.minutes), 'mass_half_widths': self.mass_half_widths, 'parameters': [
                    {'key': key, 'stddev_before': before, 'stddev_after': after}
                    for key, before, after in zip(found.keys, found.before, found.after)]}

    def _poses(self, items: Sequence[CandidateMotion]) -> list[dict[str, Any]]:
        found = []
        for item in items:
            readings = self._readings(item)
            found.append({
                'pistons': dict(zip(self.machine.cylinders, np.round(item.pistons, 4).tolist())),
                'coordinates': dict(zip(self.machine.coordinates, item.z.tolist())), 'cylinder': item.cylinder,
                'measured': {name: value for name, (value, _) in readings.items()},
                'around': {name: around for name, (_, around) in readings.items()}, 'load': item.load})
        return found
