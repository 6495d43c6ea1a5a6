# SPDX-License-Identifier: Apache-2.0
"""Bad input through `mbse estimate`: reported in words, nothing silently wrong, no traceback."""

import json
import math
import re

import numpy as np
import pytest
from cli_support import COMMAND, PISTON, POSITION, ROD, START_NS, TRUTH, lift, mbse, recorded, refused, stamped

from mbse_ros.bags.writer import BagWriter
from mbse_ros.machine import load_machine
from mbse_ros.offline.bag import estimate_bag, parse_tuning
from mbse_ros.offline.estimate_report import report_run

SECOND = 1_000_000_000


def sensor(topic, value, begin=4.0, end=4.045):
    """The value instead of the samples in a while; None: they are lost."""
    def edit(found, t, message):
        if found != topic or not begin < t < end:
            return message
        if value is None:
            return None
        if hasattr(message, 'fluid_pressure'):
            message.fluid_pressure = value(message.fluid_pressure)
        else:
            message.position = np.atleast_1d(np.array(value(message.position), dtype=float))
        return message
    return edit


def set_to(value):
    return lambda _: value


def stamps(topic, stamp_of, begin, end):
    """Other stamps on a topic (None: all) in a while."""
    return lambda found, t, message: (stamped(message, stamp_of(START_NS + round(t * 1e9)))
                                      if (topic is None or found == topic) and begin < t < end else message)


def renamed(found, t, message):
    if found == POSITION and t > 4.0:
        message.name = ['tilt']
    return message


# how many exactly depends on rounding: the observer is far out of its model
GOES_ON = {     # edit of the recording; warnings that must come, in order, among others; status at the end
    'nan position': (sensor(POSITION, set_to(math.nan)), [
        'position/lift: 4 samples without a value (NaN), the first at t = 4.01 s',
        'the observer coasted for 0.05 s in all, first at t = 4.01 s: missing: position/lift'], None),
    'nan pressure': (sensor(PISTON, set_to(math.nan)), [
        'pressure/lift_piston: 4 samples without a value (NaN), the first at t = 4.01 s',
        'the observer coasted for 0.05 s'], None),
    'infinite position': (sensor(POSITION, set_to(math.inf)), ['4 samples of position/lift dropped, the first:'], None),
    'infinite pressure': (sensor(ROD, set_to(-math.inf)), ['4 samples of pressure/lift_rod dropped'], None),
    'nan command': (sensor(COMMAND, set_to(math.nan)), [
        '4 samples of command/lift_valve dropped, the first: command/lift_valve at 1700000004010000000 ns: got nan, '
        'expected a finite number'], None),
    'too long': (sensor(POSITION, set_to([0.1, 0.2])), [
        "/sensors/position at 1700000004010000000 ns: got '2 positions', expected as many positions as names (and 3 "
        'more)'], None),
    'too short': (sensor(POSITION, set_to([])), ["got '0 positions', expected as many"], None),
    'unknown cylinder': (renamed, ["got 'tilt', expected one of lift (and 159 more)",
                                   'position/lift: silent from t = 4.00 s to the end',
                                   'the mass is held: no sample of it after t = 3.'], 'no_data'),
    'repeated stamps': (stamps(POSITION, set_to(START_NS + 4 * SECOND), 4.0, 4.045), [
        '4 samples of position/lift dropped, the first: position/lift at 1700000004000000000 ns'], None),
    'backward stamp': (stamps(ROD, set_to(START_NS + SECOND), 4.0, 4.015), [
        '1 sample of pressure/lift_rod dropped, the first: pressure/lift_rod at 1700000001000000000 ns: got '], None),
    'future stamp': (stamps(POSITION, set_to(2_000_000_000 * SECOND), 4.0, 4.015), [
        'expected a stamp after 2000000000000000000 ns', 'the estimate started again at t = 4.0'], None),
    'clock set back': (stamps(None, lambda stamp: stamp - 3 * SECOND, 4.005, 99.0), [
        '4 samples of 4 channels dropped, most of pressure/lift_piston',
        'the estimate started again at t = 4.01 s: the clock was set back'], None),
    'gap of 2 s': (lambda _, t, message: None if 3.0 < t < 5.0 else message, [
        'pressure/lift_rod, position/lift: silent for 2.00 s from t = 3.00 s',
        'command/lift_valve: silent for 2.00 s from t = 3.00 s; its last value was held',
        'the estimate started again at t = 5.01 s: no sensor had sent for longer'], None),
    'pressure dies': (sensor(ROD, None, 5.0, 99.0), [
        'pressure/lift_rod: silent from t = 5.00 s to the end',
        'the observer coasted for 0.60 s in all, first at t = 5.01 s: missing: pressure/lift_rod',
        'the mass is held: no sample of it after t = '], 'no_data'),
    'position dies': (sensor(POSITION, None, 5.0, 99.0), [
        'position/lift: silent from t = 5.00 s to the end', 'the mass is held: no sample of it after t = '], 'no_data'),
    'command dies': (sensor(COMMAND, None, 5.0, 99.0), [
        'command/lift_valve: silent from t = 5.00 s to the end; its last value was held'], None),
    'comes back': (sensor(PISTON, None, 3.0, 5.0), [
        'pressure/lift_piston: silent for 2.00 s from t = 3.00 s', 'the observer coasted for 2.00 s'], None),
    'late sensor': (sensor(ROD, None, -1.0, 2.0), ['not used: they came before every sensor and command had sent'],
                    None),
    'stroke left': (sensor(POSITION, lambda z: z + 0.6, 4.0, 99.0), [
        'position/lift: 160 samples of 561 outside the stroke of 0 to 0.535 m, the first 0.816',
        'the observer coasted for 1.60 s in all, first at t = 4.01 s: far outside its range: position/lift',
        'the mass is held: no sample of it after t = 3.'], 'no_data'),
    'millimetres': (sensor(POSITION, lambda z: 1000 * z, -1.0, 99.0), [
        'position/lift: 160.4 to 217.7, range', 'position/lift: 561 samples of 561 outside the stroke',
        'the observer was lost for 5.60 s in all'], 'no_data'),
    'bar': (lambda topic, t, message: sensor(topic, lambda p: 1e-5 * p, -1.0, 99.0)(topic, t, message)
            if 'pressure' in topic else message, [
        'pressure/lift_piston: 25.96 to 60.48, no pressures in Pa',
        'pressure/lift_rod: 19.44 to 72.25, no pressures in Pa',
        'the observer coasted for 5.40 s in all, first at t = 0.21 s: hardly any noise near zero (another unit?): '
        'pressure/lift_piston, pressure/lift_rod'], 'no_data'),
    'jump': (sensor(POSITION, lambda z: z + 0.05, 2.0, 2.015), [
        'the observer coasted for 0.01 s in all, first at t = 2.01 s: jumped: position/lift'], None),
    'slow sensor': (lambda topic, t, message: None if topic == POSITION and round(100 * t) % 40 else message, [
        'position/lift: comes every 0.40 s (2.5 Hz): no value is interpolated over more than interpolation.max_gap '
        '(0.3 s)', 'the observer coasted for 4.', 'the observer was lost for 0.'], 'no_data'),
    'rare sensor': (lambda topic, t, message: None if topic == POSITION and round(100 * t) % 20 else message, [
        'position/lift: comes at 5 Hz, each 0.2 s: what moves in between is not seen'], None),
}


EACH = {'clock set back', 'gap of 2 s', 'stroke left', 'bar', 'jump'}       # what is found in each sample's result
CAUSES = {'slow sensor': 'observer ', 'millimetres': 'position/lift: ', 'bar': 'pressure/lift_piston: 25.96 to 60.48, '}


def found(expected: 'str | re.Pattern', line: str) -> bool:
    return expected in line if isinstance(expected, str) else bool(expected.search(line))


@pytest.mark.parametrize('name', GOES_ON)
def test_goes_on_and_warns(name, tmp_path):
    edit, expected, status = GOES_ON[name]
    done = mbse('estimate', recorded(tmp_path / 'bag', edit), '--json', tmp_path / 'result.json',
                *(() if name in EACH else ('--every', 0.05)))
    assert done.status == 0, done
    lines = iter(done.warnings)
    missing = [text for text in expected if not any(found(text, line) for line in lines)]      # in this order
    assert not missing, done.warnings
    payload = json.loads((tmp_path / 'result.json').read_text())['payload']
    budget, loads, seconds = payload.pop('budget'), payload.pop('loads'), payload.pop('seconds')
    assert payload.pop('trusted', None) is (False if payload.pop('doubts', None) else None)
    payload.pop('faults')
    assert len(payload.pop('centre')) == len(payload.pop('centre_stddev')) == 2
    assert payload['status'] == (status or payload['status']) and payload['status'] in (
        'no_data', 'updating', 'accelerating', 'too_slow', 'contact')
    if name not in ('millimetres', 'slow sensor', 'bar'):
        assert payload['interval'][0] < 50.0 < payload['interval'][1] and abs(payload['mass'] - 50.0) < 1.0
    if name in ('millimetres', 'slow sensor', 'bar'):
        assert budget == [] and loads == []
        assert payload == {'mass': None, 'stddev': None, 'interval': [None, None], 'status': status, 'samples': 0}
        assert done.out.startswith(f'payload unknown: {CAUSES[name]}')
        assert 'held for ' in done.out and 'mbse check-data' in done.out and 'updating' not in seconds
        assert seconds[status] > 0.5 * sum(seconds.values())


@pytest.mark.parametrize('hours', (1, -1))
def test_a_clock_that_is_an_hour_off_is_what_is_said_first(hours, tmp_path):
    """What follows from it was said first: sensors that are silent, an observer that is lost."""
    edit = stamps(ROD, lambda stamp: stamp + hours * 3600 * SECOND, -1.0, 99.0)
    done = mbse('estimate', recorded(tmp_path / 'bag', edit))
    cause = f'pressure/lift_rod: stamps are 3600.000 s {"ahead of" if hours > 0 else "behind"} those of the others'
    assert done.warnings[0].startswith(cause) and done.out.startswith(f'payload unknown: {cause}')
    assert done.out.count(cause) == 1


def test_good_data_give_no_warning(tmp_path):
    done = mbse('estimate', recorded(tmp_path / 'bag', until=24.0, truth=True))
    assert (done.status, done.err) == (0, '')
    assert done.out.splitlines()[2] == ('held at the end of the log: piston too slow: friction is not known near '
                                        'standstill')


def test_the_report_says_what_was_odd(tmp_path):
    """Notes, animation and errors where the position dies; time goes on where the clock was set back."""
    machine = load_machine('patu655_lift')
    bag = recorded(tmp_path / 'dies', GOES_ON['position dies'][0])
    estimate = estimate_bag(bag, machine, parse_tuning([]))
    run = report_run(estimate, 'x')
    assert [f'Warning: {line}' for line in estimate.warnings] == list(run.notes[:len(estimate.warnings)])
    late = run.animation.t > 5.2
    assert np.isnan(run.animation.measured['payload'][late]).all() and late.sum() > 3
    assert np.isfinite(run.animation.estimated['payload'][late]).all()
    assert run.animation.captions[-1].endswith('kg (observer coasting)')
    back = estimate_bag(recorded(tmp_path / 'back', GOES_ON['clock set back'][0]), machine, parse_tuning([]))
    run = report_run(back, 'x')
    assert np.all(np.diff(run.payload.t) > 0) and back.log_seconds == pytest.approx(5.6, abs=0.03)
    assert run.facts['Start of the log'] == '2023-11-14 22:13:20 UTC'


def test_the_machine_out_of_its_geometry_is_not_drawn(tmp_path):
    for name, word, part in (('stroke left', 'coasting', 'measured'), ('millimetres', 'lost', 'estimated')):
        bag = recorded(tmp_path / word, GOES_ON[name][0])
        run = report_run(estimate_bag(bag, load_machine('patu655_lift'), parse_tuning([])), 'x')
        drawn = np.isfinite(getattr(run.animation, part)['payload'][:, 0, 0])
        assert drawn[run.animation.t < 4.0].all() == (part == 'measured') and not drawn[run.animation.t > 5.0].any()
        assert run.animation.captions[-1].endswith(f'(observer {word})')


def only(*topics):
    return lambda topic, t, message: message if topic in topics else None


@pytest.mark.parametrize('edit, until, text', [
    (only(POSITION, PISTON, ROD), 1.0, 'nothing to estimate: no sample of command/lift_valve (valve: unknown needs no '
                                       'command) (303 samples read)'),
    (only(COMMAND), 1.0, 'is it a bag of patu655_lift? It has only command/lift_valve. No sample of position/lift, '
                         'pressure/lift_piston, pressure/lift_rod'),
    (only(TRUTH), 1.0, 'none of the topics /sensors/position, /sensors/pressure/lift_piston, '
                       '/sensors/pressure/lift_rod, /sensors/valve_command is in it; there are /truth'),
    (only(), 1.0, 'the bag is empty'),
    (lambda topic, t, message: message, 0.005, 'values are interpolated between two (4 samples read)'),
])
def test_nothing_to_estimate(edit, until, text, tmp_path):
    assert text in refused('estimate', recorded(tmp_path / 'bag', edit, until, truth=True))


def test_no_bag(tmp_path):
    assert refused('estimate', tmp_path / 'none') == f'{tmp_path}/none: does not exist'
    assert refused('estimate', tmp_path) == f'{tmp_path}: is not a bag: it has no file .mcap or .db3'
    (tmp_path / 'text').write_text('x')
    assert refused('estimate', tmp_path / 'text').endswith('is not a bag: expected a folder, .mcap or .db3')
    (tmp_path / 'log.csv').write_text('t,encoder\n0,0\n')
    for words in ((), ('--mechanism', 'four_bar')):
        assert refused('estimate', tmp_path / 'log.csv', *words) == (
            f'--map: got None, expected a map of the columns of {tmp_path}/log.csv; or `mbse import TABLE --map MAP -o '
            'BAG` makes a bag')
    assert refused('smooth', tmp_path / 'log.csv').endswith(
        '.db3; `mbse import TABLE --map MAP -o BAG` makes a bag of a table')
    (tmp_path / 'x.mcap').write_bytes(b'no mcap at all')
    assert 'nothing in it is readable' in refused('estimate', tmp_path / 'x.mcap')


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_a_bag_cut_in_the_middle(storage, tmp_path):
    """Read up to the cut, which is reported; the mass is that of the beginning."""
    with BagWriter(tmp_path / 'bag', storage) as writer:
        for raw in lift():
            if raw.stamp_ns < START_NS + 12 * SECOND:
                writer.write_cdr(raw.topic, raw.msgtype, raw.stamp_ns, raw.data)
    (file,) = [path for path in (tmp_path / 'bag').iterdir() if path.suffix in ('.mcap', '.db3')]
    whole = file.read_bytes()
    file.write_bytes(whole[:len(whole) // 2])
    done = mbse('estimate', tmp_path / 'bag', '--json', tmp_path / 'result.json')
    assert done.status == 0 and f'{file.name}: cut off after {len(whole) // 2} bytes: read up to' in done.warnings[0]
    assert abs(json.loads((tmp_path / 'result.json').read_text())['payload']['mass'] - 50.0) < 1.0


def test_another_machine_is_reported(tmp_path):
    """Same channels, other crane: the numbers mean nothing, and that is said."""
    done = mbse('estimate', recorded(tmp_path / 'bag'), '--machine', 'lut_simple_crane')
    assert done.status == 0
    assert done.err.startswith('warning: frame_id: the bag was recorded on patu655_lift ')
    assert any('payload.limits of the machine): another machine, unit' in line for line in done.warnings)
    for command in ('estimate', 'loads'):       # other channels: what else is odd follows from it
        line = refused(command, tmp_path / 'bag', '--machine', 'zx200')
        assert 'the bag was recorded on patu655_lift ' in line and 'name patu655_lift as the machine ' in line
        assert 'expected one of' not in line
        assert 'is it a bag of zx200? It has none of the 13 channels (position' in line
        assert line.index(', but lift, lift_valve') < line.index('recorded on patu655_lift')
        assert 'position/arm' not in line
    assert 'is it a bag of patu655?' in refused('estimate', tmp_path / 'bag', '--machine', 'patu655')


def test_a_cycle_by_a_name_that_is_nearly_one(tmp_path):
    line = refused('simulate', 'zx200', '--cycle', 'digg', '-o', tmp_path / 'bag')
    assert line.endswith("got 'digg', expected one of lift_hold_lower, random, boom, dig; did you mean dig?")


def test_a_machine_with_other_channels(tmp_path):
    """What the machine needs and what the bag has are both named."""
    with BagWriter(tmp_path / 'bag') as writer:
        for k in range(10):
            writer.write_samples(k * SECOND, {'position/tilt': 0.1, 'pressure/left': 1e6}, {'command/knob': 0.0})
    line = refused('estimate', tmp_path / 'bag')
    assert 'patu655_lift? It has none of the 4 channels (position/lift, pressure/lift_piston, ...), but ' in line
    assert ', but tilt, knob, /sensors/pressure/left' in line


def test_two_machines_in_one_bag(tmp_path):
    with BagWriter(tmp_path / 'bag') as writer:
        for space in ('/one', '/two'):
            for raw in (raw for raw in lift() if raw.stamp_ns < START_NS + SECOND):
                writer.write_cdr(space + raw.topic, raw.msgtype, raw.stamp_ns, raw.data)
    assert 'several machines, choose a namespace: /one, /two' in refused('estimate', tmp_path / 'bag')
    assert mbse('estimate', tmp_path / 'bag', '--namespace', 'two').status == 0
