# SPDX-License-Identifier: Apache-2.0
"""The procedure for the bags of a calibration of an arm: motions of all joints at once, and what they tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...calibration.excitation import JointMotion, MotionPlan
from ...description.coordinate_units import unit_and_scale
from ...machine import Machine
from ...report.data import Table
from ...report.result import Answer
from .calibration_words import determined, undetermined

EVERY, STEP = 1.0, 0.05     # s between the poses that are printed, and those in JSON
STEPS = '''\
1. Warm up the arm by moving all its joints for some minutes. Take off what it carries, or describe its tool.
2. The motions below know the joints' limits and largest efforts of the file, and nothing that is around the arm:
   look at each first, slowly, for collisions. Leave out what is not safe; another motion of all joints will do.
3. Record one bag, `empty`: go to the first pose of a motion, then through its poses, one each {every:g} s, without
   stops between; {count} motions of {duration:.0f} s. As JSON each {step:g} s, with speeds, as a trajectory.
'''
UNLOADED = '''\
4. mbse calibrate empty --machine {machine} -o {name}_calibrated.yaml
'''
LOADED = '''\
4. Fix a weight that is known to 0.5 % or better, near {load:g} kg. Record a second bag, `load`: its motion.
5. mbse calibrate empty load --payload load={load:g} --machine {machine} -o {name}_calibrated.yaml --cross-validate
'''


@dataclass(frozen=True)
class CalibrationMotions(Answer):
    """The procedure that ``found`` for an arm ``machine``, of the file ``name``."""

    machine: Machine
    name: str
    found: MotionPlan

    @property
    def steps(self) -> str:
        """What to do, a line each."""
        steps = STEPS + (LOADED if self.found.loaded else UNLOADED)
        return f'Calibration of {self.machine.name}\n' + steps.format(
            every=EVERY, step=STEP, count=len(self.found.motions), duration=self.found.motions[0].duration,
            load=self.found.load, machine=self.name, name=self.machine.name)

    def tables(self) -> list[Table]:
        """Poses of the motions, and deviations before and after."""
        units = [unit_and_scale(self.machine.description, f'position/{name}') for name in self.machine.coordinates]
        heads = ['t, s', *(f'{name}, {unit}' for name, (unit, _) in zip(self.machine.coordinates, units))]
        tables = []
        for label, motion in [*((f'motion {k + 1}', item) for k, item in enumerate(self.found.motions)),
                              *((f'motion with {self.found.load:g} kg', item) for item in self.found.loaded)]:
            t = np.arange(0.0, motion.duration + EVERY / 2, EVERY)
            rows = [[f'{time:g}', *(f'{value * scale:.{1 if unit == "deg" else 3}f}'
                                    for value, (unit, scale) in zip(q, units))] for time, q in zip(t, motion.at(t)[0])]
            tables.append(Table(label, heads, rows))
        return [*tables, determined(self._deviations)]

    def summary(self) -> list[str]:
        """What stays unknown."""
        return undetermined(self._deviations)

    @property
    def _deviations(self) -> list[tuple[str, float, float]]:
        """Of the machine, not of the load."""
        found = self.found
        return [(key, before, after) for key, before, after in zip(
            found.keys, found.before.tolist(), found.after.tolist()) if not key.startswith('payload.')]

    def _values(self, full: bool) -> dict[str, Any]:
        """The same."""
        found = self.found
        return {'machine': self.machine.name, 'joints': list(self.machine.coordinates),
                'motions': [_sampled(item) for item in found.motions],
                'loaded': [_sampled(item) for item in found.loaded], 'load': found.load, 'parameters': [
                    {'key': key, 'stddev_before': before, 'stddev_after': after}
                    for key, before, after in self._deviations]}


def _sampled(motion: JointMotion) -> dict[str, Any]:
    """Each ``STEP`` s, SI."""
    t = np.arange(0.0, motion.duration + STEP / 2, STEP)
    positions, velocities, accelerations = motion.at(t)
    return {'t': t, 'positions': positions, 'velocities': velocities, 'accelerations': accelerations}
