# SPDX-License-Identifier: Apache-2.0
"""Loads against known masses: figures against SciPy's and by hand, tables of known masses, the report in a browser."""

from __future__ import annotations

import json
from contextlib import closing
from math import sqrt

import numpy as np
import pytest
from cli_support import mbse, refused
from report_browser import PROGRAM, Browser
from scipy.stats import linregress
from scipy.stats import t as student

from mbse_ros.scale.comparison import HOUR, OWN, UNNAMED, Compared, KnownMass, compare, largest_causes
from mbse_ros.scale.load import Load, UncertainMass
from mbse_ros.scale.record import TRUCK, UNDO, ZERO, Record, load_record, mass_data
from mbse_ros.scale.store import RecordStore

NOON = 1_700_000_000_000_000_000


def row(weighed: float, known: float = 100.0, hours: float = 0.0, own: float = 1.0, stddev: float = 0.0) -> Compared:
    return Compared('load', NOON + round(hours * HOUR), UncertainMass(weighed, own), KnownMass(known, stddev))


def test_errors_and_intervals() -> None:
    found = compare([row(101.0), row(98.5), row(103.0, own=1.0, stddev=2.0)])
    assert found.mean == pytest.approx(2.5 / 3) and found.rms == pytest.approx(sqrt((1.0 + 2.25 + 9.0) / 3))
    assert [item.holds for item in found.rows] == [True, True, True]        # 3 kg in 1.96 times sqrt(5)
    assert [item.holds for item in compare([row(102.0), row(98.0)]).rows] == [False, False]
    assert found.drift is None and found.facts['Intervals that hold'] == '3 of 3'


def test_drift_is_the_regression_of_scipy() -> None:
    random = np.random.default_rng(4)
    t, error = np.sort(random.uniform(0.0, 9.0, 12)), random.normal(size=12)
    found = compare([row(100.0 + 0.4 * hours + off, hours=hours) for hours, off in zip(t, error)]).drift
    expected = linregress(t, 0.4 * t + error)
    width = student.ppf(0.975, 10) * expected.stderr
    assert found.slope == pytest.approx(expected.slope, rel=1e-6)
    assert found.interval == pytest.approx((expected.slope - width, expected.slope + width), rel=1e-6)
    assert found.start == pytest.approx(expected.intercept + expected.slope * t[0], rel=1e-6)
    assert compare([row(100.0, hours=hours) for hours in (0.0, 2.0, 1.0)]).drift is None    # time does not go on


def test_repeatability_is_pooled_over_equal_loads() -> None:
    """Two groups by hand: squares 2 and 8 over 1 and 2 degrees of freedom."""
    rows = [row(99.0), row(101.0), row(198.0, 200.0), row(200.0, 200.0), row(202.0, 200.0), row(310.0, 300.0)]
    found = compare(rows).repeatability
    assert found.stddev == pytest.approx(sqrt(10.0 / 3.0)) and found.freedom == 3
    assert found.limit == pytest.approx(2.8 * found.stddev)
    assert compare(rows[:2]).repeatability is None


def test_the_largest_causes_come_first() -> None:
    mass = UncertainMass(1.0, 2.0, {'friction': -5.0, '': 1.0, 'nothing': 0.0})
    assert largest_causes(mass, 9) == [('friction', 5.0), (OWN, 2.0), (UNNAMED, 1.0)]
    assert largest_causes(mass, 1) == [('friction', 5.0)]


@pytest.fixture(scope='module')
def records(tmp_path_factory):
    """Journal of a scale: 100, 200 and 102 kg, one undone; a zero; two trucks."""
    path = tmp_path_factory.mktemp('records') / 'loads.db'
    said = [Record(ZERO, NOON, mass_data(UncertainMass(3.0, 1.0)))]
    for k, (mass, truck) in enumerate(((100.0, 'A'), (200.0, 'A'), (150.0, 'A'), (102.0, 'B')), 1):
        said += [Record(TRUCK, NOON + k * 10 ** 11, {'truck': truck})] if truck == 'B' else []
        start = NOON + k * 10 ** 11
        said.append(load_record(Load(start, start + 10 ** 10, UncertainMass(mass, 1.0, {'friction': 2.0})), truck))
    said.append(Record(UNDO, NOON + 10 ** 12, {'load': 4}))
    with closing(RecordStore(path, 'zx200')) as store:
        for number, record in enumerate(said):
            store.append(record, number)
    return path


def loads(records, *words):
    return mbse('loads', '--records', records, *words)


@pytest.mark.parametrize('text, errors', [
    ('100 kg', [0.0, 100.0, 2.0]), ('0.1 t +- 2 kg', [0.0, 100.0, 2.0]), ('load,mass [kg]\n1,99\n3,100\n', [1.0, 2.0]),
    ('truck,mass [t],stddev [kg]\nA,0.301,2\nB,0.1,0\n', [-1.0, 2.0]), ('bag,mass\nloads.db,400\n', [2.0])])
def test_known_masses(records, tmp_path, text, errors) -> None:
    if '\n' in text:
        (tmp_path / 'known.csv').write_text(text)
        text = tmp_path / 'known.csv'
    done = loads(records, '--known', text, '--json', tmp_path / 'x.json')
    found = json.loads((tmp_path / 'x.json').read_text())['comparison']
    assert done.status == 0 and [item['error'] for item in found['rows']] == pytest.approx(errors)
    assert 'Mean error' in done.out


@pytest.mark.parametrize('text, words', [
    ('-5 kg', 'above 0'), ('5 m', 'a mass, such as 500 kg'), ('no.csv', 'there is no file'), ('', 'a mass, such'),
    ('load,mass [m]\n1,2\n', 'unit of mass'), ('load,truck,mass\n1,A,2\n', 'one of the columns'),
    ('load,mass\n1,2\n1,3\n', 'each load once'), ('load,mass\n9,2\n', 'one of 1, 2, 3'), ('load,mass\n1,x\n', 'row 2'),
    ('load,mass,price\n1,2,3\n', 'price'), ('load,mass\n1,nan\n', 'above 0'), ('load,mass\n', 'one of the columns')])
def test_known_masses_that_are_none(records, tmp_path, text, words) -> None:
    if '\n' in text:
        (tmp_path / 'known.csv').write_text(text)
        text = tmp_path / 'known.csv'
    done = loads(records, f'--known={text}')
    assert done.status == 2 and '--known' in done.err and words in done.err, done.err


def test_a_table_that_is_missing_is_refused_before_the_bags_are_read(tmp_path) -> None:
    assert 'there is no file' in refused('loads', tmp_path / 'no_bag', '--known', tmp_path / 'no.csv')


def test_the_report(records, tmp_path) -> None:
    done = loads(records, '--known', '100', '--report', tmp_path / 'report')
    assert done.status == 0 and str(tmp_path / 'report' / 'index.html') in done.out
    assert {path.name for path in (tmp_path / 'report').iterdir()} == {
        'index.html', 'loads.png', 'total.png', 'zero.png', 'errors.png'}
    assert 'does not hold' in (tmp_path / 'report' / 'index.html').read_text()
    (tmp_path / 'file').touch()
    assert '--report' in loads(records, '--report', tmp_path / 'file').err
    if PROGRAM is None:
        pytest.skip('no browser (tools/browser.sh): the page was not opened')
    browser = Browser(tmp_path / 'browser')
    try:
        browser.open((tmp_path / 'report' / 'index.html').as_uri())
        browser.wait_for("document.querySelectorAll('.plot .main-svg').length > 3")
        assert browser.value("[...document.querySelectorAll('h2')].map(h => h.textContent).slice(0, 5).join()") == (
            'Total of the loads that are trusted,Loads,Against known masses,Trucks,Largest causes of the total\'s '
            'interval')
        assert browser.value("[...document.querySelectorAll('td')].filter(d => d.textContent === 'undone').length") == 1
        assert browser.value("document.querySelectorAll('#chart-errors .points path').length") == 3
        assert not browser.errors()
    finally:
        browser.close()
