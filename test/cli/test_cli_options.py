# SPDX-License-Identifier: Apache-2.0
"""Errors of the command line name its options, whoever found them."""

from pathlib import Path

import pytest
from cli_support import mbse, refused

from mbse_ros.cli.arguments import options_of, whole_numbers
from mbse_ros.cli.calibrate import calibrate
from mbse_ros.cli.loads import loads
from mbse_ros.cli.simulate import simulate
from mbse_ros.filters.linkage_settings import option_values
from mbse_ros.settings import names_in

RUNS = 'simulate', 'four_bar', '-o', 'x', '--duration', 0.01, '--runs', 3


@pytest.mark.parametrize('option, words', [
    ('--vary', [*RUNS, '--vary', 'theta']), ('--vary theta', [*RUNS, '--vary', 'theta=-1']),
    ('--vary', ['simulate', 'four_bar', '-o', 'x', '--vary', 'theta=1']), ('--runs', RUNS),
    ('--vary', [*RUNS, '--vary', 'nothing=1']), ('--outputs', [*RUNS, '--vary', 'theta=1', '--outputs', 7]),
    ('--jobs', [*RUNS, '--jobs', 0]), ('--scheme', [*RUNS, '--scheme', 'radau']),
    ('--base-roll', ['simulate', 'patu655_lift', '-o', 'x', '--base-roll', 3]),
    ('--duration', ['simulate', 'patu655_lift', '-o', 'x', '--duration', 1e300]),
    ('--independent', ['simulate', 'four_bar', '-o', 'x', '--independent', 'phi']),
    ('--dt', ['simulate', 'four_bar', '-o', 'x', '--dt', 1e300]),
    ('--kind', ['graph', 'four_bar', '--kind', 'x']), ('--form', ['graph', 'four_bar', '--form', 'x']),
    ('--map', ['import', 'x.csv', '-o', 'bag']), ('--plots', ['calibrate', 'x', '--plots', '{file}']),
    ('--machine', ['calibrate', '--plan', 'patu655_lift', '--machine', 'x']),
    ('--topics', ['doctor', '--topics', 3]), ('--set', ['loads', '--records', 'x', '--set', 'scale.least_load=1']),
    ('--truck', ['loads', '--records', 'x', '--truck', 'a']), ('--repair', ['loads', 'x', '--repair']),
    ('--model', ['observability', 'four_bar', '--sensors', 'encoder', '--model', 'best']),
    ('--sensors', ['observability', 'four_bar', '--sensors', ',']),
    ('--valve', ['benchmark', 'faults', '--valve', 'x']), ('--rates', ['benchmark', 'graph', '--rates', 'x']),
    ('--estimators', ['benchmark', 'estimators', '--estimators', 'x'])])
def test_the_option_is_named(option, words, tmp_path, monkeypatch):
    (tmp_path / 'file').touch()
    monkeypatch.chdir(tmp_path)
    assert refused(*(str(word).format(file=tmp_path / 'file') for word in words)).startswith(f'{option}: got ')
    assert [path.name for path in tmp_path.iterdir()] == ['file']


def test_options_by_the_arguments_that_they_stand_for():
    found = options_of(simulate)
    assert found['base_roll'] == '--base-roll' and found['json_'] == found['json'] == '--json'
    assert found['pictures'] == '--pictures' and 'name' not in found
    assert options_of(loads)['tuning'] == '--set' and options_of(calibrate)['payloads'] == '--payload'


def test_names_and_numbers_are_separated_by_commas_or_blanks():
    assert names_in('a,b') == names_in('a b') == names_in(' a , b,') == ['a', 'b']
    assert whole_numbers('rates', '1 2') == whole_numbers('rates', '1,2') == [1, 2]
    with pytest.raises(Exception, match='separated by blanks; several values with commas and no blanks'):
        option_values('passes=3,tolerance=1')
    assert option_values('biases=encoder')['biases'] == option_values('biases=encoder,')['biases'][:1] == ('encoder',)


@pytest.mark.parametrize('name', ['t.csv', 't.CSV', 't.txt'])
def test_a_table_is_answered_with_import(name, tmp_path):
    (tmp_path / name).write_text('t,a\n0,1\n')
    assert 'mbse import TABLE' in refused('estimate', tmp_path / name)


def test_a_mass_beyond_all_machines(tmp_path):
    assert refused('loads', tmp_path, '--known', '1e300').startswith("--known: got '1e300', expected a mass above 0")
    assert 'Traceback' not in mbse('loads', Path(tmp_path), '--known', '-1').err
