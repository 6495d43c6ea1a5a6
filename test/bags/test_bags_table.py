# SPDX-License-Identifier: Apache-2.0
"""Tables to bags: units, offsets and signs; every error names its file, line, column or key."""

import math

import numpy as np
import pytest
from bags_samples import CHANNELS, COMMANDS

from mbse_ros.bags.bag import Bag
from mbse_ros.bags.reader import SampleReader
from mbse_ros.bags.table import import_table, load_table_map
from mbse_ros.errors import BagError, DescriptionError, DescriptionErrors
from mbse_ros.resources import share_directory

MAP = """
format: mbse/table/1
name: crane
time: {column: t, unit: ms}
channels:
  position/lift: {column: s, unit: mm, offset: -0.82 m}
  pressure/rod: {column: p, unit: bar}
commands:
  command/valve: {column: U, unit: V, offset: -5.8 V, scale: -1}
"""
TABLE = 't,s,p,U,note\n0,820,1,5.8,a\n10,942,2.5,5.0,\n20,1355,0,9.8,c\n'


def imported(tmp_path, table=TABLE, text=MAP, **arguments):
    """Import and read back; returns what was imported and the samples by channel."""
    (tmp_path / 'table.csv').write_text(table, encoding=arguments.pop('encoding', 'utf-8'))
    (tmp_path / 'map.yaml').write_text(text)
    result = import_table(tmp_path / 'table.csv', tmp_path / 'map.yaml', tmp_path / 'bag', **arguments)
    channels = ('position/lift', 'pressure/rod', 'command/valve')
    samples = list(SampleReader(tmp_path / 'bag', channels[:2], channels[2:]))
    return result, {channel: [(s.stamp_ns, s.value) for s in samples if s.channel == channel] for channel in channels}


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_cells_become_si(tmp_path, storage):
    result, samples = imported(tmp_path, storage=storage, namespace='yard')
    assert (result.rows, result.first_ns, result.last_ns, result.missing) == (3, 0, 20_000_000, {})
    stamps = [0, 10_000_000, 20_000_000]
    for channel, expected in (('position/lift', [0.0, 0.122, 0.535]), ('pressure/rod', [1e5, 2.5e5, 0.0]),
                              ('command/valve', [0.0, 0.8, -4.0])):
        assert [stamp for stamp, _ in samples[channel]] == stamps
        np.testing.assert_allclose([value for _, value in samples[channel]], expected, rtol=1e-12, atol=1e-12)
    assert '/yard/sensors/position' in Bag(tmp_path / 'bag').topics


def test_the_start_stamp_delimiter_and_decimal_sign(tmp_path):
    text = MAP + "start: '2024-05-01T12:00:00+02:00'\ndelimiter: semicolon\ndecimal: comma\n"
    table = TABLE.replace(',', ';').replace('.', ',')
    result, samples = imported(tmp_path, table, text, encoding='utf-8-sig')
    assert result.first_ns == 1_714_557_600 * 10 ** 9
    assert samples['pressure/rod'][1] == (result.first_ns + 10_000_000, pytest.approx(2.5e5))


def test_a_scale_may_carry_a_unit(tmp_path):
    _, samples = imported(tmp_path, text=MAP.replace('unit: bar', 'unit: V, offset: -500 mV, scale: 25 bar/V'))
    assert [value for _, value in samples['pressure/rod']] == pytest.approx([12.5e5, 50e5, -12.5e5])


def test_missing_cells_are_nan_and_counted(tmp_path):
    table = TABLE.replace('942', '').replace('2.5', 'NaN').replace('1355', ' n/a').replace(' n/a', 'NA') + '\n,,,,\n'
    result, samples = imported(tmp_path, table)
    assert result.rows == 3 and result.missing == {'position/lift': 2, 'pressure/rod': 1}
    assert [math.isnan(value) for _, value in samples['position/lift']] == [False, True, True]


@pytest.mark.parametrize('old, new, reason', [
    ('942', '94 2', r"table.csv: line 3: column s: got '94 2', expected a number"),
    ('942', 'inf', "line 3: column s: got 'inf', expected a finite number"),
    ('2.5', '1e308', "line 3: column p: got '1e308', expected a number that is finite in SI"),
    ('20,1355', '10,1355', "line 4: column t: got '10', expected a later time than in the row before"),
    ('20,1355', '5,1355', "line 4: column t: got '5', expected a later time"),
    ('20,1355', ',1355', "line 4: column t: got '', expected a time"),
    ('0,820', '-1,820', "line 2: column t: got '-1', expected a time not before zero"),
    ('5.0,', '5.0', 'line 3: 4 cells, expected 5 as in line 1'),
    (TABLE, '', 'line 1: expected the names of the columns'),
    (TABLE[11:], '', 'has no rows'), ('a\n', '"a\n', 'line 4: unexpected end of data')])
def test_errors_in_the_table_name_line_and_column(tmp_path, old, new, reason):
    with pytest.raises(BagError, match=reason):
        imported(tmp_path, TABLE.replace(old, new, 1))


def test_an_error_leaves_the_rows_before_it(tmp_path):
    with pytest.raises(BagError, match='line 4'):
        imported(tmp_path, TABLE.replace('1355', 'x'))
    bag = Bag(tmp_path / 'bag')
    assert bag.warnings == [] and len(list(bag.messages())) == 6


def test_an_error_in_the_first_row_makes_no_bag(tmp_path):
    with pytest.raises(BagError, match='line 2'):
        imported(tmp_path, TABLE.replace('820', 'x'))
    assert not (tmp_path / 'bag').exists()


@pytest.mark.parametrize('old, new, key, value, expected', [
    ('column: s,', 'column: z,', 'channels.position/lift.column', 'z', 'one column of .* which has t, s, p, U, note'),
    ('column: U', 'column: u', 'commands.command/valve.column', 'u', 'which has t, s'),
    ('column: t', 'column: time', 'time.column', 'time', 'which has t, s'),
    ('unit: mm,', 'unit: bar,', 'channels.position/lift.unit', 'bar', 'a unit of m or rad, or a scale'),
    ('unit: mm,', 'unit: furlongs_,', 'channels.position/lift.unit', 'furlongs_', 'a unit such as mm'),
    ('unit: ms', 'unit: mm', 'time.unit', 'mm', 'a unit of s'),
    ('-0.82 m}', '-0.82 bar}', 'channels.position/lift.offset', '-0.82 bar', "same kind as 'mm'"),
    ('-0.82 m}', '-0.82}', 'channels.position/lift.offset', '-0.82', "same kind as 'mm'"),
    ('scale: -1', 'scale: 2 bar', 'commands.command/valve.unit', 'V', "times the scale '2 bar'"),
    ('scale: -1', 'scale: 0', 'commands.command/valve.scale', '0', 'not 0'),
    ('scale: -1', 'sign: -1', 'commands.command/valve.sign', None, 'key'),
    ('position/lift', 'height/lift', 'channels', 'height/lift', 'a mapping from channels'),
    ('pressure/rod', 'pressure/', 'channels', 'pressure/', 'a mapping from channels'),
    ('command/valve', 'position/x', 'commands', 'position/x', 'such as command/lift'),
    ('pressure/rod', 'gyro/boom.w', 'channels', 'gyro/boom.w', 'such as .* gyro/boom.z, accelerometer/boom.x'),
    ('pressure/rod', 'gyro/', 'channels', 'gyro/', 'a mapping from channels'),
    ('pressure/rod', 'pressure/rod.x', 'channels', 'pressure/rod.x', 'a mapping from channels'),
    ('pressure/rod', 'accelerometer/boom', 'channels.accelerometer/boom.unit', 'bar', 'a unit of m/s.2, or a scale'),
    ('pressure/rod: {column: p, unit: bar}', 'velocity/lift: {column: p, unit: deg/s}', 'channels.velocity/lift.unit',
     'deg/s', 'a unit of m/s, as position/lift is in m'),
    ('unit: bar}', 'unit: bar}\n  gyro/b: {column: p, unit: rpm}\n  gyro/b.z: {column: p, unit: rpm}', 'channels',
     'gyro/b.z', 'each channel once: gyro/b is the same'),
    ('mbse/table/1', 'mbse/table/2', 'format', 'mbse/table/2', 'mbse/table/1'),
    ('name: crane', 'name: crane\nstart: yesterday', 'start', 'yesterday', 'a number with its unit'),
    ('name: crane', 'name: crane\nstart: 2024-05-01T12:00:00', 'start', '2024-05-01T12:00:00', 'time zone'),
    ('name: crane', 'name: crane\nstart: -5 s', 'start', '-5 s', 'not before 1970'),
    ('name: crane', 'name: crane\ndecimal: comma', 'decimal', 'comma', 'not a decimal sign'),
    ('name: crane', 'name: [', 'line', None, None),
    ('name: crane\n', '', 'name', None, 'missing')])
def test_errors_in_the_map_name_key_value_and_what_is_expected(tmp_path, old, new, key, value, expected):
    with pytest.raises(DescriptionError, match=expected) as caught:
        imported(tmp_path, text=MAP.replace(old, new, 1))
    assert caught.value.file == str(tmp_path / 'map.yaml') and caught.value.key.startswith(key)
    assert value is None or caught.value.value == value
    assert not (tmp_path / 'bag').exists()


def test_all_errors_of_the_map_are_said_at_once(tmp_path):
    text = MAP.replace('unit: bar}', 'unit: m}\n  velocity/x: {column: p, unit: s}').replace('name: crane', 'name: a b')
    with pytest.raises(DescriptionErrors) as caught:
        imported(tmp_path, text=text)
    assert [error.key for error in caught.value.errors] == [
        'channels.pressure/rod.unit', 'channels.velocity/x.unit', 'name']


def test_a_column_that_stands_twice_is_refused(tmp_path):
    with pytest.raises(DescriptionError, match='one column'):
        imported(tmp_path, TABLE.replace('note', 's'))


@pytest.mark.parametrize('name', ['table.csv', 'map.yaml'])
def test_missing_and_undecodable_files_are_named(tmp_path, name):
    for file, text in (('table.csv', TABLE), ('map.yaml', MAP)):
        (tmp_path / file).write_text(text)
    for content in (b'\xff\xfe\x00', None):
        (tmp_path / name).unlink()
        if content:
            (tmp_path / name).write_bytes(content)
        with pytest.raises((BagError, DescriptionError), match=name):
            import_table(tmp_path / 'table.csv', tmp_path / 'map.yaml', tmp_path / 'bag')
        (tmp_path / name).touch()


def test_the_maps_that_come_with_the_package_are_right():
    for path in (share_directory() / 'config' / 'maps').glob('*.yaml'):
        assert load_table_map(path).columns


def test_the_measured_lift(tmp_path, shared_data):
    table = shared_data / 'patu655' / 'lift_measured_100hz.csv'
    result = import_table(table, share_directory() / 'config' / 'maps' / 'patu655_measured.yaml', tmp_path / 'bag')
    assert (result.rows, result.last_ns, result.missing) == (2701, 27 * 10 ** 9, {})
    samples = list(SampleReader(tmp_path / 'bag', CHANNELS, COMMANDS))
    values = {channel: np.array([s.value for s in samples if s.channel == channel]) for channel in CHANNELS + COMMANDS}
    assert all(len(column) == 2701 for column in values.values())
    for row, expected in ((0, [0.122197, 6.61081e6, 74272.3]), (-1, [0.38757, 6.24716e6, 409763.0])):
        np.testing.assert_allclose([values[channel][row] for channel in CHANNELS], expected, rtol=1e-12)
    command = values['command/lift_valve']
    assert command[0] == command[-1] == 0.0 and command.max() == pytest.approx(0.8) and command.min() == 0.0
    rising = np.gradient(values['position/lift'], 0.01)[command > 0.79]
    assert 0.012 < np.mean(rising) < 0.018     # positive extends, at about 14 mm/s
