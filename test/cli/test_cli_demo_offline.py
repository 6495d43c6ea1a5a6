# SPDX-License-Identifier: Apache-2.0
"""``mbse demo --offline``: the demo without ROS 2, and what the demo says where that is missing."""

import json
import sys

import pytest
from cli_support import mbse
from source_tree import ROOT


@pytest.fixture(autouse=True)
def no_ros(monkeypatch):
    monkeypatch.setitem(sys.modules, 'rclpy', None)


def test_the_help_says_what_it_shows():
    for text in (mbse('demo', '--help').out, (ROOT / 'Makefile').read_text().split('make demo  ')[1].split('\n')[0]):
        assert all(word in text for word in ('crane', 'excavator', 'measured lift', 'linkage'))


@pytest.mark.usefixtures('few_frames')
def test_the_offline_demo_needs_no_ros(tmp_path):
    done = mbse('demo', '--offline', '--payload', '80', '-o', tmp_path)
    assert done.status == 0, done
    (folder,) = tmp_path.iterdir()
    payload = json.loads((folder / 'estimate.json').read_text())['payload']
    lower, upper = payload['interval']
    assert lower < 80.0 < upper and abs(payload['mass'] - 80.0) < 2.0
    assert '80 kg' in done.out and f'payload {payload["mass"]:.2f} kg' in done.out
    assert (folder / 'bag' / 'metadata.yaml').is_file() and (folder / 'mechanism' / 'motion.csv').is_file()
    assert (folder / 'report' / 'index.html').stat().st_size > 100_000


def test_the_live_demo_without_ros_names_the_offline_one(tmp_path):
    done = mbse('demo', '-o', tmp_path)
    assert done.status == 2 and done.err.count('\n') == 1 and not list(tmp_path.iterdir())
    assert 'rclpy' in done.err and 'mbse demo --offline' in done.err
