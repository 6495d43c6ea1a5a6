# SPDX-License-Identifier: Apache-2.0
"""The attitude of the base out of poses of others: with their covariance, their frames, and what is refused."""

from functools import cache

import numpy as np
import pytest
from base_poses import KINDS, MAP, NOISE, machine, pose_message
from rosbags.typesys import Stores, get_typestore

from mbse_ros.errors import DescriptionError
from mbse_ros.sources.fields import store_fields
from mbse_ros.sources.machine import for_machine
from mbse_ros.sources.map import parse_sources
from mbse_ros.sources.topic_samples import LARGEST, TopicSamples, coarse
from mbse_ros.streams.interpolation import Interpolator
from mbse_ros.streams.pipeline import Pipeline

FIELDS = store_fields(get_typestore(Stores.ROS2_JAZZY))
SECOND = 10 ** 9
ROLL = 'pose.pose.orientation.roll'


def samples_of(kind, **values):
    """Samples of one message of a type by channel, and the reasons of those that are left out."""
    message = pose_message(kind, **values)
    ways = [ways[KINDS.index(kind)] for ways in for_machine(parse_sources(MAP), machine()).channels.values()]
    left = []
    found = TopicSamples(ways[0].topic, ways, kind, FIELDS).samples(message, 5, left.append)
    return {sample.channel: sample for sample in found}, left


@pytest.mark.parametrize('kind', KINDS)
def test_attitude_and_covariance_of_a_pose(kind):
    """Of any yaw: the slew of the base does not incline it."""
    found, left = samples_of(kind, variances=(4 * NOISE ** 2, 0.25 * NOISE ** 2))
    assert not left
    roll, pitch = found['position/base_roll'], found['position/base_pitch']
    assert (roll.value, pitch.value) == pytest.approx((0.05, -0.1), abs=1e-12) and roll.stamp_ns == SECOND
    assert (roll.share, pitch.share) == (4.0, 1.0)      # a sample never counts more than the machine's file says
    assert all(sample.share == 1.0 for sample in samples_of(kind)[0].values())      # zeros: not known


@pytest.mark.parametrize('values, why, text', [
    ({'scale': 0.9}, 'not readable', 'a quaternion of length 0.9'), ({'scale': 0.0}, 'not readable', 'length 0'),
    ({'child': 'imu_link'}, 'of another frame', 'child_frame_id imu_link'),
    ({'frame': 'map'}, 'of another frame', 'header.frame_id map'),
    ({'variances': (-1.0, -1.0)}, 'too uncertain', 'a variance of 0'),
    ({'variances': (np.nan, np.nan)}, 'too uncertain', 'a variance of 0'),
    ({'variances': (1e6, 1e6)}, 'too uncertain', 'at most 1000 times')])
def test_a_pose_that_must_not_be_used_is_left_out_with_the_reason(values, why, text):
    found, left = samples_of(KINDS[0], **values)
    assert not found and [error.why for error in left] == [why, why]
    assert all(text in str(error) for error in left)


@pytest.mark.parametrize('way, expected', [
    ('require: {child_frame: base_link}', 'child_frame_id'), ('require: {pose: base_link}', 'a path to text'),
    ('require: base_link', 'a mapping from paths to text'), ('require: {child_frame_id: 3}', ''),
    ("variance: 'pose.covarianc[21]'", 'did you mean covariance?'),
    ('variance: pose.covariance', 'pose.covariance[0]')])
def test_wrong_keys_of_a_map_are_errors_with_what_there_is(way, expected):
    text = f'format: mbse/sources/1\nchannels:\n  position/base_roll: {{topic: a, path: {ROLL}, unit: rad, {way}}}'
    if not expected:        # text of any kind
        assert parse_sources(text)
        return
    with pytest.raises(DescriptionError, match='map.yaml') as caught:
        found = parse_sources(text, 'map.yaml')
        TopicSamples('a', found.sources, KINDS[0], FIELDS)
    assert expected in str(caught.value)


def test_shares_are_coarse_and_never_below_the_variance():
    for share in np.geomspace(1e-3, LARGEST, 200):
        assert max(share, 1.0) <= coarse(share) * (1 + 1e-9) < 1.5 * max(share, 1.0)


def test_a_segment_says_how_much_its_samples_are_worth():
    settings = Interpolator(['a', 'b']).settings
    interpolator, found = Interpolator(['a', 'b'], (), settings), []
    for k in range(40):
        for channel, share in (('a', 1.0), ('b', 1.0 if k < 20 else 8.0)):
            found += interpolator.add(channel, k * 10_000_000, 0.1, share)
    assert found[5].repeats == pytest.approx([10.0, 10.0]) and found[-1].repeats == pytest.approx([10.0, 80.0])


@cache
def at_rest(share, value=0.05):
    """States of a machine at rest whose base is measured with a share, after 1.2 s at 100 Hz."""
    pipeline, states = Pipeline(machine(), backend='vm'), []
    q = machine().model.start.q
    start = dict(zip(machine().model.names, q))
    for k in range(120):
        for channel in machine().channels:
            kind, name = channel.split('/')
            number = 3e6 if kind == 'pressure' else value if name.startswith('base_') else start[name]
            own = share if name.startswith('base_') else 1.0
            states += [output.state for output in pipeline.add(channel, k * 10_000_000, number, own)]
        for valve in machine().commands:
            states += [output.state for output in pipeline.add(valve, k * 10_000_000, 0.0)]
    return states[-1]


def test_the_observer_counts_the_covariance():
    """Inclination is a random walk, so that its variance goes with the square root of that of its samples."""
    place = at_rest(1.0).names.index('inclination/roll')
    exact, coarse_ = (at_rest(share) for share in (1.0, 256.0))
    assert exact.mean[-1, place] == pytest.approx(0.05, abs=NOISE)
    zero = next(item.zero_stddev for item in machine().all_channels if item.name.endswith('/base_roll')) ** 2
    ratio = (coarse_.covariance[place, place] - zero) / (exact.covariance[place, place] - zero)
    assert 4.0 < ratio < 256.0
