# SPDX-License-Identifier: Apache-2.0
"""Bad input to the running nodes: each kind is reported in the log, and the graph goes on without a hole."""

import re
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from nodes_support import Peer, joint_state, own_domain
from sensor_msgs.msg import FluidPressure, JointState

from mbse_ros.description.load import load_mechanism
from mbse_ros.description.model import fingerprint
from mbse_ros.msg import HydraulicState, PayloadEstimate, SensorSegment
from mbse_ros.nodes.graphs.graph import Graph, parse_arguments
from mbse_ros.nodes.graphs.machine_graph import MachineArguments, machine_graph
from mbse_ros.nodes.graphs.run_graph import RunningGraph

PERIOD = 10_000_000

class Bench:
    """The three processing nodes and a peer in the place of the machine, whose time runs as fast as it likes."""

    def __init__(self):
        self.log, self.now = [], 1_000 * PERIOD
        self.peer = Peer(segment=SensorSegment, state=HydraulicState, payload=PayloadEstimate)
        graph = machine_graph(parse_arguments({'simulate': 'false', 'composed': 'false'}, MachineArguments))
        wait = {'payload_node': 1, 'observer_node': 2, 'interpolation_node': 2}
        processes = tuple(replace(p, parameters={**p.parameters, 'wait_subscribers': wait[p.name]} | (
            {'sensor_reliability': 'reliable'} if p.name == 'interpolation_node' else {}))
            for p in graph.processes if p.name in wait)
        self.graph = RunningGraph(Graph(processes), self.log.append)
        self.graph.start()
        self.until(lambda: self.peer.node.count_subscribers('sensors/position') >= 1)

    def play(self, periods, **values):
        """Go on for some sensor periods; returns the segments, after all of them came through."""
        first = len(self.peer.heard['segment'])
        for _ in range(periods):
            self.now += PERIOD
            self.peer.samples(self.now, **values)
        self.through()
        return self.peer.heard['segment'][first:]

    def through(self):
        """Wait until the newest samples have come out as state and payload."""
        self.until(lambda: self.peer.heard['segment'] and self.end(self.peer.heard['segment'][-1]) == self.now)
        newest = self.peer.heard['segment'][-1].sequence
        self.until(lambda: all(self.peer.heard[topic] and self.peer.heard[topic][-1].sequence == newest
                               for topic in ('state', 'payload')))

    def until(self, condition):
        """Listen until the condition holds; a failure shows the log of the nodes."""
        try:
            self.peer.until(condition)
        except AssertionError:
            raise AssertionError('\n'.join(['waited in vain', *self.log])) from None

    @staticmethod
    def end(segment):
        """Instant of a segment's last step, ns."""
        return segment.start_ns + segment.steps * segment.step_ns

    def warned(self, pattern, since=0):
        """Whether a warning matches."""
        return any(re.search(pattern, line) and 'WARN' in line for line in self.log[since:])


@pytest.fixture(scope='module')
def bench():
    with own_domain():
        bench = Bench()
        try:
            bench.play(5)
            yield bench
        finally:
            bench.graph.stop()
            bench.peer.close()
    assert bench.graph.status == 0


def assert_no_hole(bench, segments, restarts=0):
    """The nodes go on: segments in sequence, as many restarts as expected, all of them estimated."""
    sequence = [s.sequence for s in segments]
    assert sequence == list(range(sequence[0], sequence[0] + len(sequence)))
    assert sum(s.restart for s in segments) == restarts
    assert bench.peer.heard['payload'][-1].sequence == sequence[-1]
    assert [m.sequence for m in bench.peer.heard['state']][-len(sequence):] == sequence


@pytest.mark.parametrize('topic, names, values, late, warning', [
    ('position', ['lift'], [float('inf')], 0, r'position/lift.*inf.*finite'),
    ('position', ['lift_1'], [0.1], 0, r'sensors/position: lift_1 .*did you mean lift\?'),
    ('position', ['lift'], [0.1, 0.2], 0, r'sensors/position.*2 positions.*as many positions as names'),
    ('valve_command', ['lift_valve', 'tilt_valve'], [0.1], 0, r'sensors/valve_command.*1 positions.*as many positions'),
    ('valve_command', ['lift_valve'], [float('nan')], 0, r'command/lift_valve.*nan.*finite'),
    ('position', ['lift'], [0.1], 1, r'position/lift at \d+ ns: got 0.1.*after'),
    ('valve_command', ['lift_valve'], [9.0], 40, r'command/lift_valve at \d+ ns: got 9.0.*after'),
], ids=['infinite', 'misspelt cylinder', 'too many values', 'too few values', 'NaN command', 'repeated stamp',
        'backward stamp'])
def test_a_bad_message_is_dropped(bench, topic, names, values, late, warning):
    since = len(bench.log)
    bench.play(3)
    bench.peer.publish(JointState, f'sensors/{topic}', joint_state(bench.now + (1 - late) * PERIOD, 'm', names, values))
    segments = bench.play(5)
    assert_no_hole(bench, segments)
    assert np.isfinite(segments[-1].values).all() and not np.any(segments[-1].command_values)
    bench.until(lambda: bench.warned(warning, since))


def test_nan_is_a_missing_sample(bench):
    bench.play(3)
    missing = bench.play(1, rod=float('nan'))
    assert np.isnan(np.array(missing[-1].values).reshape(-1, 3)[:, 2]).all()
    assert bench.peer.heard['state'][-1].status == HydraulicState.COASTING
    assert bench.peer.heard['state'][-1].reason == 'missing: pressure/lift_rod'
    assert bench.peer.heard['payload'][-1].status == PayloadEstimate.NO_DATA
    segments = bench.play(40)
    assert_no_hole(bench, segments)
    assert bench.peer.heard['state'][-1].status == HydraulicState.OK


def test_a_gap_of_two_seconds_restarts(bench):
    bench.play(3)
    bench.now += 200 * PERIOD
    segments = bench.play(5)
    assert_no_hole(bench, segments, restarts=1)
    assert segments[0].start_ns >= bench.now - 5 * PERIOD


def test_a_bad_segment_does_not_stop_the_observer(bench):
    since = len(bench.log)
    bad = SensorSegment(sequence=10 ** 6, steps=10, step_ns=1_000_000, channels=['position/lift'])
    strange = SensorSegment(sequence=10 ** 6, start_ns=bench.now, steps=1, step_ns=1, restart=True, channels=['speed'],
                            values=[1.0], repeats=[1.0])
    strange.header.stamp.sec = 10
    odd = HydraulicState(sequence=5, steps=1, names=['position/lift'])
    for message in (bad, strange, odd):
        message.header.frame_id, message.machine = 'patu655_lift', fingerprint(load_mechanism('patu655_lift'))
    for message in (bad, strange):
        bench.peer.publish(SensorSegment, 'segment', message)
    bench.peer.publish(HydraulicState, 'state', odd, readers=2)
    bench.until(lambda: bench.warned('payload_node.*state.mean', since))
    bench.until(lambda: bench.warned('segment.values', since) and bench.warned('segment dropped.*speed', since))
    bench.play(40)
    assert bench.peer.heard['state'][-1].status == HydraulicState.OK


def test_a_sensor_that_dies_is_reported(bench):
    since = len(bench.log)
    for _ in range(80):
        bench.now += PERIOD
        bench.peer.publish(JointState, 'sensors/valve_command', joint_state(bench.now, 'm', ['lift_valve'], [0.0]))
        bench.peer.publish(JointState, 'sensors/position', joint_state(bench.now, 'm', ['lift'], [0.2675]))
        message = FluidPressure(fluid_pressure=3e6)
        message.header.stamp = joint_state(bench.now, 'm', [], []).header.stamp
        bench.peer.publish(FluidPressure, 'sensors/pressure/lift_piston', message)
    bench.through()
    assert bench.peer.heard['state'][-1].status == HydraulicState.COASTING
    bench.until(lambda: bench.warned('silent, ignored until it sends again: .*pressure/lift_rod', since))
    if bench.warned('silent, ignored until it sends again: .*command/lift_valve', since):      # a burst before it
        bench.until(lambda: any('back: command/lift_valve' in entry for entry in bench.log[since:]))


def test_a_dead_sensor_comes_back(bench):
    assert_no_hole(bench, bench.play(40))
    assert bench.peer.heard['state'][-1].status == HydraulicState.OK
