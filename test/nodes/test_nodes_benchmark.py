# SPDX-License-Identifier: Apache-2.0
"""`mbse benchmark graph`: the form of its JSON, nothing lost at 100 Hz, a publisher that is too slow, no figure."""

import json
import time

import pytest
from cli_support import refused

from mbse_ros.cli.benchmark import run_graph
from mbse_ros.nodes.measuring.publisher import published


def test_nothing_is_lost_at_100_Hz(ros_domain, tmp_path, capfd):
    """Not through the command line's entry point: rclpy's executor wants an stderr that is a file."""
    file = tmp_path / 'new' / 'g.json'
    run_graph('patu655_lift', [100], ['composed'], 1.0, file)
    row, = json.loads(file.read_text())['rows']
    assert list(row) == ['rate_hz', 'way', 'messages', 'lost', 'p50_ms', 'p99_ms', 'cpu_share',
                         'passthrough_cpu_share']
    assert (row['rate_hz'], row['way'], row['lost'], list(row['cpu_share'])) == (100, 'composed', 0, ['machine_nodes'])
    assert 0 < row['messages'] <= 100 and 0.0 < row['p50_ms'] <= row['p99_ms']
    assert row['cpu_share']['machine_nodes'] > 0.0 and row['passthrough_cpu_share'] > 0.0
    assert '100 Hz, one process' in capfd.readouterr().out


@pytest.mark.parametrize('pause, in_time', [(0.0, (1, 20)), (0.02, (0, 0))])
def test_a_publisher_that_cannot_keep_the_rate_says_so(pause, in_time, capsys):
    """Of 20 sets after the first 20, each of which takes twice the period, none is sent in time."""
    class Output:
        stamps = []

        def publish(self, cdr):
            time.sleep(pause)
            self.stamps.append(cdr[4:12])

    result = published([[(Output(), b'head', b'tail')]] * 40, 100.0, 20)
    assert result['due'] == 20 and in_time[0] <= result['sent'] <= in_time[1]
    assert len(set(Output.stamps)) == 40
    assert result['late_ms'] >= 150.0 or not pause       # after 20 sets, 0.2 s that are missing
    assert 'begin_ns' in json.loads(capsys.readouterr().out)


def test_a_rate_that_the_simulation_does_not_have_is_refused():
    assert '1000 Hz divided by a whole number' in refused('benchmark', 'graph', '--rates', '100,300')
