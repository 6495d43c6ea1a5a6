# SPDX-License-Identifier: Apache-2.0
"""``mbse.new``: invented machines pass ``check``, simulate, and weigh."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from new_machines import EXCAVATOR, MACHINES
from urdf_of import excavator, ur10e

import mbse_ros as mbse
from mbse_ros.description.load import load_mechanism
from mbse_ros.description.templates.answers import template
from mbse_ros.description.templates.kinds import KINDS


@pytest.mark.parametrize('name', MACHINES)
def test_an_invented_machine_passes_check(name: str, tmp_path: Path) -> None:
    found = mbse.new(MACHINES[name])
    found.write(tmp_path / 'machine.yaml')
    checked = mbse.check(tmp_path / 'machine.yaml')
    assert checked.trouble is None and not checked.warnings, checked.warnings
    assert found.to_json()['text'] == found.text and f'{found.assumed} numbers' in found.summary()[0]


@pytest.mark.parametrize('kind', KINDS)
def test_the_questions_of_a_kind_are_a_machine_as_they_are(kind: str, tmp_path: Path) -> None:
    (tmp_path / 'answers.yaml').write_text(template(KINDS[kind]), encoding='utf-8')
    mbse.new(tmp_path / 'answers.yaml').write(tmp_path / 'machine.yaml')
    checked = mbse.check(tmp_path / 'machine.yaml')
    assert checked.trouble is None and not checked.warnings, checked.warnings


@pytest.mark.parametrize(('pressures', 'lacking'), [('all', ()), ('arm, boom', ('bucket',)),
                                                    ('none', ('boom', 'arm', 'bucket'))])
def test_calibration_is_named_where_pressures_are_measured_and_what_would_help(
        pressures: str, lacking: tuple[str, ...]) -> None:
    found = mbse.new({**EXCAVATOR, 'pressures': pressures})
    line, = found.summary()
    assert found.without_pressures == lacking and ('--plan' in line) is (pressures != 'none')
    assert (', '.join(lacking) or 'find them') in line


def test_answers_of_a_file_and_of_python_give_the_same(tmp_path: Path) -> None:
    (tmp_path / 'answers.yaml').write_text(yaml.safe_dump(EXCAVATOR), encoding='utf-8')
    in_si = {**EXCAVATOR, 'boom': 3.84, 'boom_eye': [1.65, '2.41 m'], 'mass': '8000 kg', 'boom_cylinders': 2}
    assert mbse.new(tmp_path / 'answers.yaml').text == mbse.new(EXCAVATOR).text == mbse.new(in_si).text


def test_an_invented_excavator_simulates_and_weighs(tmp_path: Path) -> None:
    """Before any calibration: a wide interval, in which the load is."""
    mbse.new(EXCAVATOR).write(tmp_path / 'mini8.yaml')
    machine = mbse.load(tmp_path / 'mini8.yaml')
    estimate = mbse.estimate(mbse.simulate(machine, 12.0, payload=400.0, cycle='boom').samples, machine, every=0.1)
    assert estimate.lower[-1] < 400.0 < estimate.upper[-1]


def test_the_file_of_a_urdf_weighs_the_machine_that_it_is_of(tmp_path: Path) -> None:
    """zx200 by its URDF and a tape measure, which say nothing of friction, oil, hoses and masses of cylinders."""
    found = mbse.new(excavator(tmp_path))
    found.write(tmp_path / 'by_urdf.yaml')
    checked = mbse.check(tmp_path / 'by_urdf.yaml')
    assert checked.trouble is None and not checked.warnings, checked.warnings
    estimate = mbse.estimate(mbse.simulate('zx200', payload=1000.0, cycle='boom', duration=12.0).samples,
                             tmp_path / 'by_urdf.yaml', every=0.1)
    assert estimate.lower[-1] < 1000.0 < estimate.upper[-1] and estimate.upper[-1] - estimate.lower[-1] < 500.0


def test_an_arm_of_a_urdf_passes_check(tmp_path: Path) -> None:
    (tmp_path / 'ur10e.urdf').write_text(ur10e())
    (tmp_path / 'answers.yaml').write_text('urdf: ur10e.urdf\nload: 12.5 kg\nefforts: current\ngear_ratios: 101\n'
                                           'torque_constants: 0.12, 0.12, 0.12, 0.1, 0.1, 0.1\neffort_stddev: 0.2 A\n')
    found = mbse.new(tmp_path / 'answers.yaml')
    found.write(tmp_path / 'arm.yaml')
    checked = mbse.check(tmp_path / 'arm.yaml')
    assert checked.trouble is None and not checked.warnings and 'cylinders' not in checked.end
    assert 'empty machine' in found.summary()[0]


@pytest.mark.parametrize(('efforts', 'rotors', 'at_the_joint'), [
    ('efforts: current\ngear_ratios: 101\ntorque_constants: 0.1\n', '6e-5, 6e-5, 6e-5, 1e-5, 1e-5, 0', 0.612060),
    ('', '0.6 kg*m^2', 0.6)], ids=['before the gear', 'as the joint feels it'])
def test_rotors_that_are_known_are_in_the_file(tmp_path: Path, efforts: str, rotors: str, at_the_joint: float) -> None:
    """At the joint by the square of the gear's ratio; one of 0 is not known, and not in it."""
    (tmp_path / 'ur10e.urdf').write_text(ur10e())
    (tmp_path / 'answers.yaml').write_text(f'urdf: ur10e.urdf\nload: 12.5 kg\n{efforts}effort_stddev: 0.2\n'
                                           f'rotor_inertias: {rotors}\n')
    mbse.new(tmp_path / 'answers.yaml').write(tmp_path / 'arm.yaml')
    drives = list(load_mechanism(tmp_path / 'arm.yaml').drives.values())
    first = drives[0].rotor_inertia
    assert first.value * drives[0].gear_ratio ** 2 == pytest.approx(at_the_joint)
    assert first.stddev == pytest.approx(0.5 * first.value)
    assert (drives[-1].rotor_inertia is None) == rotors.endswith(' 0')
