# SPDX-License-Identifier: Apache-2.0
"""``mbse check-data``, and its lines among the warnings of ``mbse estimate``."""

import json

from cli_support import COMMAND, PISTON, POSITION, ROD, START_NS, TRUTH, lift, mbse, recorded, refused

from mbse_ros.bags.bag import decode
from mbse_ros.bags.writer import BagWriter
from mbse_ros.description.load import known_machines
from mbse_ros.offline.bag import recorded_machine


def in_bar(topic, t, message):
    if topic in (PISTON, ROD):
        message.fluid_pressure /= 1e5
    return message


def test_nothing_wrong(tmp_path):
    done = mbse('check-data', recorded(tmp_path / 'bag'), '--json', tmp_path / 'x.json')
    assert done.status == 0 and done.out.startswith('nothing wrong is seen in ') and not done.err
    found = json.loads((tmp_path / 'x.json').read_text())
    assert found['findings'] == found['unchecked'] == found['notes'] == [] and found['machine'] == 'patu655_lift'
    assert found['samples'] > 2000 and 5.5 < found['seconds'] < 5.7


def test_a_unit(tmp_path):
    bag = recorded(tmp_path / 'bag', in_bar)
    for options in ((), ('--valve', 'unknown')):
        done = mbse('check-data', bag, '--machine', 'patu655_lift', *options, '--json', tmp_path / 'x.json')
        assert done.status == 1 and done.out.count('multiply by 100000: the values look like bar') == 2
        assert done.out.splitlines()[-1].startswith('2 findings in ')
    found = json.loads((tmp_path / 'x.json').read_text())['findings']
    assert [(item['kind'], item['channels']) for item in found] == [
        ('unit', ['pressure/lift_piston']), ('unit', ['pressure/lift_rod'])]
    assert all(item['seen'] and item['remedy'] for item in found)
    assert any('look like bar' in line for line in mbse('estimate', bag).warnings)


def test_another_machine(tmp_path):
    done = mbse('check-data', recorded(tmp_path / 'bag'), '--machine', 'patu655')
    assert done.status == 1 and 'frame_id: the bag was recorded on patu655_lift' in done.out
    silent = 'position/tilt, pressure/tilt_piston, pressure/tilt_rod, command/tilt_valve'
    assert f'{silent}: no sample in the bag' in done.out
    assert 'not checked: the balance of forces' in done.out


def test_a_copy_of_a_file_under_another_name(tmp_path):
    """The same machine by its numbers; with others both files are named, and how to go on with either."""
    bag, text = recorded(tmp_path / 'bag'), known_machines()['patu655_lift'].read_text()
    own = tmp_path / 'own.yaml'
    own.write_text(text.replace('name: patu655_lift', 'name: own', 1))
    for options in ((), ('--valve', 'unknown')):
        done = mbse('check-data', bag, '--machine', own, *options)
        assert done.status == 0, done.out
    assert not any('recorded on' in line for line in mbse('estimate', bag, '--machine', own).warnings)
    own.write_text(own.read_text().replace('limits: [0 kg, 1000 kg]', 'limits: [0 kg, 900 kg]'))
    done = mbse('check-data', bag, '--machine', own)
    assert done.status == 1 and f'read as own ({own})' in done.out and 'name patu655_lift as the machine' in done.out
    assert 'recorded on patu655_lift (config/machines/patu655_lift.yaml)' in mbse(
        'estimate', bag, '--machine', own).warnings[0]


def test_what_has_no_sensors_of_a_machine_is_said_by_all_commands(tmp_path):
    """Estimates alone; and where no machine is named, which was assumed."""
    assert mbse('estimate', recorded(tmp_path / 'bag', until=3.0), '-o', tmp_path / 'estimates').status == 0
    with BagWriter(tmp_path / 'joints') as writer:
        writer.write('/x', 'std_msgs/msg/Float64', 1, {'data': 1.0})
    for command in ('estimate', 'loads', 'check-data'):
        line = refused(command, tmp_path / 'estimates')
        assert 'holds estimates (/payload, /state), no sensors' in line and 'none of the topics' not in line
        assert 'patu655_lift, which is assumed' in refused(command, tmp_path / 'joints')
        line = refused(command, tmp_path / 'joints', '--machine', 'zx200')
        assert 'a bag of zx200' in line and 'assumed' not in line


def test_the_machine_that_a_bag_names(tmp_path):
    """Without --machine; one whose file nobody named is refused with its name, and the default's."""
    for frame, found in (('patu655', 'position/tilt, pressure/tilt_piston'), ('', 'nothing wrong'), ('mine', None)):
        with BagWriter(tmp_path / f'{frame}.bag', frame=frame) as writer:
            for raw in lift():
                if raw.stamp_ns < START_NS + 5 * 10 ** 9 and raw.topic != TRUTH:
                    message = decode(raw)
                    message.header.frame_id = frame
                    writer.write(raw.topic, raw.msgtype, raw.stamp_ns, message)
        for command in ('check-data', 'estimate', 'loads') if found is None else ('check-data',):
            if found is None:
                line = refused(command, tmp_path / 'mine.bag')
                assert "recorded on 'mine'" in line and 'name its file' in line and 'patu655_lift' in line
            else:
                assert found in mbse(command, tmp_path / f'{frame}.bag').out
    for command in ('check-data', 'estimate', 'loads'):     # which was assumed is said, and not where it was named
        for words in (), ('--machine', 'patu655_lift'):
            said = mbse(command, tmp_path / '.bag', *words).err
            assert (f'{tmp_path}/.bag: no sample names the machine' in said) is (not words), said
    assert 'bags of several machines' in refused('loads', tmp_path / '.bag', tmp_path / 'patu655.bag')
    damaged = tmp_path / 'damaged.mcap'
    damaged.write_bytes(b'nothing that is a bag')
    assert recorded_machine([damaged, tmp_path / 'patu655.bag']) == (
        'patu655', ())      # it stops no other bag of a fleet
    assert 'damaged.mcap' in refused('check-data', damaged)


def test_no_commands(tmp_path):
    bag = recorded(tmp_path / 'bag', lambda topic, t, message: None if topic == COMMAND else message)
    done = mbse('check-data', bag)
    assert done.status == 1 and 'or do without commands (valve: unknown)' in done.out
    assert mbse('check-data', bag, '--valve', 'unknown').status == 0


def test_a_sensor_without_values_is_silent(tmp_path):
    """Half of its samples or more are NaN; a third is no finding."""
    for first, status in ((2.0, 1), (4.0, 0)):
        def empty(topic, t, message, first=first):
            if topic == ROD and t > first:
                message.fluid_pressure = float('nan')
            return message
        done = mbse('check-data', recorded(tmp_path / f'{first}', empty))
        assert done.status == status
        assert ('pressure/lift_rod: ' in done.out and 'of its samples have no value (NaN)' in done.out) == bool(status)


def test_what_the_reader_refuses_is_a_note(tmp_path):
    def renamed(topic, t, message):
        if topic == POSITION and t > 3.0:
            message.name = ['boom']
        return message
    done = mbse('check-data', recorded(tmp_path / 'bag', renamed))
    assert 'note: /sensors/position boom' in done.err


def test_bad_input(tmp_path):
    assert 'no_such' in refused('check-data', recorded(tmp_path / 'bag'), '--machine', 'no_such')
    assert str(tmp_path / 'nothing') in refused('check-data', tmp_path / 'nothing')
