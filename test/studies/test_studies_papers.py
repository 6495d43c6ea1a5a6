# SPDX-License-Identifier: Apache-2.0
"""Rows of the pages of the papers have what shows them, and a row has its status by what ran alone."""

import json
import shlex

import pytest
from cli_support import mbse, refused
from source_tree import ROOT

from mbse_ros.errors import MbseError
from studies import papers
from studies.papers import Row, judge, rows_of, run_tests, table_rows
from studies.papers_measured import MEASURED, Figure

PAPERS = ['papers', *sorted(path.stem for path in papers.PAGES.glob('*.md'))]
PASSED, SKIPPED, FAILED = ([{'name': 'x', 'outcome': outcome, 'text': ''}]
                           for outcome in ('passed', 'skipped', 'failed'))


@pytest.mark.parametrize('paper', PAPERS)
def test_every_row_of_a_page_has_tests_that_exist_or_a_reason(paper):
    """``rows_of`` refuses a row without an entry, an entry without a row, and tests that are not there."""
    rows = rows_of(paper)
    assert len(rows) > 10 and len({row.part for row in rows}) == len(rows)
    for row in rows:
        assert bool(row.checks) == (row.claim in papers.SHOWN), row.part
        assert (row.part in shlex.split(row.command)) == bool(row.checks)
        if row.claim in ('departs', 'not built', 'not reproduced'):
            assert len(row.said) > len(row.claim) + 5, f'{row.part}: no reason'
        for name in row.where:
            assert any((folder / name).exists() for folder in (ROOT, ROOT / 'mbse_ros')), (row.part, name)


def test_every_measurement_is_used():
    used = {check for paper in PAPERS for row in rows_of(paper) for check in row.checks}
    assert {f'measure:{name}' for name in MEASURED} == {check for check in used if check.startswith('measure:')}


@pytest.mark.parametrize('change, text', [
    (('| works |', '| surely |'), 'surely'), (('| Eqs. 3.1', '| Eqs. 9.1'), 'Eqs. 9.1'),
    (('test_dynamics_projectors.py', 'test_dynamics_inverse.py'), 'test_operators_are_those_of_the_theorems'),
    (('| section 2, ', '- section 2, '), 'no row begins with')])
def test_a_page_that_drifts_is_named(change, text, tmp_path, monkeypatch):
    page = papers.PAGES / 'modular_modelling_orsino.md'
    monkeypatch.setattr(papers, 'PAGES', tmp_path)
    (tmp_path / page.name).write_text(page.read_text().replace(*change))
    with pytest.raises(MbseError, match=text):
        rows_of(page.stem)


def test_rows_are_those_of_tables_with_a_status():
    page = '| a | status |\n|---|---|\n| x | works |\n\n| a | ours |\n|---|---|\n| y | works |\n'
    assert table_rows(page) == [['x', 'works']]


@pytest.mark.parametrize('claim, checks, outcomes, status', [
    ('works', ['t'], {'t': PASSED}, 'works'), ('works', ['t'], {'t': PASSED + FAILED}, 'failed'),
    ('works', ['t'], {'t': PASSED + SKIPPED}, 'skipped'), ('departs', ['t'], {'t': PASSED}, 'departs'),
    ('departs', ['t'], {'t': FAILED}, 'failed'), ('works', ['t'], {}, 'failed'),
    ('works', ['t', 'u'], {'t': PASSED}, 'failed'),
    ('works', ['t', 'measure:m'], {'t': PASSED}, 'failed'), ('not built', [], {}, 'not built')])
def test_a_status_follows_from_what_ran(claim, checks, outcomes, status):
    row = Row('p', 'part', claim, claim, [], checks)
    judge(row, outcomes, {'measure:m': [Figure('m', 2.0, 0.0, 1.0, 'J', '1 J')]})
    assert row.status == status


def test_cases_of_a_test_are_found_by_its_name():
    name = 'test/payload/test_payload_errata.py::test_triangular_window'
    assert [case['outcome'] for case in run_tests([name])[name]] == ['passed']
    with pytest.raises(MbseError, match='not found'):
        run_tests([name + '_no'])


def test_what_needs_ros_is_skipped_without_it(monkeypatch):
    monkeypatch.setattr(papers, 'find_spec', lambda name: None)
    name = 'test/nodes/test_nodes_bags.py::test_what_is_sent_is_in_the_bag'
    [case] = run_tests([name])[name]
    assert case['outcome'] == 'skipped' and 'needs ROS 2' in case['text']


def test_the_command_runs_rows_and_fails_with_them(tmp_path, monkeypatch):
    words = ['benchmark', 'papers', '--paper', 'modular_modelling_orsino', '--part', 'section 2,']
    done = mbse(*words, '--json', tmp_path / 'f.json')
    [row] = json.loads((tmp_path / 'f.json').read_text())['rows']
    assert done.status == 0 and row['status'] == 'works' and row['tests'][0]['outcome'] == 'passed'
    monkeypatch.setattr(papers, 'run_tests', lambda tests: {tests[0]: FAILED})
    assert mbse(*words).status == 1
    assert '--paper' in refused('benchmark', 'papers', '--paper', 'naya')
    assert '--part' in refused(*words[:-1], 'nothing of this name')
