# SPDX-License-Identifier: Apache-2.0
"""``mbse demo --offline``: the demo without ROS 2, and what the demo says where that is missing."""

import json
import subprocess
import sys

import pytest
from cli_support import mbse
from source_tree import ROOT

MAIN = "import sys; sys.modules['rclpy'] = None; from mbse_ros.cli import main; main()"
LIMIT = 300.0       # s, on a machine with much else to do


def demo(*arguments):
    return subprocess.run([sys.executable, '-c', MAIN, 'demo', *arguments], cwd=ROOT, capture_output=True, text=True,
                          timeout=LIMIT)


def test_the_help_says_what_it_shows():
    for text in (demo('--help').stdout, (ROOT / 'Makefile').read_text().split('make demo  ')[1].split('\n')[0]):
        assert all(word in text for word in ('crane', 'excavator', 'measured lift', 'linkage'))


@pytest.mark.usefixtures('few_frames')
def test_the_offline_demo_needs_no_ros(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, 'rclpy', None)
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
    done = demo('-o', str(tmp_path))
    assert done.returncode == 2 and done.stderr.count('\n') == 1 and not list(tmp_path.iterdir())
    assert 'rclpy' in done.stderr and 'mbse demo --offline' in done.stderr
