# SPDX-License-Identifier: Apache-2.0
"""The main job: make demo's command, with real processes over DDS, a real bag and a real report."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')

from mbse_ros.bags.series import read_payload, read_truth

SECONDS = 5         # of each lift: 500 messages of a topic, which every queue holds, however busy the computer is


def test_the_demo_lifts_records_and_agrees_with_itself(ros_domain, tmp_path) -> None:
    words = ['demo', '--payload', '80', '--duration', str(SECONDS), '-o', str(tmp_path)]
    done = subprocess.run([sys.executable, '-m', 'mbse_ros.cli', *words], capture_output=True, text=True, timeout=900,
                          env=os.environ.copy())
    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = tmp_path.iterdir()
    payload, truth = read_payload(folder / 'bag'), read_truth(folder / 'bag')
    assert len(payload.stamp_ns) == len(truth.stamp_ns) - 1 == 100 * SECONDS     # one a sensor period, none lost
    assert payload.sequence.tolist() == list(range(1, len(payload.sequence) + 1))
    assert abs(payload.mass[-1] - 80.0) < 0.8 and payload.lower[-1] < 80.0 < payload.upper[-1]
    assert done.stdout.count('identical in all') == 2
    ways = [line.split() for line in done.stdout.splitlines() if '(default)' in line or '(preset paper)' in line]
    joint, apart = (next(float(word) for word in words if word[0].isdigit()) for words in ways)
    assert abs(joint - 80.0) < 0.8 and abs(apart - 80.0) < 5.0 and joint != apart
    assert (folder / 'both_ways.png').stat().st_size > 10_000
    digger = read_payload(folder / 'excavator' / 'bag')
    assert digger.lower[-1] < 800.0 < digger.upper[-1] and abs(digger.mass[-1] - 800.0) < 50.0     # 2 % of full scale
    assert (folder / 'excavator' / 'report' / 'index.html').stat().st_size > 100_000
    page = (folder / 'report' / 'index.html').read_text()
    assert '80 kg' in page and (folder / 'report' / 'payload.png').stat().st_size > 10_000
