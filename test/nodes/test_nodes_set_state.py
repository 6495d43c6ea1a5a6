# SPDX-License-Identifier: Apache-2.0
"""The service ~/set_state of observer_node: what it sets is where the next state is; a refusal says why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from nodes_in_process import make  # noqa: F401
from nodes_support import ros

from mbse_ros.bags.messages import packed_record
from mbse_ros.nodes.observer_node import ObserverNode
from mbse_ros.simulation.crane import SimulatedCrane
from mbse_ros.srv import SetState
from mbse_ros.streams.interpolation import Interpolator


@pytest.fixture(scope='module', autouse=True)
def _ros() -> Iterator[None]:
    with ros():
        yield


def test_the_next_state_is_where_it_was_set(make: Any) -> None:     # noqa: F811
    node = make(ObserverNode, backend='vm', machine='patu655_lift')
    crane, interpolator = SimulatedCrane(node.machine, 100.0, 1), Interpolator(
        node.machine.channels, node.machine.commands)

    def states(count: int) -> Any:
        """The last one after so many frames."""
        for frame in (crane.frame() for _ in range(count)):
            for name, value in (*frame.commands.items(), *frame.samples.items()):
                for segment in interpolator.add(name, frame.stamp_ns, value):
                    node.on_record(packed_record(segment, node.machine.name, node.fingerprint))
        return node.sinks['state'].messages[-1]

    def answer(*words: Any) -> SetState.Response:
        """Of names, values, standard deviations."""
        return node.on_set_state(SetState.Request(**dict(zip(('names', 'values', 'stddev'), words))),
                                 SetState.Response())

    refused = answer(['position/lift'], [0.2])
    assert not refused.success and 'no state yet' in refused.message
    place = states(40).mean[0]
    for words, text in (((['position/lift'], []), '1 names, 0 values'), ((['position/lift'], [7.0]), 'position/lift'),
                        ((['position/lift'] * 2, [0.2, 0.2]), 'each name once'), ((['x'], [1.0]), 'position/lift')):
        refused = answer(*words)
        assert not refused.success and text in refused.message, refused.message
    done = answer(['position/lift'], [place + 0.002], [1e-5])
    assert done.success and done.message == 'set: position/lift'
    found = states(1)
    last = found.mean[len(found.mean) - len(found.names)]
    assert last > place + 0.001, (last, place)
