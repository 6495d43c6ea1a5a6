# SPDX-License-Identifier: Apache-2.0
"""`mbse export-c`: what it writes, says and refuses."""

import json

import pytest
from cli_support import mbse, refused
from export_support import COMPILERS, run_test


def test_export(tmp_path):
    done = mbse('export-c', 'four_bar', '-o', tmp_path / 'c', '--dt', '2e-3', '--order', '2', '--coordinates',
                'relative', '--independent', 'theta', '--free', 'bodies.crank.mass, crank')
    assert done.status == 0 and not done.err
    assert 'wrote' in done.out and 'state of 2 (theta and rates)' in done.out and '2 parameters' in done.out
    manifest = json.loads((tmp_path / 'c' / 'mbse_export.json').read_text())
    assert (manifest['dt'], manifest['order'], manifest['prefix']) == (0.002, '2', 'four_bar')
    assert [item['name'] for item in manifest['vectors']['p']] == ['crank', 'bodies.crank.mass']
    assert manifest['parameters'] == [2.0, 2.0] and sorted(manifest['files']) == sorted(
        path.name for path in (tmp_path / 'c').iterdir())
    if 'cc' in COMPILERS:
        assert run_test(tmp_path / 'c', 'cc', '-O0').returncode == 0


def test_independent_coordinates(tmp_path):
    def chosen(*words):
        done = mbse('export-c', 'four_bar', '-o', tmp_path / 'c', *words)
        assert done.status == 0
        return [item['name'] for item in json.loads((tmp_path / 'c' / 'mbse_export.json').read_text())['vectors']['z']]
    assert chosen() == ['theta'] and chosen('--independent', 'P2.x') == ['P2.x']
    assert len(chosen('--independent', 'auto')) == 1


@pytest.mark.parametrize('words, text', [
    (['five_bars'], 'five_bar'), (['four_bar', '--order', 'five'], "order: got 'five', expected one of exact, 1, 2"),
    (['four_bar', '--dt', '-1'], 'dt: got -1.0'), (['four_bar', '--coordinates', 'polar'], 'natural'),
    (['four_bar', '--independent', 'x'], 'independent'), (['four_bar', '--free', 'mass'], 'free'),
    (['four_bar_adams_driven'], 'drivers')])
def test_refused(words, text, tmp_path):
    assert text in refused('export-c', *words, '-o', tmp_path / 'c')
    assert not (tmp_path / 'c').exists()


def test_folder_of_others(tmp_path):
    (tmp_path / 'thesis.tex').write_text('mine')
    assert 'one that export-c wrote' in refused('export-c', 'four_bar', '-o', tmp_path)
    assert 'not a file' in refused('export-c', 'four_bar', '-o', tmp_path / 'thesis.tex')
    assert [path.name for path in tmp_path.iterdir()] == ['thesis.tex']
