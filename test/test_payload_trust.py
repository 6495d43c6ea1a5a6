# SPDX-License-Identifier: Apache-2.0
"""When a mass counts again after one that cannot be."""

from mbse_ros.payload.trust import AFTER_CONTACT, FIRST, LASTING, LONGEST, PROBATION, Trust

DT = 0.01


def pass_time(trust, seconds, implausible=False, alarm=False, moved=True, contact=False, refused=False):
    """Segments of DT; gives for how long, s, the mass did not count."""
    lost = 0
    for _ in range(round(seconds / DT)):
        trust.take(DT, implausible, alarm, moved, contact, refused)
        lost += trust.lost
    return lost * DT


def test_it_takes_motion_without_an_alarm():
    trust = Trust()
    assert pass_time(trust, 100.0) == 0.0
    trust.take(DT, True, False, True)
    assert trust.lost
    assert abs(pass_time(trust, 10.0, moved=False) - 10.0) < DT        # standing proves nothing
    pass_time(trust, FIRST - 0.1)
    assert trust.lost
    trust.take(DT, False, True, True)                                   # a load that changes: from the start
    assert abs(pass_time(trust, 10.0) - FIRST) < 2 * DT


def test_it_takes_longer_each_time_but_not_for_ever():
    trust, times = Trust(), []
    for _ in range(4):
        trust.take(DT, True, False, True)
        times.append(pass_time(trust, PROBATION - 0.1))
    assert [round(t) for t in times] == [FIRST, 2 * FIRST, 4 * FIRST, LONGEST]
    pass_time(trust, PROBATION + LONGEST)
    trust.take(DT, True, False, True)
    assert abs(pass_time(trust, 20.0) - FIRST) < 2 * DT                 # forgotten


def test_loads_that_change_are_no_distrust_but_for_too_long():
    trust = Trust()
    for _ in range(50):                                                 # a working cycle
        assert pass_time(trust, 1.0, alarm=True) + pass_time(trust, 2.5) == 0.0
    assert pass_time(trust, LASTING - 0.1, alarm=True) == 0.0
    assert pass_time(trust, 0.3, alarm=True) > 0.1
    assert abs(pass_time(trust, 20.0) - FIRST) < 2 * DT


def test_an_alarm_at_rest_does_not_last():
    trust = Trust()
    assert pass_time(trust, 60.0, alarm=True, moved=False) == 0.0


def test_soil_explains_what_cannot_be_but_not_for_long():
    """A bucket that comes out of the soil: heavier than any load for a second, then right."""
    trust = Trust()
    for _ in range(5):
        assert pass_time(trust, 2.0, alarm=True, moved=False, contact=True) == 0.0
        assert pass_time(trust, AFTER_CONTACT - 0.1, implausible=True) + pass_time(trust, 5.0) == 0.0
    pass_time(trust, 2.0, alarm=True, moved=False, contact=True)
    assert pass_time(trust, AFTER_CONTACT + 0.1, implausible=True) > 0.0
    assert abs(pass_time(trust, 20.0) - FIRST) < 2 * DT


def test_trust_that_is_lost_stays_lost_through_contact():
    trust = Trust()
    trust.take(DT, True, False, True)
    for _ in range(3):
        pass_time(trust, 1.0)
        pass_time(trust, 0.5, alarm=True, moved=False, contact=True)
        pass_time(trust, 0.5, implausible=True)
        assert trust.lost


def test_soil_explains_no_sensor_that_is_rejected():
    trust = Trust()
    pass_time(trust, 1.0, alarm=True, moved=False, contact=True)
    assert pass_time(trust, 0.1, alarm=True, moved=False, refused=True) > 0.09
    assert abs(pass_time(trust, 20.0) - FIRST) < 2 * DT
