# SPDX-License-Identifier: Apache-2.0
"""The tutorial docs/own_machine.md, from the tape measure to the first weighed load, by its own commands. The machine
behind it is drawn from what a tape measure and a data plate leave: no number of it is that of the file."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from calibration import procedure, truth
from cli_support import mbse

import mbse_ros
from mbse_ros.api.calibrate import plan_calibration
from mbse_ros.machine import Machine
from mbse_ros.simulation.crane import SensorFrame, SimulatedCrane, cycle_by_name, plant_of
from mbse_ros.simulation.cycle import Move, WorkCycle

PAGE = (Path(__file__).parents[2] / 'docs' / 'own_machine.md').read_text(encoding='utf-8')
COMMANDS = {line.split()[0] + ''.join(word for word in line.split() if word in ('--plan', '--live')): shlex.split(line)
            for line in re.findall(r'^\./mbse (.*)$', PAGE[:PAGE.index('With a URDF')], re.MULTILINE)}
LOAD = 400.0    # kg
LIFT_NS = 12 * 10 ** 9


def record(frames: list[SensorFrame], path: Path, machine: Machine) -> None:
    """A bag of what the sensors saw."""
    t = np.array([frame.stamp_ns for frame in frames]) * 1e-9
    mbse_ros.write_bag(path, {channel: (t, np.array([frame.samples[channel] for frame in frames]))
                              for channel in machine.channels}, machine.description.file)


def test_from_the_tape_measure_to_the_first_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of the ten empty poses and one of the two with the load keep it short; docs have the rest."""
    monkeypatch.chdir(tmp_path)
    block = PAGE[PAGE.index('```yaml\n') + 8:]
    Path('answers.yaml').write_text(block[:block.index('```')], encoding='utf-8')
    done = mbse(*COMMANDS['new'])
    assert done.status == 0 and Path('out/mini8.png').is_file()
    done = mbse(*COMMANDS['calibrate--plan'])
    assert done.status == 0 and 'deg' in done.out and '500 kg' in done.out

    steps, machine = plan_calibration('out/mini8.yaml').found, mbse_ros.load('out/mini8.yaml')
    numbers, plant = truth(machine, np.random.default_rng(3)), plant_of(machine)
    still = WorkCycle(0.3, (Move(0.0, 1.0),))
    for name, load, poses in (('empty', 0.0, steps.poses[:3]), ('load', steps.load, steps.loaded[:1])):
        crane = SimulatedCrane(machine, load, 1, still, parameters=numbers, plant=plant)
        record(procedure(crane, poses), Path(name), machine)
    done = mbse(*COMMANDS['calibrate'])
    assert done.status == 0 and re.search('grade: (green|amber)', done.out), done.out + done.err

    lift = SimulatedCrane(machine, LOAD, 7, cycle_by_name('random', machine, 7), parameters=numbers, plant=plant)
    record(list(lift.advance(LIFT_NS)), Path('BAG'), machine)
    found = {}
    for file in ('mini8', 'mini8_calibrated'):
        words = [word.replace('mini8_calibrated', file) for word in COMMANDS['estimate']]
        done = mbse(*words, '--json', f'{file}.json')
        assert done.status == 0, done.err
        found[file] = json.loads(Path(f'{file}.json').read_text(encoding='utf-8'))['payload']
    mass, (lower, upper) = (found['mini8_calibrated'][key] for key in ('mass', 'interval'))
    assert lower < LOAD < upper and abs(mass - LOAD) < 0.01 * 1000 and upper - lower < 0.05 * 1000
    assert np.ptp(found['mini8']['interval']) > 4 * (upper - lower)
