# SPDX-License-Identifier: Apache-2.0
"""The procedure for the bags of a calibration: steps, poses, what they tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...calibration.identifiability import LEARNT
from ...calibration.plan import CandidateMotion, Plan
from ...machine import Machine
from ...report.data import Table
from ...report.result import Answer
from ...report.text import number

AROUND = 0.06       # of the stroke, from which a pose is approached, at 5 % of the stroke a second
STEPS = '''\
1. Warm up the oil. Place the machine as it will work, and note its attitude. Empty and clean the bucket or grapple.
2. Record one bag, `empty`: all channels of the machine. Go to each pose below; there move one cylinder after the other
   slowly (about {slow}) {around} out through the pose and back in again, so that each is approached from below
   and from above, at steady speed for 1 s or more each way. Leave out what cannot be reached safely.
3. In the same bag sweep each cylinder once over its stroke, slowly, out and in, from where the table says.
4. Take a weight that is known to 0.5 % or better, near {load:g} kg. Record a second bag, `load`: the poses with a load,
   in the same way.
5. mbse calibrate empty load --payload load={load:g} --machine {machine} -o {name}_calibrated.yaml --cross-validate
6. Weigh the known load once more with the new file, in a pose that was not among them: it must be within its interval.
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
        machine, stroke = self.machine, self.machine.stroke[:, 1] - self.machine.stroke[:, 0]
        slow = ', '.join(f'{item} {50 * span:.0f} mm/s' for item, span in zip(machine.cylinders, stroke))
        around = ', '.join(f'{1e3 * AROUND * span:.0f} mm' for span in stroke)
        return f'Calibration of {machine.name}\n' + STEPS.format(
            slow=slow, around=around, load=self.found.load, machine=self.name, name=machine.name)

    def tables(self) -> list[Table]:
        """Poses, and deviations before and after."""
        found = self.found
        rows = [[f'pose {k + 1}', *_places(item)] for k, item in enumerate(found.poses)]
        rows += [[f'sweep {item.cylinder}', *_places(item)] for item in found.sweeps]
        rows += [[f'with {item.load:g} kg, pose {k + 1}', *_places(item)] for k, item in enumerate(found.loaded)]
        tables = [Table('positions of the pistons, mm', ['', *self.machine.cylinders], rows)]
        rows = [[key, number(before), number(after), '' if after <= LEARNT * before else
                 'not determined by this procedure'] for key, before, after in zip(found.keys, found.before,
                                                                                   found.after)]
        return [*tables, Table('standard deviations, as in the file and as after the procedure, SI',
                               ['number', 'before', 'after', ''], rows)]

    def _values(self, full: bool) -> dict[str, Any]:
        """The same."""
        found = self.found
        return {'machine': self.machine.name, 'poses': self._poses(found.poses), 'sweeps': self._poses(found.sweeps),
                'loaded': self._poses(found.loaded), 'load': found.load, 'parameters': [
                    {'key': key, 'stddev_before': before, 'stddev_after': after}
                    for key, before, after in zip(found.keys, found.before, found.after)]}

    def _poses(self, items: Sequence[CandidateMotion]) -> list[dict[str, Any]]:
        return [{'pistons': dict(zip(self.machine.cylinders, np.round(item.pistons, 4).tolist())),
                 'coordinates': dict(zip(self.machine.coordinates, item.z.tolist())), 'cylinder': item.cylinder,
                 'load': item.load} for item in items]


def _places(item: CandidateMotion) -> list[str]:
    return [f'{1e3 * place:.0f}' for place in item.pistons]
