# SPDX-License-Identifier: Apache-2.0
"""The state at the present, as the observer's node publishes it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from nodes_in_process import make, stamps  # noqa: F401
from nodes_support import MATCH, Peer, ros

from mbse_ros.bags.messages import packed_record
from mbse_ros.msg import HydraulicState
from mbse_ros.nodes import observer_node as _observer_node
from mbse_ros.nodes.messages.wire import to_ns
from mbse_ros.nodes.observer_node import ObserverNode
from mbse_ros.simulation.crane import SimulatedCrane
from mbse_ros.streams.interpolation import Interpolator

MS = 10 ** 6


@pytest.fixture(scope='module', autouse=True)
def _ros() -> Iterator[None]:
    with ros():
        yield


def test_a_state_of_now_while_samples_are_young(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:     # noqa: F811
    """At its rate by the wall, with the stamp of now; none before a state, none once the samples are too old."""
    now = SimpleNamespace(wall=0.0, stamp=0)
    monkeypatch.setattr(_observer_node, 'time', SimpleNamespace(monotonic=lambda: now.wall))
    node = make(ObserverNode, backend='vm', machine='patu655_lift', predict_rate=100.0, predict_for=0.05)
    node._now, sink = (lambda: now.stamp), node.sinks['state/predicted']
    assert node.tick() == pytest.approx(0.01) and not sink.messages
    crane, interpolator = SimulatedCrane(node.machine, 100.0, 1), Interpolator(
        node.machine.channels, node.machine.commands)
    frames = [crane.frame() for _ in range(40)]
    for frame in frames:
        for name, value in (*frame.commands.items(), *frame.samples.items()):
            for segment in interpolator.add(name, frame.stamp_ns, value):
                node.on_record(packed_record(segment, node.machine.name, node.fingerprint))
    last = stamps(node.sinks['state'])[-1]
    for k in range(1, 9):
        now.wall, now.stamp = 0.01 * k, last + 10 * k * MS
        assert 0.0 <= node.tick() <= 0.01 + 1e-9
        node.tick()     # too early: nothing
    assert stamps(sink) == [last + 10 * k * MS for k in range(1, 6)]
    first, far = sink.messages[0], sink.messages[-1]
    assert tuple(first.names) == node.stage.names and len(first.mean) == len(first.names)
    size = len(first.names)
    spread = [np.reshape(message.covariance, (size, size))[0, 0] for message in (first, far)]
    assert 0.0 < spread[0] < spread[1] and not first.channels
    node.stage.reset()
    now.wall, now.stamp = 1.0, last + 10 * MS
    assert node.tick() is not None and len(sink.messages) == 5


def test_the_graph_publishes_it_at_its_rate_and_it_is_of_now(tmp_path: Path) -> None:
    """Of a simulated machine, in one process with the other nodes: as many as asked for, each between two states."""
    parameters = tmp_path / 'predict.yaml'
    parameters.write_text('observer_node:\n  ros__parameters:\n    predict_rate: 50.0\n')
    words = ['up', 'machine', 'machine:=patu655_lift', 'payload:=80', f'params_file:={parameters}', 'duration:=120']
    peer = Peer(**{'state/predicted': HydraulicState, 'state': HydraulicState})
    graph = subprocess.Popen([sys.executable, '-m', 'mbse_ros.cli', *words], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    try:
        found = peer.heard['state/predicted']
        peer.until(lambda: len(found) >= 60, 3 * MATCH)
        periods = np.diff([to_ns(message.header.stamp) for message in found[10:]]) * 1e-9
        assert np.median(periods) == pytest.approx(0.02, rel=0.4)
        assert all(0 < message.step_ns <= 200 * MS and not message.channels for message in found)
        state = peer.heard['state'][-1]
        size, spread = len(state.names), [np.sqrt(message.covariance[0]) for message in (state, found[-1])]
        assert size == len(found[-1].names) and spread[1] < 5 * spread[0]
    finally:
        peer.close()
        graph.terminate()
        graph.wait(MATCH)


def test_none_by_default(make: Any) -> None:     # noqa: F811
    node = make(ObserverNode, backend='vm', machine='patu655_lift')
    assert node.tick() is None and 'state/predicted' not in node.sinks
