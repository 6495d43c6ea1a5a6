# SPDX-License-Identifier: Apache-2.0
"""The compiled estimator: states and masses of the other nodes, over DDS and message by message; what it drops, counts
and refuses; any bytes."""

import ctypes
import json
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
import small_arm

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from nodes_support import Peer, ros
from source_tree import ROOT
from std_srvs.srv import Trigger

from mbse_ros.bags.channel_samples import SensorFields
from mbse_ros.bags.messages import record_of
from mbse_ros.bags.topics import JOINT_STATE, PAYLOAD, STATE, TopicMap
from mbse_ros.compiled.compiler import have_compiler
from mbse_ros.embedded.tables import EstimatorSetup
from mbse_ros.errors import SettingError
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.machine import load_machine
from mbse_ros.msg import HydraulicState, PayloadEstimate
from mbse_ros.nodes.estimator_node import EstimatorNode
from mbse_ros.nodes.graphs.machine_graph import MachineArguments, machine_graph, sensor_topics
from mbse_ros.nodes.messages.wire import message_class, packed, unpacked
from mbse_ros.nodes.native.library import COUNTS, Waits, check_compiled, compiled_estimator, input_topics
from mbse_ros.nodes.native.loop import EstimatorLoop, RosCalls
from mbse_ros.payload.mass import PayloadSettings
from mbse_ros.simulation.crane import CraneSettings, SimulatedCrane, cycle_by_name, plant_of
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.streams.records import PayloadEstimate as PayloadRecord
from mbse_ros.streams.records import StateEstimate

pytestmark = pytest.mark.skipif(not have_compiler(), reason='no C compiler')
RATE, BEGIN, PERIOD = 100.0, 10**9, 10_000_000
CLOSE = 1e-9        # relative to a value, its standard deviation or the range of the payload


@cache
def lift():
    return load_machine('patu655_lift')


@cache
def frames(count=900):
    """Samples and commands of a random cycle, with samples that are missing or far off."""
    machine = lift()
    crane = SimulatedCrane(machine, 200.0, 1, cycle_by_name('random', machine, 1), CraneSettings(rate=RATE),
                           plant=plant_of(machine))
    found = []
    for k, frame in enumerate(crane.advance((count - 1) * PERIOD)):
        samples = dict(frame.samples)
        if k == 300:
            samples['pressure/lift_rod'] = np.nan
        if 600 < k < 640:
            samples['pressure/lift_rod'] += 3e6
        found.append((BEGIN + frame.stamp_ns, samples | frame.commands))
    return found


def messages(stamp, samples):
    """Bytes of the topics of one instant."""
    machine = lift()
    kinds = sensor_topics(machine)
    return {topic: packed(kinds[topic], stamp, machine.name, values)
            for topic, values in SensorFields(machine.channels, machine.valves).spread(samples).items()}


class Fed:
    """The library without ROS: what it publishes comes here."""

    def __init__(self, of=None):
        of = of or EstimatorSetup(lift(), ObserverSettings(), PayloadSettings(), RATE)
        self.out = {1: [], 2: []}
        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t), ctypes.c_void_p)
        self._publish = kind(lambda where, bytes_, _: self.out[where].append(
            ctypes.string_at(bytes_[0], bytes_[1])) or 0)
        calls = RosCalls(0, ctypes.cast(self._publish, ctypes.c_void_p).value, 0, 0)
        self.places = {item.topic: k for k, item in enumerate(input_topics(of.machine))}
        self.loop = EstimatorLoop(compiled_estimator(of, Waits(0.05, 0.5)), calls, [0] * len(self.places), 1, 2)

    def take(self, stamp, samples, without=()):
        for topic, cdr in messages(stamp, samples).items():
            if topic not in without:
                self.loop.take(self.places[topic], cdr)

    def counts(self):
        found = []
        self.loop.look(lambda _: None)
        self.loop.take(0, b'')      # answers
        self.loop.look(lambda look: found.append(dict(zip(COUNTS, look.count))))
        return found[0]

    def states(self):
        return [record_of(StateEstimate, unpacked('state', STATE, cdr)) for cdr in self.out[1]]

    def payloads(self):
        return [record_of(PayloadRecord, unpacked('payload', PAYLOAD, cdr)) for cdr in self.out[2]]


@pytest.fixture
def fed():
    found = Fed()
    yield found
    found.loop.close()


def close(got, expected, scale):
    return np.allclose(got, expected, rtol=CLOSE, atol=CLOSE * np.max(scale), equal_nan=True)


def test_states_and_masses_are_those_of_the_pipeline_through_faults_too(fed):
    pipeline, expected = Pipeline(lift()), []
    for stamp, samples in frames():
        for channel, value in samples.items():
            expected += pipeline.add(channel, stamp, value)
        fed.take(stamp, samples)
    low, high = lift().payload_data.limits
    assert len(fed.out[1]) == len(fed.out[2]) == len(expected) == len(frames()) - 1
    for got, mass, output in zip(fed.states(), fed.payloads(), expected):
        state, payload = output.state, output.payload
        stddev = np.sqrt(np.diag(state.covariance))
        for name in ('stamp_ns', 'sequence', 'restart', 'status', 'faults', 'names', 'channels', 'nis_dof'):
            assert getattr(got, name) == getattr(state, name), (state.stamp_ns, name)
        assert np.all(np.abs(got.mean[-1] - state.mean[-1]) <= CLOSE * stddev)
        assert close(got.covariance / np.outer(stddev, stddev), state.covariance / np.outer(stddev, stddev), 1.0)
        assert close(got.nis, state.nis, 1.0) and np.array_equal(got.measured, state.measured, equal_nan=True)
        assert close(got.innovation / state.innovation_stddev, state.innovation / state.innovation_stddev, 1.0)
        for name in ('stamp_ns', 'sequence', 'status', 'faults', 'samples'):
            assert getattr(mass, name) == getattr(payload, name), (payload.stamp_ns, name)
        for name in ('mass', 'stddev', 'lower', 'upper', 'raw', 'low_passed'):
            assert close(getattr(mass, name), getattr(payload, name), high - low), (payload.stamp_ns, name)
        assert bool(got.reason) == bool(state.reason) and bool(mass.reason) == bool(payload.reason)
        for words in state.faults.words:
            assert words not in ('missing', 'rejected') or f'{words}: pressure/lift_rod' in got.reason
    assert {payload.status.name for payload in fed.payloads()} >= {'UPDATING', 'TOO_SLOW', 'NO_DATA', 'IMPLAUSIBLE'}


def test_an_arm_whose_positions_and_efforts_are_in_one_message(tmp_path):
    (tmp_path / 'small_arm.yaml').write_text(small_arm.TEXT)
    machine, settings = load_machine(tmp_path / 'small_arm.yaml'), ObserverSettings(force_error=0.0, pressure_error=0.0)
    log, period = small_arm.log(6.0, 3.0), 8_000_000        # 125 Hz
    of = EstimatorSetup(machine, settings, PayloadSettings(), 125.0)
    fed, pipeline, expected = Fed(of), Pipeline(machine, observer=settings), []
    for k in range(750):
        samples = {channel: float(values[k]) for channel, (_, values) in log.items()}
        for channel, value in samples.items():
            expected += pipeline.add(channel, BEGIN + k * period, value)
        fields = SensorFields(machine.channels, ()).spread(samples)['sensors/position']
        fed.loop.take(0, packed(JOINT_STATE, BEGIN + k * period, machine.name, fields))
    assert len(expected) == len(fed.out[2]) == 749
    known = 0
    for got, output in zip(fed.payloads(), expected):
        assert (got.status, got.faults) == (output.payload.status, output.payload.faults)
        known += output.payload.stddev < 1.0        # the first masses are mostly rounding: see compared_ticks
        assert known <= 10 or close([got.mass, got.stddev], [output.payload.mass, output.payload.stddev], 5.0)
    assert known > 400
    assert fed.payloads()[-1].lower < 3.0 < fed.payloads()[-1].upper
    fed.loop.close()


def test_what_is_not_as_it_should_be_is_dropped_and_counted(fed):
    own = frames()[:60]
    for k, (stamp, samples) in enumerate(own):
        if k == 20:
            continue                                                    # an instant without any sample
        fed.take(stamp, samples, ('sensors/pressure/lift_rod',) if k == 30 else ())
        if k == 40:
            fed.take(stamp + PERIOD // 3, samples)                      # between the instants
        if k == 50:
            fed.take(stamp, samples)                                    # again
    counts, topics = fed.counts(), len(fed.places)
    assert counts['instants without a sample'] == 1 and counts['dropped, not at the rate'] == 1
    assert counts['dropped, repeated or backward'] == topics and counts['dropped, unreadable'] == 1    # b'' of counts()
    states = {state.stamp_ns: state for state in fed.states()}
    assert own[30][0] in states and 'missing: pressure/lift_rod' in states[own[30][0]].reason
    assert own[21][0] not in states and states[own[22][0]].restart      # two samples start it again
    assert counts['published'] == len(states) == len(own) - 3


def test_a_clock_that_goes_back_starts_all_again(fed):
    for _ in range(2):
        for stamp, samples in frames()[:40]:
            fed.take(stamp, samples)
    assert fed.counts()['clock went back'] == 1
    first, second = fed.states()[:30], fed.states()[-30:]
    assert np.array_equal(first[-1].names, second[-1].names) and second[-1].stamp_ns == frames()[39][0]
    assert abs(second[-1].mean[-1] - fed.states()[38].mean[-1]).max() <= 1e-3 * abs(second[-1].mean[-1]).max()


def test_samples_that_come_after_their_tick_change_nothing_and_are_counted():
    """A topic falls silent, is given up, and then sends all that waited: its ticks were without it."""
    own, late, given_up, again = frames()[:150], 'sensors/pressure/lift_rod', 30, 110
    waited, never = Fed(), Fed()
    for k, (stamp, samples) in enumerate(own):
        if k == again:
            for before, earlier in own[given_up:k]:
                waited.loop.take(waited.places[late], messages(before, earlier)[late])
        for of in (waited, never):
            of.take(stamp, samples, (late,) if given_up <= k < again else ())
    counts, ticked = waited.counts(), again - given_up
    assert counts['dropped, repeated or backward'] == ticked and not counts['dropped, not at the rate']
    assert len(waited.out[1]) == len(own) - 1 and waited.out[1][:again - 1] == never.out[1][:again - 1]
    # a sample counts where the one before it has come too
    assert ['missing: pressure/lift_rod' in state.reason for state in waited.states()].count(True) == ticked + 1
    for of in (waited, never):
        of.loop.close()


def test_commands_between_ticks_are_counted(fed):
    """From the first tick on, and not those that are a whole number of periods old."""
    command = fed.places[TopicMap().command]
    for k, (stamp, samples) in enumerate(frames()[:60]):
        fed.take(stamp, samples, (TopicMap().command,))
        if k % 3 == 0:
            off = PERIOD // 4 if 30 <= k < 45 else -PERIOD // 4 if k == 0 else 0
            fed.loop.take(command, messages(stamp + off, samples)[TopicMap().command])
    assert fed.counts()['commands between ticks'] == 5


def test_any_bytes_are_read_or_refused(fed):
    """Each message cut off anywhere, or with any of its bytes another: no crash, and nothing is read beyond its end."""
    random = np.random.default_rng(1)
    for stamp, samples in frames()[:3]:
        for topic, cdr in messages(stamp, samples).items():
            for length in range(len(cdr)):
                fed.loop.take(fed.places[topic], cdr[:length])
            for _ in range(300):
                wrong = bytearray(cdr)
                wrong[random.integers(len(wrong))] = random.integers(256)
                fed.loop.take(fed.places[topic], bytes(wrong))
    assert fed.counts()['dropped, unreadable'] > 300


def test_what_it_does_not_do_is_refused():
    with pytest.raises(SettingError, match='joint'):
        check_compiled(EstimatorSetup(lift(), ObserverSettings(weighing='apart'), PayloadSettings()))
    with pytest.raises(SettingError, match='predict_rate'):
        machine_graph(MachineArguments(compiled=True, predict_rate=50.0))
    with pytest.raises(SettingError, match='preset'):
        machine_graph(MachineArguments(compiled=True, preset='paper'))
    names = [process.name for process in machine_graph(MachineArguments(compiled=True)).processes]
    assert names == ['estimator_node', 'visualization_node', 'plant_node']


def test_a_bag_at_four_times_its_speed_gives_the_same_masses(tmp_path):
    """By both graphs as processes; what is absent or differs would have to be counted in the diagnostics."""
    file = tmp_path / 'replays.json'
    done = subprocess.run([sys.executable, str(ROOT / 'benchmarks' / 'replays.py'), '--rates', '4', '--seconds', '4',
                           '--busy', '0', '--json', str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(file.read_text())['rows']
    assert [(row['way'], row['expected']) for row in rows] == [('composed', 399), ('compiled', 399)]
    assert all(row['counted'] or not row['absent'] + row['differ'] for row in rows)


def test_over_dds_the_masses_are_those_of_the_pipeline():
    own, kinds = frames()[:250], sensor_topics(lift())
    pipeline, expected = Pipeline(lift()), []
    for stamp, samples in own:
        for channel, value in samples.items():
            expected += pipeline.add(channel, stamp, value)
    with ros():
        peer, node = Peer(state=HydraulicState, payload=PayloadEstimate), EstimatorNode()
        try:
            assert node.trigger_configure() == node.trigger_activate()
            outputs = {topic: peer.node.create_publisher(message_class(kinds[topic]), topic, 1000) for topic in kinds}
            peer.until(lambda: all(output.get_subscription_count() for output in outputs.values()))
            peer.until(lambda: all(node.count_subscribers(topic) for topic in peer.heard))
            peer.until(lambda: all(output.get_subscription_count() for output in (node._state, node._payload)))
            for stamp, samples in own:
                for topic, cdr in messages(stamp, samples).items():
                    outputs[topic].publish(cdr)
                peer.step()
            peer.until(lambda: all(len(heard) >= len(expected) for heard in peer.heard.values()))
            for got, output in zip(peer.heard['payload'], expected):
                assert got.status == output.payload.status and got.faults == output.payload.faults
                assert close(got.mass, output.payload.mass, 1.0)
            peer.also = lambda: node.on_reset(Trigger.Request(), Trigger.Response())
            peer.step()
            node.trigger_deactivate()
            assert not node.on_reset(Trigger.Request(), Trigger.Response()).success
        finally:
            node.destroy_node()
            peer.close()
