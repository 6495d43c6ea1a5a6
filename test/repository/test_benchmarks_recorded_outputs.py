# SPDX-License-Identifier: Apache-2.0
"""benchmarks/recorded_outputs.py: it sees each difference, and takes no time of the computer for one."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from mbse_ros.filters.filters import OF_MECHANISMS
from mbse_ros.resources import share_directory

spec = importlib.util.spec_from_file_location(
    'recorded_outputs', Path(__file__).parents[2] / 'benchmarks' / 'recorded_outputs.py')
recorded = importlib.util.module_from_spec(spec)
spec.loader.exec_module(recorded)


@pytest.fixture
def folders(tmp_path):
    for name in 'before', 'after':
        (tmp_path / name / 'crane').mkdir(parents=True)
        (tmp_path / name / 'crane' / 'x.json').write_text(json.dumps({'mass': [1.0, None], 'at': {'status': 'ok'}}))
        (tmp_path / name / 'crane' / 'x.csv').write_text('a,b\n1,2\n3,4\n')
    return tmp_path / 'before', tmp_path / 'after'


def test_the_same_outputs_have_no_difference(folders):
    assert recorded.differences(*folders) == []


@pytest.mark.parametrize('name, text, said', [
    ('x.json', '{"mass": [1.0000000000000002, null], "at": {"status": "ok"}}',
     'crane/x.json: .mass[0]: 1.0 -> 1.0000000000000002 (1 fields)'),
    ('x.json', '{"mass": [1.0, 0.0], "at": {}}', 'crane/x.json: .mass[1]: None -> 0.0 (2 fields)'),
    ('x.json', '{"mass": [1.0], "at": {"status": "ok"}}', 'crane/x.json: .mass: [1.0, None] -> [1.0] (1 fields)'),
    ('x.csv', 'a,b\n1,2\n3,5\n', "crane/x.csv: line 3: '3,4' -> '3,5' (1 lines)"),
    ('x.csv', 'a,b\n1,2\n', 'crane/x.csv: 3 lines before, 2 after'),
    ('new.txt', '', 'crane/new.txt: only after')])
def test_a_difference_is_named_with_its_place(folders, name, text, said):
    (folders[1] / 'crane' / name).write_text(text)
    assert recorded.differences(*folders) == [said]


def test_what_is_lost_is_a_difference_of_a_case_that_was_run(folders):
    (folders[0] / 'other').mkdir()
    (folders[0] / 'other' / 'y.txt').write_text('')
    (folders[1] / 'crane' / 'x.csv').unlink()
    assert recorded.differences(*folders) == ['crane/x.csv: only before']


def test_times_of_the_computer_are_no_output():
    assert recorded.without_times({'cost': {'seconds': 1.2}, 'step_us': 3.0, 'mass': 4.0, 'said': '24 s in 0.6 s'}) == {
        'cost': {'seconds': '#'}, 'step_us': '#', 'mass': 4.0, 'said': '24 s in # s'}


def test_the_place_and_the_files_of_a_fleet_are_no_output(tmp_path, monkeypatch):
    """Names have a hash of where the bag is, summaries times of its files; a size elsewhere is an output."""
    monkeypatch.chdir(tmp_path)
    summary = tmp_path / 'bag-0123456789ab.json'
    summary.write_text(json.dumps({
        'bag': str(tmp_path / 'bag'), 'size': [7], 'table': 'a', 'checksum': 'b', 'loads': 2}))
    recorded.keep(summary, tmp_path / 'kept', Path(summary.name))
    assert json.loads((tmp_path / 'kept' / 'bag-#.json').read_text()) == {
        'bag': 'HERE/bag', 'size': '#', 'table': '#', 'checksum': '#', 'loads': 2}
    assert recorded.without_times({'size': 7}) == {'size': 7}


def test_all_machines_and_filters_are_recorded():
    shipped = {path.stem for path in (share_directory() / 'config' / 'machines').glob('*.yaml')}
    assert set(recorded.MACHINES) == shipped and set(recorded.FILTERS) == set(OF_MECHANISMS)
