# SPDX-License-Identifier: Apache-2.0
"""The procedure of a calibration, of machines by tape measure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cli_support import refused
from new_machines import EXCAVATOR

import mbse_ros as mbse
from mbse_ros.api.calibrate import plan_calibration
from mbse_ros.calibration.balance import CalibrationBalance
from mbse_ros.calibration.plan import AROUND, PAUSE, CandidateMotion, plan
from mbse_ros.errors import DescriptionError
from mbse_ros.filters.observability.machine import mass_accuracy
from mbse_ros.machine import Machine
from mbse_ros.offline.calibration.calibration_plan import CalibrationPlan


@pytest.mark.parametrize('change, expected', [
    ({'pressures': 'none'}, 'both pressures of a cylinder, best of all, to calibrate; missing: pressure/boom_piston'),
    ({'positions': 'inclinations'}, 'a sensor for each of these, which the force balance needs: position/boom')])
def test_a_machine_that_cannot_be_calibrated_has_no_procedure(
        change: dict[str, str], expected: str, tmp_path: Path) -> None:
    """Also one whose file has no hydraulics at all."""
    mbse.new(EXCAVATOR | change).write(tmp_path / 'machine.yaml')
    assert expected in ' '.join(refused('calibrate', '--plan', tmp_path / 'machine.yaml').split())


@pytest.fixture(scope='module')
def angles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An excavator whose sensors measure the angles of its joints, one of them 5 deg too much by its file."""
    path = tmp_path_factory.mktemp('plan') / 'angles.yaml'
    mbse.new(EXCAVATOR).write(path)
    text = path.read_text()
    assert text.count('bias: {value: 0 deg') == 3
    path.write_text(text.replace('bias: {value: 0 deg', 'bias: {value: 5 deg', 1))
    return path


@pytest.fixture(scope='module')
def found(angles: Path) -> CalibrationPlan:
    return plan_calibration(angles)


def test_poses_are_what_the_sensors_measure(found: CalibrationPlan) -> None:
    """At the angles that the sensors show the pistons are where the plan has them, and moved to both sides where it
    moves them."""
    machine, said = found.machine, found.to_json()
    table = found.tables()[0]
    names = [f'position/{name}_joint' for name in ('boom', 'arm', 'bucket')]
    assert table.columns == ['', *(f'{name}, deg' for name in names)]
    stroke = machine.stroke[:, 1]
    for row, pose in zip(table.rows, said['poses']):
        shown = np.array([pose['measured'][name] for name in names])
        around = np.array([pose['around'][name] for name in names])
        assert row[1] == f'{np.degrees(shown[0]):.1f} +- {np.degrees(around[0]):.1f}'
        z = shown - np.radians([5.0, 0.0, 0.0])
        pistons = machine.position(z)[machine.pistons]
        assert pistons == pytest.approx(list(pose['pistons'].values()), abs=1e-3)
        for k in range(3):
            h = 0.1 * around[k] * np.eye(3)[k]
            moved = np.abs(machine.position(z + h) - machine.position(z - h))[machine.pistons][k] / 0.2
            assert moved == pytest.approx(AROUND * stroke[k], rel=0.02)


def test_the_pressures_of_the_boom_alone_are_enough(found: CalibrationPlan, tmp_path: Path) -> None:
    """They weigh worse than all of them."""
    mbse.new(EXCAVATOR | {'pressures': 'boom'}).write(tmp_path / 'machine.yaml')
    alone = plan_calibration(tmp_path / 'machine.yaml')
    before, after = alone.mass_half_widths or (0.0, 0.0)
    assert CalibrationBalance(alone.machine).equations == ('boom',) and len(alone.machine.measured_volumes) == 2
    assert (found.mass_half_widths or (0.0, 0.0))[1] < after < 0.6 * before


def test_poses_of_strokes_are_in_mm_and_of_a_swing_in_degrees() -> None:
    table = plan_calibration('zx200').tables()[0]
    assert table.columns[1:3] == ['position/swing_joint, deg', 'position/boom, mm'] and '+-' not in table.rows[0][1]
    assert '+-' in table.rows[0][2] and '+-' not in next(row for row in table.rows if row[0] == 'sweep boom')[2]


def test_time_of_the_procedure(found: CalibrationPlan) -> None:
    """Two poses of one cylinder, its sweep, and a pose with a load, by hand."""
    def at(place: float, cylinder: str = '') -> CandidateMotion:
        return CandidateMotion(cylinder, np.zeros(1), np.array([place]), 0.0, np.zeros((1, 1)), np.zeros((1, 1)))
    motion = replace(found.found, poses=(at(0.2), at(0.8)), sweeps=(at(0.8, 'lift'),), loaded=(at(0.5),))
    pose, sweep = 6 * AROUND / 0.05 + 4 * PAUSE, 2 / 0.15 + 3 * PAUSE
    assert motion.duration(np.array([2.0])) == pytest.approx((2 * pose + sweep + 0.3 / 0.15 + PAUSE,
                                                              pose + 0.15 / 0.15 + PAUSE))
    empty, loaded = found.minutes
    assert f'about {empty:.0f} min empty and {loaded:.0f} min with the load' in found.steps
    assert found.to_json()['minutes'] == pytest.approx(empty + loaded)


def test_how_well_the_machine_weighs_after_the_procedure(found: CalibrationPlan) -> None:
    """What is learnt of the place of the load counts for this load alone."""
    before, after = found.mass_half_widths or (0.0, 0.0)
    assert before == pytest.approx(mass_accuracy(found.machine).all) and after < 0.5 * before
    names, motion = found.found.keys, found.found
    own = np.array([name.startswith('payload.') for name in names])
    deviations = np.linalg.norm(motion.factor, axis=1)
    assert own.any() and (motion.after[own] < 0.5 * motion.before[own]).any()
    assert deviations == pytest.approx(np.where(own, motion.before, motion.after))
    assert found.summary()[-1].endswith('kg after the procedure')


def test_what_stays_unknown_is_one_line(found: CalibrationPlan) -> None:
    shown = {row[0] for row in found.tables()[1].rows}
    line, _ = found.summary()
    left = set(line.partition(': ')[2].split(', '))
    assert shown | left == set(found.found.keys) and not shown & left and 'hydraulics.oil_bulk_modulus' in left
    assert line.startswith(f'not determined by this procedure, {len(left)} of {len(found.found.keys)}: ')


def test_a_machine_without_a_payload_needs_no_load(found: CalibrationPlan) -> None:
    other = Machine(replace(found.machine.description, payload=None))
    procedure = CalibrationPlan(other, 'bare.yaml', plan(CalibrationBalance(other)))
    assert 'mbse calibrate empty --machine bare.yaml' in procedure.steps and 'load' not in procedure.steps
    assert procedure.mass_half_widths is None and 'load' not in ' '.join(row[0] for row in procedure.tables()[0].rows)
    assert len(procedure.summary()) == 1


def test_a_machine_without_a_pose_within_its_strokes_is_refused(
        found: CalibrationPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('mbse_ros.calibration.plan.ENDS', 0.5)
    with pytest.raises(DescriptionError, match='reaches within the strokes'):
        plan(CalibrationBalance(found.machine))
