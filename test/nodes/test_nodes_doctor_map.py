# SPDX-License-Identifier: Apache-2.0
"""``mbse doctor --sources`` over real DDS: what a map finds, channel by channel, and what is wrong with it."""

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from sensor_msgs.msg import JointState
from test_nodes_sources import MAP, _ros, drive, peer  # noqa: F401

from mbse_ros.doctor.checks import FAILS, OK, WARNING
from mbse_ros.doctor.mapped import map_checks
from mbse_ros.machine import load_machine
from mbse_ros.nodes.checks.listening import MapListener
from mbse_ros.sources.machine import for_machine
from mbse_ros.sources.map import parse_sources


@pytest.fixture
def mapped(monkeypatch):
    """Who listens to a map, as the doctor does; a busy computer is not what is late here."""
    monkeypatch.setattr('mbse_ros.doctor.mapped.LATE', 60.0)
    made = []

    def listen(text):
        machine = load_machine('patu655_lift', 'unknown')
        found = for_machine(parse_sources(text), machine)
        made.append(MapListener(found, None))
        return made[-1], lambda: {check.name.removeprefix('channel '): check for check in map_checks(
            made[-1].result(1.0), found, machine)}
    yield listen
    for listener in made:
        listener.close()


def heard(peer, listener, count=30):     # noqa: F811
    """A driver is listened to until enough has come of each channel that is served."""
    peer.also = listener.step
    drive(peer, 5, readers=0)
    peer.until(lambda: listener._inputs.served())
    for _ in range(count):
        drive(peer, 5, readers=0)
        if listener.result(1.0) and all(len(fed.stamps) >= count or fed.left_out or not fed.topic
                                        for fed in listener._fed.values()):
            return


def test_the_doctor_says_what_a_map_finds(peer, mapped):     # noqa: F811
    listener, checks = mapped(MAP.replace('rate: 9 Hz', 'rate: 0.2 Hz'))      # slower than any computer drives it
    heard(peer, listener)
    found = checks()
    lift, piston, rod = (found[name] for name in ('position/lift', 'pressure/lift_piston', 'pressure/lift_rod'))
    assert lift.status == OK and lift.found.startswith('0.28 m, ') and '(/plc/strokes, from /' in lift.found
    assert rod.status == OK and rod.found.startswith('2.2e+06 Pa, ')
    assert piston.status == WARNING and piston.found.endswith('expected 0.2 Hz')


@pytest.mark.parametrize('old, new, channel, status, text', [
    ('plc/strokes', 'plc/stroke', 'position/lift', FAILS, 'no publisher of plc/stroke'),
    ('unit: mm, offset: -820 mm', 'unit: m, offset: -820 mm', 'position/lift', FAILS, 'far outside its range'),
    ('name=main', 'name=mian', 'position/lift', FAILS, 'no mian in name'),
    ('data[layout.dim.label=B]', 'values[0]', 'map', FAILS, 'a field of std_msgs/msg/Float64MultiArray: layout'),
    ('data[layout.dim.label=B]', 'values[0]', 'pressure/lift_rod', FAILS, 'not read: the map does not fit'),
    ("label=B]', unit: bar", "label=B]', unit: bar, sign: -1", 'pressure/lift_rod', FAILS, 'below vacuum'),
    ("label=B]', unit: bar, stamp: arrival", "label=B]', unit: bar, stamp: arrival, delay: 90 s", 'pressure/lift_rod',
     WARNING, '900')])
def test_the_doctor_says_what_is_wrong_with_a_map(peer, mapped, old, new, channel, status, text):     # noqa: F811
    listener, checks = mapped(MAP.replace(old, new))
    heard(peer, listener)
    check = checks()[channel]
    assert check.status == status and text in check.found and check.mend
    if channel == 'position/lift' and 'stroke' in new:
        assert 'did you mean /plc/strokes?' in check.mend


def test_two_publishers_of_a_channel(peer, mapped):     # noqa: F811
    listener, checks = mapped(MAP)
    other = peer.node.create_publisher(JointState, 'plc/strokes', 10)
    peer.also = listener.step
    peer.until(lambda: drive(peer, 1, readers=0) or len(listener.result(1.0).channels['position/lift'].publishers) == 2
               and listener._fed['position/lift'].stamps)
    peer.node.destroy_publisher(other)
    assert checks()['position/lift'].status == FAILS and '2 publishers' in checks()['position/lift'].found
