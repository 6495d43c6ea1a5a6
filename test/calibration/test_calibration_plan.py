# SPDX-License-Identifier: Apache-2.0
"""The procedure of a calibration, of machines by tape measure."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_support import refused
from new_machines import EXCAVATOR

import mbse_ros as mbse


@pytest.mark.parametrize('change, expected', [
    ({'pressures': 'none'}, 'the pressures of all cylinders, to calibrate; missing: pressure/boom_piston'),
    ({'positions': 'inclinations'}, 'a sensor for each of these, which the force balance needs: position/boom')])
def test_a_machine_that_cannot_be_calibrated_has_no_procedure(
        change: dict[str, str], expected: str, tmp_path: Path) -> None:
    """Also one whose file has no hydraulics at all."""
    mbse.new(EXCAVATOR | change).write(tmp_path / 'machine.yaml')
    assert expected in ' '.join(refused('calibrate', '--plan', tmp_path / 'machine.yaml').split())
