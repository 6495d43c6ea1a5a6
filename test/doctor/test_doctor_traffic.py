# SPDX-License-Identifier: Apache-2.0
"""What was heard of a graph, judged."""

import pytest

from mbse_ros.bags.topics import FLUID_PRESSURE, JOINT_STATE, SEGMENT
from mbse_ros.doctor.checks import FAILS, OK, WARNING
from mbse_ros.doctor.traffic import Expected, Heard, Traffic, traffic_checks

POSITION, PRESSURE, COMMAND = 'sensors/position', 'sensors/pressure/rod', 'sensors/valve_command'
EXPECTED = Expected({POSITION: JOINT_STATE, PRESSURE: FLUID_PRESSURE, COMMAND: JOINT_STATE}, {'segment': SEGMENT},
                    ('position/lift', 'pressure/rod'), frozenset({COMMAND}))
KINDS = {**EXPECTED.sensors, **EXPECTED.produced}


def heard(topic=POSITION, rate=100.0, age=0.002, count=301, publishers=('/plant',), kinds=None):
    return Heard(kinds or (KINDS.get(topic, JOINT_STATE),), publishers, [5.0 + k / rate for k in range(count)],
                 [age] * count)


def sound(**changes):
    topics = {topic: heard(topic) for topic in KINDS}
    return Traffic(3.0, {**topics, **changes.pop('topics', {})}, changes.pop('channels', {'position/lift',
                                                                                          'pressure/rod'}), **changes)


def of(traffic):
    return {check.name: check for check in traffic_checks(traffic, EXPECTED)}


def test_a_sound_graph():
    found = of(sound())
    assert {check.status for check in found.values()} == {OK} and set(found) == {
        *(f'topic {topic}' for topic in KINDS), 'stamps'}
    assert found[f'topic {POSITION}'].found == '100.0 Hz, 2 ms old, from /plant'


def test_nobody_is_there():
    silent = {topic: Heard((kind,)) for topic, kind in KINDS.items()}       # others listen to them
    assert [check.status for check in traffic_checks(Traffic(3.0, silent), EXPECTED)] == [WARNING]


@pytest.mark.parametrize('topic, change, status, text', [
    (POSITION, {'publishers': ('/plant', '/driver')}, FAILS, 'two publishers or more: /plant, /driver'),
    (POSITION, {'publishers': ()}, FAILS, 'no publisher'),
    (POSITION, {'count': 0}, FAILS, 'no message in 3 s, from /plant'),
    (POSITION, {'kinds': ('std_msgs/msg/Float64',)}, FAILS, 'expected sensor_msgs/msg/JointState'),
    (POSITION, {'age': 0.25}, WARNING, '250 ms old'),
    (POSITION, {'age': -0.02}, WARNING, '20 ms in the future'),
    (POSITION, {'age': 1.7e9}, WARNING, '1700000000 s old'),
    (POSITION, {'count': 1}, OK, '1 message'),
    (COMMAND, {'count': 0}, WARNING, 'no message'),
    ('segment', {'publishers': ()}, WARNING, 'no publisher'),
    ('segment', {'count': 0}, WARNING, 'no message'),
    ('segment', {'publishers': ('/a/x', '/b/x')}, FAILS, '/a/x, /b/x')])
def test_one_topic(topic, change, status, text):
    check = of(sound(topics={topic: heard(topic, **change)}))[f'topic {topic}']
    assert check.status == status and text in check.found and bool(check.mend) == (status != OK)


def test_a_topic_that_the_machine_does_not_know():
    check = of(sound(topics={'sensors/pressure/rodd': heard('sensors/pressure/rodd')}))['topic sensors/pressure/rodd']
    assert check.status == WARNING and f'did you mean {PRESSURE}?' in check.mend
    assert 'topic sensors/x' not in of(sound(topics={'sensors/x': Heard((JOINT_STATE,))}))       # only a reader


def test_a_channel_without_samples():
    assert of(sound(channels={'pressure/rod'}))['channel position/lift'].status == FAILS
    quiet = of(sound(channels={'pressure/rod'}, topics={POSITION: heard(count=0)}))
    assert 'channel position/lift' not in quiet       # the topic's line says so


def test_names_and_samples():
    found = of(sound(slips=['lfit; did you mean lift?'], refused={POSITION: '2 positions'}))
    assert found['names'].status == found[f'samples of {POSITION}'].status == WARNING
    assert of(sound(passed=['wheel is passed over']))['names'].status == OK


def test_sensors_of_different_times():
    check = of(sound(topics={PRESSURE: heard(PRESSURE, age=0.7)}))['stamps']
    assert check.status == FAILS and f'{PRESSURE} is 0.698 s behind {POSITION}' in check.found
    assert of(sound(topics={COMMAND: heard(COMMAND, age=0.7)}))['stamps'].status == OK      # it is held


@pytest.mark.parametrize('age, words', [(0.35, '0.35 s older on arrival'), (-0.2, '0.20 s ahead of')])
def test_a_sensor_whose_stamps_are_not_those_of_the_others(age, words):
    check = of(sound(topics={PRESSURE: heard(PRESSURE, age=age)}))['stamps']
    assert check.status == WARNING and words in check.found and PRESSURE in check.found
    late = {topic: heard(topic, age=0.35) for topic in KINDS}
    assert of(sound(topics=late))['stamps'].status == OK        # all are late
