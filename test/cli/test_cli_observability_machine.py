# SPDX-License-Identifier: Apache-2.0
"""``mbse observability`` of a machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from cli_support import mbse, refused

from mbse_ros.description.load import known_machines

ALL = 'lift_stroke,lift_piston,lift_rod'


def test_says_what_is_blind_and_what_helps(tmp_path: Path) -> None:
    done = mbse('observability', 'patu655_lift', '--sensors', ALL, '--json', tmp_path / 'f.json', '-o',
                tmp_path / 'out')
    assert done.status == 0 and 'motion: seen' in done.out, done
    assert 'by moving lift' in done.out and 'no pose shows the centre along y of boom' in done.out
    found = json.loads((tmp_path / 'f.json').read_text())
    assert found['payload']['the start']['rank'] == 1 and found['payload']['all coordinates']['rank'] == 2
    assert found['motion']['verdict'] == 'seen' and found['payload']['the start']['stddev'] == [None] * 4
    assert (tmp_path / 'out' / 'observability.png').is_file()


def test_sensors_that_are_missing() -> None:
    done = mbse('observability', 'patu655_lift', '--sensors', 'lift_piston,lift_rod', '--trajectory', 'rest')
    assert done.status == 0 and 'lift_stroke would help most: it would see all' in done.out, done
    assert 'payload: not seen' in mbse('observability', 'patu655_lift', '--sensors', 'lift_stroke').out


def test_what_to_switch_on_to_weigh_is_named(tmp_path: Path) -> None:
    """Sensors of the file by their names, others as what the file has none of."""
    chosen = 'observability', '--sensors', 'lift_stroke,lift_piston'
    assert 'to weigh, add to the sensors: lift_rod\n' in mbse(*chosen, 'patu655_lift').out
    own = tmp_path / 'own.yaml'
    data = yaml.safe_load(known_machines()['patu655_lift'].read_text(encoding='utf-8'))
    del data['sensors']['lift_rod']
    own.write_text(yaml.safe_dump(data), encoding='utf-8')
    assert 'add to the sensors: pressure/lift_rod (not in the file)\n' in mbse(*chosen, own).out


@pytest.mark.parametrize('words, said', [(('--sensors', 'nothing'), 'lift_stroke'),
                                         (('--sensors', 'lift_stoke'), 'did you mean lift_stroke?'),
                                         (('--sensors', ALL, '--model', 'exact'), 'no such option for a machine')])
def test_what_cannot_be_done_is_said_in_one_line(words: tuple, said: str) -> None:
    assert said in refused('observability', 'patu655_lift', *words)
