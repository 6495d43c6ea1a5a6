# SPDX-License-Identifier: Apache-2.0
"""``mbse observability`` of a machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_support import mbse, refused

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


@pytest.mark.parametrize('words, said', [(('--sensors', 'nothing'), 'lift_stroke'),
                                         (('--sensors', ALL, '--model', 'exact'), 'no such option for a machine')])
def test_what_cannot_be_done_is_said_in_one_line(words: tuple, said: str) -> None:
    assert said in refused('observability', 'patu655_lift', *words)
