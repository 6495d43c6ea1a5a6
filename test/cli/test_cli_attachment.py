# SPDX-License-Identifier: Apache-2.0
"""``--attachment`` of fleet, smooth, calibrate and export-c: a recorded lift of 50 kg, of which 30 kg are a tool."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
from cli_support import mbse, recorded, refused

from mbse_ros.description.load import load_mechanism
from mbse_ros.description.model import fingerprint
from mbse_ros.machine import load_machine
from mbse_ros.scale.scale_file import equipped

SCALE = 'format: mbse/scale/1\nattachments: {grapple: 30 kg, hook: 5 kg}\n'
MACHINE = '--machine', 'patu655_lift'


@pytest.fixture(scope='module')
def tool(tmp_path_factory) -> tuple[object, ...]:
    """Options of the tool."""
    file = tmp_path_factory.mktemp('scale') / 'scale.yaml'
    file.write_text(SCALE)
    return '--scale', file, '--attachment', 'grapple'


@pytest.fixture(scope='module')
def bag(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp('bags') / 'lift'
    recorded(folder)
    return folder


def test_fleet(bag, tool, tmp_path) -> None:
    words = 'fleet', bag, '--jobs', 1, *MACHINE, '-o', tmp_path / 'loads.csv', '--set', 'scale.least_load=15'
    done = mbse(*words, *tool)
    assert done.status == 0, done
    file, = (tmp_path / 'loads.csv' / 'loads').iterdir()
    row, = csv.DictReader(file.read_text().splitlines())
    assert float(row['mass_kg']) == pytest.approx(20.0, abs=2.0)
    assert '1 of them done before' in mbse(*words, *tool).out
    assert 'attachment' in refused(*words, *tool[:3], 'hook') and 'machine_file' in refused(*words)
    assert 'did you mean grapple' in refused('fleet', bag, *MACHINE, '-o', tmp_path / 'x.csv', *tool[:3], 'graple')


def test_smooth(bag, tool, tmp_path) -> None:
    pytest.importorskip('gtsam', reason='GTSAM is not installed (extra "graph")')
    done = mbse('smooth', bag, *MACHINE, '--lag', 0.6, '--json', tmp_path / 'x.json', *tool)
    assert done.status == 0 and 'with attachment grapple (+30 kg)' in done.out, done
    low, high = json.loads((tmp_path / 'x.json').read_text())['payload']['interval']
    assert low < 20.0 < high and high - low < 15.0
    assert '--attachment' in refused('smooth', bag, '--mechanism', 'four_bar', *tool)


def test_calibrate(bag, tool, tmp_path) -> None:
    """The load is told without the tool; the boom's numbers stay those without it."""
    found = {}
    for name, more in (('without', ()), ('with', tool)):
        done = mbse('calibrate', bag, *MACHINE, '--payload', 'lift=20+-0.1', '--free', 'bodies.*.mass=1 %', '--json',
                    tmp_path / f'{name}.json', '--force', '-o', tmp_path / f'{name}.yaml', *more)
        assert done.status == 0, done
        found[name] = json.loads((tmp_path / f'{name}.json').read_text())
    offset = {name: next(item['after'] for item in one['parameters'] if item['key'] == 'sensors.lift_piston.offset')
              for name, one in found.items()}
    assert abs(offset['with']) < 20e3 < 100e3 < offset['without']       # Pa, that hold the tool up
    assert 'with attachment grapple (+30 kg) in the equations: numbers of boom are those of both' in done.out
    old, new = load_mechanism('patu655_lift'), load_mechanism(tmp_path / 'with.yaml')
    assert new.bodies['boom'] == replace(old.bodies['boom'], mass=new.bodies['boom'].mass)
    assert new.bodies['boom'].mass.value == old.bodies['boom'].mass.value
    assert 'sensors.lift_piston.offset' in new.calibration.keys
    assert not any(key.startswith('bodies.boom.') for key in new.calibration.keys)
    assert '--attachment' in refused('calibrate', '--plan', 'patu655_lift', *tool[2:])


def test_export_c(tool, tmp_path) -> None:
    done = mbse('export-c', 'patu655_lift', '--estimator', '-o', tmp_path / 'c', *tool)
    assert done.status == 0 and 'with attachment grapple (+30 kg) in the equations' in done.out, done
    said = json.loads(next((tmp_path / 'c').glob('*.json')).read_text())
    plain = load_machine('patu655_lift').description
    assert said['attachment'] == 'grapple'
    assert said['fingerprint'] == fingerprint(equipped(plain, 'grapple', tool[1])) != fingerprint(plain)
    for name, word in (('patu655_lift', ()), ('four_bar', ()), ('four_bar', ('--estimator',))):
        assert '--attachment' in refused('export-c', name, *word, '-o', tmp_path / 'd', *tool)
