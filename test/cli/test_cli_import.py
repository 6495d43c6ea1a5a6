# SPDX-License-Identifier: Apache-2.0
"""`mbse import`, and what `mbse estimate` makes of the bag."""

import json

import pytest
from cli_support import START_NS, lift, mbse, refused

from mbse_ros.bags.bag import decode

MAP = '''\
format: mbse/table/1
name: patu655_lift
time: {column: t, unit: s}
channels:
  position/lift: {column: length, unit: mm, offset: -0.82 m}
  pressure/lift_piston: {column: p1, unit: bar}
  pressure/lift_rod: {column: p2, unit: bar}
commands:
  command/lift_valve: {column: U, unit: mV}
'''


@pytest.fixture(scope='module')
def table(tmp_path_factory):
    """The recorded lift as a table in other units, and its map."""
    folder = tmp_path_factory.mktemp('table')
    rows: dict[int, dict[str, float]] = {}
    for raw in lift():
        row, message = rows.setdefault(raw.stamp_ns, {}), decode(raw)
        if raw.topic.startswith('/sensors/'):
            row[raw.topic] = message.fluid_pressure if 'pressure' in raw.topic else float(message.position[0])
    lines = ['t,length,p1,p2,U']
    for stamp, row in list(rows.items())[:651]:
        z, p1, p2, u = (row[f'/sensors/{name}'] for name in ('position', 'pressure/lift_piston', 'pressure/lift_rod',
                                                             'valve_command'))
        lines.append(f'{(stamp - START_NS) * 1e-9:.3f},{1e3 * z + 820!r},{p1 * 1e-5!r},{p2 * 1e-5!r},{1e3 * u!r}')
    (folder / 'table.csv').write_text('\n'.join(lines) + '\n')
    (folder / 'map.yaml').write_text(MAP)
    return folder


def imported(folder, bag, *words):
    return mbse('import', folder / 'table.csv', '--map', folder / 'map.yaml', '-o', bag, *words)


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_import_and_estimate(storage, table, tmp_path):
    done = imported(table, tmp_path / 'bag', '--storage', storage)
    assert done == (0, f'wrote {tmp_path}/bag: 651 rows over 6.5 s of position/lift, pressure/lift_piston, '
                       'pressure/lift_rod, command/lift_valve\n', '')
    done = mbse('estimate', tmp_path / 'bag', '--json', tmp_path / 'x.json')
    payload = json.loads((tmp_path / 'x.json').read_text())['payload']
    assert (done.status, done.err) == (0, '') and abs(payload['mass'] - 50.0) < 1.0
    assert payload['interval'][0] < 50.0 < payload['interval'][1]


@pytest.mark.usefixtures('vm')
def test_a_table_is_estimated_and_calibrated_as_its_bag(table, tmp_path):
    """With --map, without a bag: the same numbers; loads by the name of the table."""
    csv, bag, map_ = table / 'table.csv', tmp_path / 'bag', table / 'map.yaml'
    assert imported(table, bag).status == 0
    found = []
    for words in ((csv, '--map', map_), (bag,)):
        done = mbse('estimate', *words, '--json', tmp_path / 'x.json')
        found.append(json.loads((tmp_path / 'x.json').read_text())['payload'])
        assert (done.status, done.err) == (0, '')
    assert [found[0][key] for key in ('mass', 'interval')] == [found[1][key] for key in ('mass', 'interval')]
    assert 'got None, expected a map of the columns' in refused('estimate', csv)
    assert 'expected no map: it is for tables' in refused('estimate', bag, '--map', map_)
    for words in ((csv, '--map', map_, '--payload', 'table.csv=50'), (bag, '--payload', 'bag=50')):
        done = mbse('calibrate', *words, '--json', tmp_path / 'x.json')
        found.append(json.loads((tmp_path / 'x.json').read_text())['parameters'])
        assert done.status == 0, done
    assert found[2] == found[3]
    done = mbse('estimate', csv, '--map', map_, '--report', tmp_path / 'report', '--no-pictures')
    text = (tmp_path / 'report' / 'index.html').read_text()
    assert done.status == 0 and str(csv) in text and 'PNG files' not in text        # its own path; no pictures there
    (tmp_path / 'short.csv').write_text('t,length,p1,p2,U\n0,900,50,30,0\n')
    assert refused('estimate', tmp_path / 'short.csv', '--map', map_).startswith(f'{tmp_path}/short.csv: nothing to')


@pytest.mark.usefixtures('vm')
def test_a_table_is_estimated_as_a_mechanism_by_the_same_names(table, tmp_path):
    """Position, velocity and force of the lift, without its pressures."""
    assert imported(table, tmp_path / 'bag').status == 0
    done = mbse('estimate', tmp_path / 'bag', '--mechanism', 'patu655_lift', '--estimator', 'DEKF')
    assert done.status == 0 and 'position/lift' in done.out, done


def test_missing_cells_are_reported(table, tmp_path):
    (tmp_path / 'map.yaml').write_text(MAP)
    lines = (table / 'table.csv').read_text().splitlines()
    lines[300] = lines[300].replace(lines[300].split(',')[2], '')
    (tmp_path / 'table.csv').write_text('\n'.join(lines))
    done = imported(tmp_path, tmp_path / 'bag')
    assert done.status == 0 and done.warnings == ['pressure/lift_piston: 1 cell of 651 without a value']
    assert 'pressure/lift_piston: 1 sample without a value (NaN), the first at t = 2.99 s' in mbse(
        'estimate', tmp_path / 'bag').warnings


@pytest.mark.parametrize('file, old, new, text', [
    ('table.csv', '\n0.050,', '\nnow,', "line 7: column t: got 'now', expected a number"),
    ('table.csv', '\n0.050,', '\n0.020,', "line 7: column t: got '0.020', expected a later time than in the row"),
    ('table.csv', '\n0.050,', '\n0.050,9,', 'line 7: 6 cells, expected 5 as in line 1'),
    ('table.csv', 't,length', 't,width', "map.yaml: channels.position/lift.column: got 'length', expected one column"),
    ('map.yaml', 'unit: bar}', 'unit: mm}', 'map.yaml: channels.pressure/lift_piston'),
    ('map.yaml', 'column: p2', 'colum: p2', "map.yaml: channels.pressure/lift_rod.colum: got 'colum', expected one of"),
])
def test_refused(file, old, new, text, table, tmp_path):
    for path in table.iterdir():
        (tmp_path / path.name).write_text(path.read_text())
    assert old in (tmp_path / file).read_text()
    (tmp_path / file).write_text((tmp_path / file).read_text().replace(old, new, 1))
    assert text in refused('import', tmp_path / 'table.csv', '--map', tmp_path / 'map.yaml', '-o', tmp_path / 'bag')


def test_no_files(table, tmp_path):
    for words in (['none.csv', '--map', table / 'map.yaml'], [table / 'table.csv', '--map', 'none.yaml']):
        assert 'No such file' in refused('import', *words, '-o', tmp_path / 'bag')
    assert refused('import', table / 'table.csv', '--map', table / 'map.yaml', '-o', tmp_path).endswith(
        'exists already and is not overwritten')


def test_the_measured_lift(shared_data, tmp_path):
    """Only lifting: the mass of the laboratory's model within 5 %, and a note on what one lift cannot separate."""
    from mbse_ros.machine import load_machine
    from mbse_ros.offline.bag import estimate_bag, parse_tuning
    from mbse_ros.offline.estimate_report import ONE_LIFT, report_run
    from mbse_ros.resources import share_directory
    done = mbse('import', shared_data / 'patu655' / 'lift_measured_100hz.csv', '--map',
                share_directory() / 'config' / 'maps' / 'patu655_measured.yaml', '-o', tmp_path / 'bag')
    assert done.status == 0 and '2701 rows over 27.0 s' in done.out
    estimate = estimate_bag(tmp_path / 'bag', load_machine('patu655_measured'), parse_tuning([]))
    assert not estimate.warnings and abs(estimate.last.payload.mass - 211.0) < 0.05 * 211.0
    run = report_run(estimate, 'x')
    assert ONE_LIFT in run.notes and run.facts['Valve model'] == 'unknown' and run.payload.true is None
    assert 'Start of the log' not in run.facts      # the table has no date
