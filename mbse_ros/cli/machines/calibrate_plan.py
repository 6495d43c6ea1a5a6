# SPDX-License-Identifier: Apache-2.0
"""``mbse calibrate --plan``: the procedure of a machine, with the most informative poses of its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...calibration.balance import CalibrationBalance
from ...calibration.identifiability import LEARNT
from ...calibration.plan import CandidateMotion, Plan, plan
from ...machine import Machine
from ...offline.calibration.calibrated_file import prior_machine
from ...report.files import check_file, write_json
from ...report.sections import print_table, wide_console
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


def plan_command(machine: str, free: Sequence[str], json_file: Path | None) -> None:
    """Print the procedure; raises DescriptionError, SettingError."""
    check_file(json_file)
    _, loaded = prior_machine(machine, free)
    found = plan(CalibrationBalance(loaded))
    write_json(json_file, as_json(loaded, found))
    show(loaded, machine, found)


def show(machine: Machine, name: str, found: Plan) -> None:
    """Steps, poses, and what they tell."""
    console, stroke = wide_console(), machine.stroke[:, 1] - machine.stroke[:, 0]
    slow = ', '.join(f'{item} {50 * span:.0f} mm/s' for item, span in zip(machine.cylinders, stroke))
    around = ', '.join(f'{1e3 * AROUND * span:.0f} mm' for span in stroke)
    console.print(f'Calibration of {machine.name}', markup=False)
    steps = STEPS.format(slow=slow, around=around, load=found.load, machine=name, name=machine.name)
    console.print(steps, markup=False, highlight=False, soft_wrap=True)
    rows = [[f'pose {k + 1}', *_places(item)] for k, item in enumerate(found.poses)]
    rows += [[f'sweep {item.cylinder}', *_places(item)] for item in found.sweeps]
    rows += [[f'with {item.load:g} kg, pose {k + 1}', *_places(item)] for k, item in enumerate(found.loaded)]
    print_table(console, 'positions of the pistons, mm', ['', *machine.cylinders], rows)
    rows = [[key, number(before), number(after), '' if after <= LEARNT * before else 'not determined by this procedure']
            for key, before, after in zip(found.keys, found.before, found.after)]
    print_table(console, 'standard deviations, as in the file and as after the procedure, SI',
                ['number', 'before', 'after', ''], rows)


def _places(item: CandidateMotion) -> list[str]:
    return [f'{1e3 * place:.0f}' for place in item.pistons]


def as_json(machine: Machine, found: Plan) -> dict[str, Any]:
    """The same."""
    def pose(item: CandidateMotion) -> dict[str, Any]:
        return {'pistons': dict(zip(machine.cylinders, np.round(item.pistons, 4).tolist())),
                'coordinates': dict(zip(machine.coordinates, item.z.tolist())), 'cylinder': item.cylinder,
                'load': item.load}

    return {'machine': machine.name, 'poses': [pose(item) for item in found.poses],
            'sweeps': [pose(item) for item in found.sweeps], 'loaded': [pose(item) for item in found.loaded],
            'load': found.load, 'parameters': [{'key': key, 'stddev_before': before, 'stddev_after': after}
                                               for key, before, after in zip(found.keys, found.before, found.after)]}
