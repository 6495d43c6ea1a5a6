# SPDX-License-Identifier: Apache-2.0
"""Tables as loggers write them: dates and times of day, cut rows, repeated times, other encodings, rows of units; what
cannot be read says how to mend it."""

from datetime import datetime
from zoneinfo import available_timezones

import pytest

from mbse_ros.bags.reader import SampleReader
from mbse_ros.bags.table import import_table
from mbse_ros.errors import BagError, DescriptionError

MAP = '''format: mbse/table/1
name: crane
time: {column: t%s}
channels:
  position/lift: {column: s, unit: mm}
  pressure/rod: {column: p, unit: bar}
'''
SECOND = 10 ** 9


def imported(tmp_path, rows, time='', more='', head='t,s,p'):
    """What was imported, and stamps with positions in mm."""
    content = rows if isinstance(rows, bytes) else '\n'.join([head, *rows, '']).encode()
    (tmp_path / 'table.csv').write_bytes(content)
    (tmp_path / 'map.yaml').write_text(MAP % (time and f', {time}') + more)
    found = import_table(tmp_path / 'table.csv', tmp_path / 'map.yaml', tmp_path / 'bag')
    samples = list(SampleReader(tmp_path / 'bag', ['position/lift'], []))
    return found, [(sample.stamp_ns, round(sample.value * 1e3, 6)) for sample in samples]


def ns(text):
    return round(datetime.fromisoformat(text).timestamp()) * SECOND


def stamps(tmp_path, cells, time='', more=''):
    found, samples = imported(tmp_path, [f'{cell},{k},0' for k, cell in enumerate(cells)], time, more)
    assert [value for _, value in samples] == list(range(len(cells)))
    return found.warnings, [stamp for stamp, _ in samples]


zones = pytest.mark.skipif('Europe/Berlin' not in available_timezones(), reason='no time zone database here')


@pytest.mark.parametrize('time, cells, first', [
    ('', ('2026-03-02 08:15:30.250+01:00', '2026-03-02T08:15:30.375+01:00'), '2026-03-02T07:15:30+00:00'),
    ('', ('2026-03-02T07:15:30.250Z', '2026-03-02 07:15:30.375 UTC'), '2026-03-02T07:15:30+00:00'),
    pytest.param('zone: Europe/Helsinki', ('2026-03-02 09:15:30.250', '2026-03-02 09:15:30.375'),
                 '2026-03-02T07:15:30+00:00', marks=zones),
    ("zone: '-05:30'", ('02.03.2026 01:45:30.250', '2.3.2026 1:45:30.375'), '2026-03-02T07:15:30+00:00'),
    ("zone: UTC, format: '%m/%d/%Y %I:%M:%S.%f %p'", ('03/02/2026 07:15:30.250 AM', '03/02/2026 07:15:30.375 AM'),
     '2026-03-02T07:15:30+00:00'),
    ("format: '%d/%m/%Y %H:%M:%S.%f %z'", ('02/03/2026 08:15:30.250 +0100', '02/03/2026 08:15:30.375 +0100'),
     '2026-03-02T07:15:30+00:00')], ids=range(6))
def test_dates(tmp_path, time, cells, first):
    said, found = stamps(tmp_path, cells, time)
    assert found == [ns(first) + 250_000_000, ns(first) + 375_000_000] and not said


def test_dates_without_a_zone_are_utc_and_this_is_said(tmp_path):
    said, found = stamps(tmp_path, ['2026-03-02 08:15:30.123456789', '2026-03-02 08:15:31'])
    assert found[0] == ns('2026-03-02T08:15:30+00:00') + 123_456_789 and 'taken as UTC' in said[0]


@zones
def test_clocks_that_are_put_back_and_forward(tmp_path):
    """The hour that occurs twice goes on; one that does not exist is an error."""
    said, found = stamps(tmp_path, ['2026-10-25 02:59:59', '2026-10-25 02:00:00', '2026-10-25 02:30:00',
                                    '2026-10-25 03:00:00'], 'zone: Europe/Berlin')
    start = ns('2026-10-25T00:59:59+00:00')
    assert [stamp - start for stamp in found] == [0, SECOND, 1801 * SECOND, 3601 * SECOND]
    assert 'occurs twice in Europe/Berlin' in said[0]
    with pytest.raises(BagError, match='line 2: column t: .*exists in Europe/Berlin'):
        stamps(tmp_path / 'x' if (tmp_path / 'x').mkdir() else tmp_path / 'x', ['2026-03-29 02:30:00'],
               'zone: Europe/Berlin')


def test_times_of_day_go_on_after_midnight(tmp_path):
    said, found = stamps(tmp_path, ['23:59:59.5', '00:00:00.5', '13:00:00', '00:00:01'],
                         more="start: '2026-03-02T00:00:00+00:00'\n")
    day = ns('2026-03-02T00:00:00+00:00')
    assert [stamp - day for stamp in found] == [int(86399.5e9), int(86400.5e9), 133200 * SECOND, 172801 * SECOND]
    assert not said


@pytest.mark.parametrize('cells, time, more, words', [
    (['03/02/2026 08:15:30'], '', '', 'told apart: say `format:'),
    (['yesterday'], '', '', "expected a date such as '2026"), (['12.5'], '', '', "expected a date such as '2026"),
    (['2026-03-02 08:15:30'], 'unit: s', '', 'leave `unit` out'), (['08:15:30'], 'unit: s', '', 'leave `unit` out'),
    (['2026-13-02 08:15:30'], '', '', 'month'), (['24:00:00'], '', '', 'up to 23:59:59'),
    (['2026-03-02 08:15:30'], '', 'start: 5 s\n', 'since the map has a `start`'),
    (['1960-03-02 08:15:30'], '', '', 'not before zero'),
    (['2026-03-02 08:15:30'], "format: '%H:%M'", '', 'the format'),
    (['02 08:15'], "format: '%d %H:%M'", '', 'its year'),
    (['2026-03-02 08:15:30', '2026-03-02 08:15:29'], '', '', 'line 3: .* a later time')])
def test_times_that_cannot_be_told(tmp_path, cells, time, more, words):
    with pytest.raises(BagError, match=words):
        stamps(tmp_path, cells, time, more)


@pytest.mark.parametrize('time, key', [('zone: Mars/Olympus', 'time.zone'), ('unit: s, zone: UTC', 'time.zone'),
                                       ('scale: 2', 'time.scale'), ('repeated: maybe', 'time.repeated'),
                                       ("unit: s, format: '%Y'", 'time.format'), ("zone: '+99:00'", 'time.zone')])
def test_maps_of_times(tmp_path, time, key):
    with pytest.raises(DescriptionError) as caught:
        stamps(tmp_path, ['1'], time)
    assert caught.value.key == key


REPEATED = ['0,1,0', '1,2,0', '1,3,0', '1,4,0', '1,5,0', '2,6,0', '2,7,0']


def test_repeated_times(tmp_path):
    """By default an error that says what can be done."""
    for name in 'abc':
        (tmp_path / name).mkdir()
    with pytest.raises(BagError, match='line 4: .*later time than in the row before; `repeated: spread`'):
        imported(tmp_path / 'a', REPEATED, 'unit: s')
    found, samples = imported(tmp_path / 'b', REPEATED, 'unit: s, repeated: first')
    assert samples == [(0, 1.0), (SECOND, 2.0), (2 * SECOND, 6.0)] and '4 rows' in found.warnings[0]
    found, samples = imported(tmp_path / 'c', REPEATED, 'unit: s, repeated: spread')
    quarter = SECOND // 4
    assert samples == [(0, 1.0), *((SECOND + k * quarter, 2.0 + k) for k in range(4)),
                       (2 * SECOND, 6.0), (2 * SECOND + 1_000_000, 7.0)] and 'spread' in found.warnings[0]


@pytest.mark.parametrize('end, rows', [
    (b'2,3', 2), (b'2', 2), (b'2,3,', 2), (b'2,3,1.25', 3), (b'2,3,1.', 2), (b'2,3,1.25\n', 3), (b'2,3,1e', 2),
    (b'2,3\n', 2), (b'2,3,"1.2', 2), (b'2,"', 2)])
def test_a_last_row_that_is_cut_is_left_out_and_said(tmp_path, end, rows):
    """Also where what is left of its last number could be one."""
    found, samples = imported(tmp_path, b't,s,p\n0,1,1.25\n1,2,1.25\n' + end, 'unit: s')
    assert len(samples) == rows and ('line 4' in ' '.join(found.warnings)) == (rows == 2)


@pytest.mark.parametrize('content, words', [
    ('t,s,p\n0,1,2\n'.encode('utf-16'), 'UTF-16, expected UTF-8: .*iconv -f UTF-16'),
    ('t,s,p\n0,1,2\n'.encode('utf-16-le'), 'NUL bytes: text in UTF-16'),
    ('t,s,p,Öl\n0,1,2,x\n'.encode('latin-1'), 'line 1: byte 0xd6 .*Latin-1.*iconv -f WINDOWS-1252'),
    ('t,s,p,n\n0,1,2,x\n1,1,2,Öl\n'.encode('latin-1'), 'line 3: byte 0xd6'),
    ('t,s,p\n0,1,2\n'.encode('utf-16-be'), 'iconv -f UTF-16BE'), (b'\x1f\x8b\x08\0rest', 'gunzip'),
    (b'#ROSBAG V2.0\n\0', 'is a bag, expected a table'), (b'\x89MCAP0\r\n\0', 'is a bag'),
    (b'PK\x03\x04\0rest', 'spreadsheet'), (b't,s,p\n0,"1,2\n1,2,3\n2,2,3', 'line 4: unexpected end'),
    (b'', 'line 1: expected the names'), (b't,s,p\n', 'no rows'),
    (b't,s,p\n0,1 000,2\n', 'expected a number'), (b't,s,p\n0,"1,5",2\n', 'column s: .*decimal: comma'),
    (b't,s,p\n0,1_5,2\n', 'column s: .*expected a number'),
    (b't,s,p\n0,"1,234.5",2\n', 'separators of thousands: 1234.5$'),
    (b't,s,p\n0,"1.234,5",2\n', 'separators of thousands: 1234,5 and `decimal: comma` in the map'),
    (b't,s,p\ns,cm,bar\n0,1,2\n', "line 2: column s: got 'cm', expected mm")])
def test_what_cannot_be_read_says_how_to_mend_it(tmp_path, content, words):
    with pytest.raises(BagError, match=words):
        imported(tmp_path, content, 'unit: s')


def test_a_row_of_units_and_a_decimal_comma(tmp_path):
    _, samples = imported(tmp_path, b'\xef\xbb\xbft,s,p\n[s],[mm],bar\n0,1.5,2\n', 'unit: s')
    assert samples == [(0, 1.5)]
    (tmp_path / 'x').mkdir()
    with pytest.raises(BagError, match="column s: got '1.234', expected a number with a decimal comma"):
        imported(tmp_path / 'x', b't;s;p\n0;1.234;2\n', 'unit: s', 'delimiter: semicolon\ndecimal: comma\n')
    with pytest.raises(DescriptionError, match='`delimiter: semicolon` in the map'):
        imported(tmp_path / 'x', b't;s;p\n0;1;2\n', 'unit: s')
