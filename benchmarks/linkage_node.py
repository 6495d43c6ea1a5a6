# SPDX-License-Identifier: Apache-2.0
"""The linkage's graph for some minutes: 200 Hz, filters changed live, nothing lost, latency of each estimate.

    tools/environment.sh python benchmarks/linkage_node.py [--seconds 300]

The latency is from the stamp of a sample, at which the simulated mechanism sends it, to the arrival of its estimate in
this process; beside it is that of the samples themselves, sent to this process alike: what the plant, the transport
and the machine take without the node. Messages are unpacked when all is over.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np
import rclpy
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

from mbse_ros.msg import LinkageState
from mbse_ros.nodes.base.middleware import _Executor as Executor
from mbse_ros.nodes.graphs.graph import Graph
from mbse_ros.nodes.graphs.linkage_graph import LinkageArguments, linkage_graph
from mbse_ros.nodes.graphs.run_graph import RunningGraph, cpu_seconds
from mbse_ros.nodes.messages.wire import stamp_of, to_ns

PREPARED = ('DEKF', 'errorEKF_FE', 'errorEKF_EJ')
FILTERS = (*PREPARED, 'UKF')        # compiled in the background when it is asked for
LATE = 5.0          # ms


class Listener:
    """Keeps the stamps of samples and estimates, and when the estimates came."""

    def __init__(self) -> None:
        self.node = rclpy.create_node('listener')
        self.sensed: list[tuple[int, bytes]] = []
        self.published: list[tuple[int, bytes]] = []
        qos = QoSProfile(depth=5000)
        self.node.create_subscription(JointState, 'sensors/joint_states', self.on_sensor, qos, raw=True)
        self.node.create_subscription(LinkageState, 'linkage_state', self.on_state, qos, raw=True)
        self.client = self.node.create_client(SetParameters, 'linkage_node/set_parameters')
        self.refused: list[str] = []

    def on_sensor(self, cdr: bytes) -> None:
        """A sample."""
        self.sensed.append((time.time_ns(), cdr))

    def on_state(self, cdr: bytes) -> None:
        """An estimate."""
        self.published.append((time.time_ns(), cdr))

    def switch(self, estimator: str) -> None:
        """Ask for another filter."""
        value = Parameter('estimator', value=estimator).to_parameter_msg()
        future = self.client.call_async(SetParameters.Request(parameters=[value]))
        future.add_done_callback(
            lambda f: self.refused.extend(r.reason for r in f.result().results if not r.successful))


def main() -> None:
    """Run, switch, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument('--seconds', type=float, default=300.0)
    seconds = parser.parse_args().seconds
    rclpy.init()
    listener, executor = Listener(), Executor()
    executor.add_node(listener.node)
    graph = linkage_graph(LinkageArguments(prepared=' '.join(PREPARED)))
    running = RunningGraph(Graph(tuple(replace(p, parameters={
        **p.parameters, 'wait_subscribers': p.parameters['wait_subscribers'] + 1}) for p in graph.processes)))
    running.start()
    try:
        _watch(listener, executor, running, seconds)
        shares = {name: cpu_seconds(child.pid) / seconds for name, child in running.children.items()}
        running.children['linkage_plant_node'].terminate()
        _spin(executor, 5.0)        # what is on its way
    finally:
        running.stop()
    _print(listener)
    print('share of a core: ' + ', '.join(f'{name} {100 * share:.0f} %' for name, share in shares.items()))


def _spin(executor: Executor, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        executor.spin_once(timeout_sec=0.05)


def _watch(listener: Listener, executor: Executor, running: RunningGraph, seconds: float) -> None:
    """Until so long after the first estimate; another filter ten times."""
    switches, begin = 0, None
    while begin is None or time.monotonic() - begin < seconds:
        _spin(executor, 0.2)
        running.step()
        if begin is None and listener.published:
            begin = time.monotonic()
        if begin is not None and time.monotonic() - begin > (switches + 1) * seconds / 11:
            listener.switch(FILTERS[switches % len(FILTERS)])
            switches += 1


def _print(listener: Listener) -> None:
    published = [(now, deserialize_message(cdr, LinkageState)) for now, cdr in listener.published]
    sensed = [(now, stamp_of(cdr)) for now, cdr in listener.sensed]
    stamps = [to_ns(message.header.stamp) for _, message in published]
    lost = {stamp for _, stamp in sensed[:-5]} - set(stamps)
    used = [message.estimator for _, message in published]
    changes = sum(a != b for a, b in zip(used, used[1:]))
    print(f'{len(sensed)} samples heard, {len(stamps)} estimates, {len(lost)} samples without an estimate, '
          f'{sum(np.diff([item.sequence for _, item in published]) != 1)} holes; {changes} changes of the filter, '
          f'{len(listener.refused)} refused {listener.refused}')
    latency = 1e-6 * np.array([now - stamp for (now, _), stamp in zip(published, stamps)])
    print('latency of estimates, ms: ' + _percentiles(latency))
    print('latency of samples, ms:   ' + _percentiles(1e-6 * np.array([now - stamp for now, stamp in sensed])))
    late = np.flatnonzero(latency > LATE)
    spells = np.split(late, np.flatnonzero(np.diff(late) > 20) + 1) if len(late) else []
    print(f'estimates later than {LATE:g} ms: {len(late)} in {len(spells)} spells' + ''.join(
        f'\n  at {(stamps[spell[0]] - stamps[0]) * 1e-9:7.2f} s: {len(spell)}, largest {latency[spell].max():.1f} ms'
        for spell in spells[:20]))
    print(f'not OK: {sum(message.status != LinkageState.OK for _, message in published)} estimates')


def _percentiles(values: np.ndarray) -> str:
    return ', '.join(f'p{p:g} {np.percentile(values, p):.2f}' for p in (50, 90, 99, 99.9)
                     ) + f', largest {values.max():.1f}'


if __name__ == '__main__':
    main()
