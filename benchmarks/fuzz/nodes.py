# SPDX-License-Identifier: Apache-2.0
"""Messages that no sound sender sends, to each node that subscribes to something, amid sound ones.

The nodes run in the worker's own process; what the middleware refuses to unpack does not reach them, as over DDS.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from mbse_ros.errors import MbseError

from .kind import Case, Kind, Wrong
from .traffic import Sent, changed, crane_records, crane_sensors, linkage_sensors

BEFORE, AMID = 4, 14        # sound instants before, and instants with mutated messages
LONG = 3_000                # characters of a line in a log
SENSORS = {'five_bar': ('encoder_1', 'encoder_2'), 'four_bar': ('crank_gyro',)}
UNSTAMPED = 'encoder_2'


@cache
def traffic(name: str) -> tuple[tuple[Sent, ...], ...]:
    """Sound messages of a node by instant."""
    records = crane_records if name in ('observer', 'payload', 'visualization', 'outputs') else None
    if records:
        wanted = {'observer': ('segment',), 'payload': ('state',)}.get(name, ('state', 'payload'))
        found = [tuple(sent for sent in instant if sent.topic in wanted) for instant in crane_records('patu655_lift')]
        if name == 'visualization':
            positions = [[s for s in instant if s.topic == 'sensors/position'] for instant in
                         crane_sensors('patu655_lift')]
            found = [(*one, *two) for one, two in zip(positions, found)]
        return tuple(found)
    if name == 'interpolation':
        return crane_sensors('patu655_lift')
    if name == 'excavator':
        return crane_sensors('zx200')
    if name == 'plant':
        return tuple(tuple(s for s in instant if s.topic == 'sensors/valve_command')
                     for instant in crane_sensors('patu655_lift'))
    if name == 'linkage':
        return linkage_sensors('five_bar', SENSORS['five_bar'], (UNSTAMPED,))
    return linkage_sensors('five_bar', SENSORS['five_bar'])


NAMES = ('interpolation', 'excavator', 'observer', 'payload', 'visualization', 'plant', 'linkage', 'smoother',
         'outputs')
MAIN = {'interpolation': 'segment', 'excavator': 'segment', 'observer': 'state', 'payload': 'payload',
        'visualization': 'markers', 'outputs': 'payload/pose', 'linkage': 'linkage_state', 'smoother': 'smoothed_state'}


class Messages(Kind):
    """A burst of mutated messages to one node; it must go on with the sound ones that follow."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._stack: ExitStack | None = None
        self._nodes: dict[str, Any] = {}

    def prepare(self) -> None:
        """All nodes and their traffic."""
        for name in NAMES:
            traffic(name)
            self._node(name)

    def make(self, random: Random) -> Case:
        """messages.json: the node, and [topic, hex, whether it is mutated] by instant."""
        name = random.choice(NAMES)
        instants, plan = traffic(name), []
        pool = [sent for instant in instants[:20] for sent in instant]
        for k, instant in enumerate(instants):
            plan += [(sent, False) for sent in instant]
            if BEFORE <= k < BEFORE + AMID and instant:
                plan += [(changed(random.choice(instant), random, pool), True)
                         for _ in range(random.choice([1, 2, 3, 8]))]
                if random.random() < 0.3:
                    del plan[-2]
        found = {'node': name, 'messages': [[sent.topic, sent.cdr.hex(), bad] for sent, bad in plan]}
        return {'messages.json': json.dumps(found).encode()}

    def run(self, case: Case) -> Counter[str]:
        """Give them, in their order."""
        given = json.loads(case['messages.json'])
        name, counts = given['node'], Counter[str]()
        node = self._node(name)
        self._reset(node)
        sink = node.sinks.get(MAIN.get(name, ''))
        late = len(given['messages']) * 9 // 10
        for k, (topic, cdr, bad) in enumerate(given['messages']):
            if sink and k == late:
                sink.messages.clear()
            before = node.warnings.total
            delivered = self._give(node, topic.replace('sensors/valve_command', 'valve_command')
                                   if name == 'plant' else topic, bytes.fromhex(cdr))
            if name == 'smoother' and node.stage.ready:
                node._publish_all(node.stage.solve())
            if bad:
                counts['taken' if delivered and node.warnings.total == before else
                       'refused' if delivered else 'not unpacked by the middleware'] += 1
        if name == 'plant':
            node.next_frame()
        if name == 'smoother':      # it is a lag behind
            node._publish_all(node.stage.flush())
        for line in node.warned:
            if len(line) > LONG or '\n' in line:
                raise Wrong(f'{name}: a line of {len(line)} characters: {line[:200]!r}')
        if sink and not sink.messages:
            raise Wrong(f'{name}: silent after sound messages; {node.warned[-3:]}')
        return counts

    def close(self) -> None:
        """End the nodes."""
        if self._stack is not None:
            self._stack.close()

    def _give(self, node: Any, topic: str, cdr: bytes) -> bool:
        """Whether the middleware has unpacked it."""
        from rclpy.serialization import deserialize_message
        if topic not in node.taken:     # nobody looks at the pictures yet, or never
            return False
        kind, callback, raw = node.taken[topic]
        if raw:
            callback(cdr)
            return True
        try:
            message = deserialize_message(cdr, kind)
        except Exception:       # whatever it raises: the node never sees it
            return False
        callback(message)
        return True

    def _reset(self, node: Any) -> None:
        node._inputs.clear()
        node.taken.clear()
        if node.forgets:
            node.stage.reset()
        node.connect()
        node.warned.clear()
        node.warnings._held.clear()
        for sink in node.sinks.values():
            sink.messages.clear()

    def _node(self, name: str) -> Any:
        """The node, made at its first use."""
        if self._stack is None:
            self._begin()
        if name not in self._nodes:
            try:
                self._nodes[name] = self._made(name)
            except (AssertionError, MbseError) as error:
                raise Wrong(f'{name} cannot be made: {error}') from error
        return self._nodes[name]

    def _begin(self) -> None:
        """rclpy, alone in its domain."""
        import rclpy
        from nodes_in_process import making
        os.environ.setdefault('ROS_DOMAIN_ID', '182')
        self._stack = ExitStack()
        rclpy.init()
        self._stack.callback(rclpy.shutdown)
        self._make = self._stack.enter_context(making())

    def _made(self, name: str) -> Any:
        from mbse_ros.nodes.interpolation_node import InterpolationNode
        from mbse_ros.nodes.linkage_node import LinkageNode
        from mbse_ros.nodes.observer_node import ObserverNode
        from mbse_ros.nodes.outputs_node import OutputsNode
        from mbse_ros.nodes.payload_node import PayloadNode
        from mbse_ros.nodes.plant_node import PlantNode
        from mbse_ros.nodes.smoother_node import SmootherNode
        from mbse_ros.nodes.visualization_node import VisualizationNode
        five = {'mechanism': 'five_bar', 'backend': 'vm', 'sensors': ' '.join(SENSORS['five_bar'])}
        kind, values = {
            'interpolation': (InterpolationNode, {}), 'excavator': (InterpolationNode, {'machine': 'zx200'}),
            'observer': (ObserverNode, {'backend': 'vm'}), 'payload': (PayloadNode, {'backend': 'vm'}),
            'visualization': (VisualizationNode, {}), 'plant': (PlantNode, {'backend': 'vm', 'cycle': 'topic'}),
            'linkage': (LinkageNode, {**five, 'unstamped': UNSTAMPED}), 'smoother': (SmootherNode, five),
            'outputs': (OutputsNode, {})}[name]
        node = self._make(kind, **values)
        node._disconnect()
        node.taken = {}
        node.input = lambda kind, topic, callback, qos, raw=False: node.taken.update({topic: (kind, callback, raw)})
        node.leave = lambda subscription: node.taken.pop('truth/joint_states', None)
        node.active = True
        return node
