# SPDX-License-Identifier: Apache-2.0
"""``loads``, ``check_data`` and ``topics``: as by the command line; what a number of loads is as a result."""

import json

import numpy as np
import pytest
from cli_support import mbse as command
from cli_support import refused

import mbse_ros as mbse
from mbse_ros.bags.bag import Bag
from mbse_ros.errors import BagError, SettingError
from mbse_ros.sources.survey import survey_bag


@pytest.fixture(scope='module')
def bag(tmp_path_factory):
    """A crane that lifts 80 kg, twice."""
    run = mbse.simulate('patu655_lift', 16.0, payload=80.0, seed=2)
    return mbse.write_bag(tmp_path_factory.mktemp('loads') / 'bag', run)


def same_json(found, theirs):
    return json.loads(json.dumps(found.to_json(), allow_nan=False)) == json.loads(theirs.read_text())


def test_loads_as_by_the_command_line(bag, tmp_path):
    found = mbse.loads(bag, known='80+-1 kg', tuning={'payload.min_speed': 0.02}, truck=['A'])
    done = command('loads', bag, '--known', '80+-1 kg', '--set', 'payload.min_speed=0.02', '--truck', 'A', '--json',
                   tmp_path / 'theirs.json', '-o', tmp_path / 'theirs.csv', '--report', tmp_path / 'report')
    assert done.status == 0 and done.out.endswith('\n'.join(found.summary()) + '\n'), done
    assert same_json(found, tmp_path / 'theirs.json')
    found.write(tmp_path / 'ours.csv')
    assert (tmp_path / 'ours.csv').read_bytes() == (tmp_path / 'theirs.csv').read_bytes()
    with pytest.raises(SettingError, match=r'^path: got .*x\.txt'):
        found.write(tmp_path / 'x.txt')
    with pytest.raises(SettingError, match="^known: got 'much', expected a mass"):       # the command says --known
        mbse.loads(bag, known='much')
    page = found.report(tmp_path / 'page')
    assert page.read_bytes() == (tmp_path / 'report' / 'index.html').read_bytes()
    (table,) = found.tables()
    assert len(table.rows) == len(found.loads) == len(found.t) >= 1 and table.title in done.out
    np.testing.assert_array_equal(found['mass'], [load.mass for load in found.loads])
    assert found.units == {'mass': 'kg'} and found.lower[0] < 80.0 < found.upper[0]


def test_what_is_wrong_with_a_bag_as_by_the_command_line(bag, tmp_path):
    for words, options, machine in (((), {}, 'patu655_lift'), (('--machine', 'lut_simple_crane'),
                                                               {'machine': 'lut_simple_crane'}, 'lut_simple_crane')):
        found = mbse.check_data(bag, **options)
        done = command('check-data', bag, *words, '--json', tmp_path / 'theirs.json')
        assert done.status == bool(found.findings) and done.out.splitlines() == found.summary()
        assert same_json(found, tmp_path / 'theirs.json') and found.machine == machine
    assert found.findings[0].remedy


@pytest.mark.parametrize('verb, words, options, start', [
    ('loads', ([],), {}, 'bags: got [], expected one bag or more, or the records'),
    ('calibrate', ('BAG',), {'free': ['bodies.bom.mass']}, "free: got 'bodies.bom.mass', expected the key"),
    ('calibrate', ('BAG',), {'payloads': {'other': 5.0}}, "payloads: got 'other=5', expected the name"),
    ('calibrate', ('BAG',), {'payloads': 80}, 'payloads: got 80, expected the loads of the bags by their names'),
    ('loads', ('BAG',), {'known': [1200.0]}, 'known: got [1200.0], expected a text or a finite number'),
    ('estimate', ('BAG',), {'step': 0.0}, 'step: got 0.0, expected'),
    ('estimate', ('BAG',), {'tuning': 'payload.mim_speed=1'},
     "tuning: got 'payload.mim_speed', expected a setting of payload: min_speed"),
    ('check_data', (None,), {}, 'bag: got None, expected a name or a path'),
    ('calibrate', ('BAG',), {'cross_validate': True}, 'cross_validate: got 1, expected two bags'),
    ('export_c', ('four_bar', 'none'), {'rate': 100.0}, 'rate: got 100.0, expected no such option here: it is for an'),
    ('export_c', ('zx200', 'none'), {'order': '2', 'estimator': True}, "order: got '2', expected no such option here")])
def test_what_is_refused_is_named_as_in_python(bag, verb, words, options, start):
    with pytest.raises(SettingError) as caught:
        getattr(mbse, verb)(*(bag if word == 'BAG' else word for word in words), **options)
    assert str(caught.value).startswith(start) and '--' not in str(caught.value)


def test_topics_as_by_the_command_line(bag, tmp_path):
    """Of a bag alone, a table; of a machine, a map that is one; of what gives a survey, as the command has it live."""
    found = mbse.topics(bag)
    assert command('topics', bag).out.splitlines() == found.summary() and found.proposal is None
    proposed = mbse.topics(bag, 'patu655_lift')
    assert command('topics', bag, '--machine', 'patu655_lift').out == proposed.text != ''
    assert command('topics', bag, '--machine', 'zx200').status == 1
    written = mbse.topics(bag, mbse.load('patu655_lift'), output=tmp_path / 'map.yaml')
    assert (tmp_path / 'map.yaml').read_text() == proposed.text and written.summary()[0].startswith('wrote ')
    assert mbse.topics(lambda: survey_bag(Bag(bag))).words == found.words
    assert set(found.to_json()) == {'topics'} and json.loads(json.dumps(proposed.to_json()))['map'] == proposed.text
    for options, start in (({'output': tmp_path / 'x.yaml'}, 'output: '),
                           ({'machine': 'zx200', 'mechanism': 'four_bar'}, "machine: got 'zx200'")):
        with pytest.raises(SettingError, match=start):
            mbse.topics(bag, **options)
    with pytest.raises(BagError, match='exists already'):
        mbse.topics(lambda: 1 / 0, 'zx200', output=tmp_path / 'map.yaml')       # before it listens


def test_a_place_that_cannot_be_written_is_said_before_the_work(bag, tmp_path):
    """Whatever else is wrong, which only the work would show."""
    (tmp_path / 'file').touch()
    for words in (('fleet', tmp_path / 'none', '-o', tmp_path / 'file' / 'x.csv'),
                  ('simulate', 'patu655_lift', '--payload', '-1e9', '-o', tmp_path / 'file' / 'x')):
        assert refused(*words).startswith(f"--output: got '{words[-1]}', expected a place that can be written, ")


def test_a_mechanism_weighs_nothing(bag):
    for verb in (mbse.loads, mbse.check_data):
        with pytest.raises(SettingError, match="machine: got 'four_bar', expected a machine: this file has no cyl"):
            verb(bag, 'four_bar')
    assert refused('loads', bag, '--machine', 'four_bar').startswith("--machine: got 'four_bar', expected a machine")
    assert refused('loads', bag, '--truck', 'A', '--truck', 'B').startswith("--truck: got 'B', expected one for each")
    assert refused('loads', '--records', bag, '--set', 'scale.least_load=1').startswith("--set: got ['scale.least")
