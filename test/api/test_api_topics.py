# SPDX-License-Identifier: Apache-2.0
"""The page of the numbers on topics: charts of one unit each, what is drawn, what is left out; as by the command."""

import base64
import json
import re

import numpy as np
import pytest
from cli_support import mbse as command
from cli_support import refused

import mbse_ros as mbse
from mbse_ros.bags.writer import BagWriter
from mbse_ros.errors import BagError
from mbse_ros.sources.survey import MOST

SECOND = 10 ** 9


@pytest.fixture(scope='module')
def bag(tmp_path_factory):
    """A crane that lifts 50 kg."""
    return mbse.write_bag(tmp_path_factory.mktemp('topics') / 'bag', mbse.simulate('patu655_lift', 1.0, payload=50.0))


def floats(packed):
    return np.frombuffer(base64.b64decode(packed['bdata']), '<f4')


def charts(path):
    """Of a page, in its order: heading, unit, lines by their names, each its times and values."""
    text = path.read_text()
    found = json.loads(re.search(r'id="charts">(.*?)</script>', text, re.DOTALL).group(1))
    headings = re.findall(r'<h2>([^<]*)</h2><p class="caption">', text)
    return [(heading, figure['layout']['yaxis']['title']['text'],
             {line['name']: (floats(line['x']), floats(line['y'])) for line in figure['data']})
            for heading, figure in zip(headings, found.values(), strict=True)]


def test_numbers_of_one_unit_share_a_chart(bag, tmp_path):
    """50 kg of a payload lay on the axis of pressures of 7e6 Pa; commands of this package are V, not m."""
    mbse.topics(bag).write_page(tmp_path / 'x.html')
    found = charts(tmp_path / 'x.html')
    assert {(heading, unit): set(lines) for heading, unit, lines in found} == {
        ('/sensors/position', 'm or rad'): {'position[name=lift]'},
        ('/sensors/pressure/lift_piston', 'Pa'): {'fluid_pressure'},
        ('/sensors/pressure/lift_rod', 'Pa'): {'fluid_pressure'},
        ('/sensors/valve_command', 'V'): {'position[name=lift_valve]'},
        ('/truth', 'm or rad'): {'position[cylinders=lift]'}, ('/truth', 'm/s or rad/s'): {'velocity[cylinders=lift]'},
        ('/truth', 'm/s^2 or rad/s^2'): {'acceleration[cylinders=lift]'}, ('/truth', 'kg'): {'payload'},
        ('/truth', 'Pa'): {'pressure[volumes=lift_piston]', 'pressure[volumes=lift_rod]'}}
    samples = mbse.read_bag(bag, 'patu655_lift')
    t, stroke = next(lines['position[name=lift]'] for heading, _, lines in found if heading == '/sensors/position')
    np.testing.assert_allclose(stroke, samples.columns(['position/lift'])[:, 0], rtol=1e-6)
    np.testing.assert_allclose(t, samples.t, atol=1e-6)
    done = command('view', bag, '-o', tmp_path / 'y.html')
    assert done.status == 0 and (tmp_path / 'y.html').read_bytes() == (tmp_path / 'x.html').read_bytes(), done


def test_messages_of_others_have_no_unit_but_where_their_fields_have_one(tmp_path):
    """An array by its name in one chart of at most ten lines, x, y, z of a vector in one; an attitude in rad."""
    imu = {'angular_velocity': {'x': 1.0, 'y': 2.0, 'z': 3.0}, 'orientation': {'x': 0.0, 'y': 0.0, 'z': 0.0, 'w': 1.0}}
    with BagWriter(tmp_path / 'bag') as writer:
        for k in range(3):
            writer.write('/imu', 'sensor_msgs/msg/Imu', k * SECOND, imu)
            writer.write('/many', 'std_msgs/msg/Float64MultiArray', k * SECOND, {'data': np.arange(12.0)})
            writer.write('/twist', 'geometry_msgs/msg/Vector3', k * SECOND, {'x': 0.0, 'y': 1.0, 'z': 2.0})
    mbse.topics(tmp_path / 'bag').write_page(tmp_path / 'x.html')
    found = [(heading, unit, len(lines)) for heading, unit, lines in charts(tmp_path / 'x.html')]
    assert sorted(found) == [('/imu', 'm/s^2', 3), ('/imu', 'rad', 2), ('/imu', 'rad/s', 3), ('/many', '', 2),
                             ('/many', '', 10), ('/twist', '', 3)]


def test_what_is_not_drawn_is_said(tmp_path):
    """Topics without numbers are in the table; of many messages some are drawn; times in a unit that fits."""
    with BagWriter(tmp_path / 'bag') as writer:
        for k in range(MOST + 10):
            writer.write('/x', 'std_msgs/msg/Float64', k * SECOND, {'data': float(k)})
        writer.write('/said', 'std_msgs/msg/String', 1, {'data': 'x'})
    mbse.topics(tmp_path / 'bag').write_page(tmp_path / 'x.html')
    text, ((_, unit, lines),) = (tmp_path / 'x.html').read_text(), charts(tmp_path / 'x.html')
    assert '1 of 2 topics have numbers' in text and '<td>/said</td><td>std_msgs/msg/String</td>' in text
    t, values = lines['data']
    drawn = np.isfinite(values)         # between them are gaps
    assert f'{MOST + 10} messages, of which {drawn.sum()} drawn by lot are shown' in text and 0 < drawn.sum() < MOST
    np.testing.assert_allclose(60.0 * t[drawn], values[drawn], rtol=1e-5)
    assert 'time from the first message [min]' in text and not unit


def test_a_bag_without_numbers_is_refused(tmp_path):
    with BagWriter(tmp_path / 'words') as writer:
        writer.write('/said', 'std_msgs/msg/String', 1, {'data': 'x'})
    with pytest.raises(BagError, match='has numbers'):
        mbse.topics(tmp_path / 'words').write_page(tmp_path / 'y.html')
    assert 'has numbers' in refused('view', tmp_path / 'words', '-o', tmp_path / 'y.html')
    assert not (tmp_path / 'y.html').exists()


def test_each_channel_of_a_machine_by_a_map(bag, tmp_path):
    """Where it is read, rate and range; what is missing or odd, with the findings below; 1 where anything is."""
    own = mbse.topics(bag, 'patu655_lift', sources='none').channels
    lift = own[0]
    assert lift[:3] == ('position/lift', '/sensors/position', 'position[name=lift]') and lift.unit == 'mm'
    stroke = 1e3 * mbse.read_bag(bag, 'patu655_lift').columns(['position/lift'])[:, 0]
    np.testing.assert_allclose((lift.rate, lift.low, lift.high), (100.0, stroke.min(), stroke.max()), rtol=1e-9)
    assert not any(row.odd for row in own) and own[-1].unit == 'V'
    (tmp_path / 'map.yaml').write_text('format: mbse/sources/1\nchannels:\n  position/lift:\n    {topic: '
                                       "sensors/position, path: 'position[name=lift]', unit: m, offset: 0.82 m}\n")
    done = command('topics', bag, '--machine', 'patu655_lift', '--sources', tmp_path / 'map.yaml')
    lines = done.out.splitlines()
    assert done.status == 1 and lines[0].split() == ['channel', 'topic', 'field', 'Hz', 'range', 'odd']
    assert re.fullmatch(r'position/lift +/sensors/position +position\[name=lift] +100 +\d+ to \d+ mm +unit', lines[1])
    assert any(line.startswith('position/lift: ') and 'closed length' in line for line in lines)
    rows = {row.channel: row for row in mbse.topics(bag, 'patu655', sources='none').channels}
    assert rows['pressure/tilt_rod'].odd == ('missing',) and 'missing' not in rows['pressure/lift_rod'].odd
    assert 'needs a bag and --machine' in refused('topics', bag, '--sources', 'none')
