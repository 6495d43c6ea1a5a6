# SPDX-License-Identifier: Apache-2.0
"""Parameters of the nodes at, near and beyond the ends of their ranges: at the start, and through the services."""

from __future__ import annotations

import json
import math
from collections import Counter
from contextlib import contextmanager
from dataclasses import Field, fields
from functools import cache
from random import Random
from typing import Any

from mbse_ros.errors import MbseError
from mbse_ros.nodes.graphs.catalogue import NODES

from .bags import McapBag
from .kind import Case, Wrong
from .nodes import MAIN, Messages, traffic
from .raw import WORDS

LIVE = {'interpolation': 'interpolation_node', 'observer': 'observer_node', 'payload': 'payload_node',
        'visualization': 'visualization_node', 'linkage': 'linkage_node'}
WAITS = {'wait_subscribers': 0, 'wait_time': 0.0, 'autostart': False, 'backend': 'vm'}     # else it waits, as it should
TYPES = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]      # of rcl_interfaces/msg/ParameterType
STRANGE = [77, 255]                         # none of them


def value_of(item: Field, random: Random) -> Any:
    """A value for a setting: of its range, at an end, a little or far beyond, of another type."""
    meta, kind = item.metadata, type(item.default)
    if random.random() < 0.1:
        return random.choice([True, 3, 2.5, 'word', '', [1, 2], ['a'], [0.5], math.nan, -1, 2 ** 63 - 1, -2 ** 63])
    if kind is bool:
        return random.random() < 0.5
    if kind is str:
        words = [*meta['choices'], *filter(lambda word: '\x00' not in word, WORDS), item.default + ' x', 'zx200',
                 'five_bar']
        return random.choice([random.choice(words), item.default])
    low, high = meta['low'], meta['high']
    ends = [end for end in (low, high) if end is not None]
    beyond = [math.nextafter(end, side) for end in ends for side in (-math.inf, math.inf)]
    inside = [random.uniform(low, high), low + (high - low) * random.random() ** 12] if len(ends) == 2 else []
    value = random.choice([*ends * 3, *beyond, *inside * 3, 0.0, -1.0, 1e300, -1e300, 5e-324, math.inf, math.nan,
                           2.0 ** 40])
    if kind is int and math.isfinite(value):
        return max(-2 ** 63, min(2 ** 63 - 1, int(value)))
    return value


class LiveParameters(Messages):
    """Changes of a running node's parameters through its services; it must go on with them."""

    def prepare(self) -> None:
        """The nodes that can be tuned."""
        for name in LIVE:
            traffic(name)
            self._node(name)

    def make(self, random: Random) -> Case:
        """parameters.json: the node and calls, each a list of [name, type, value], and whether they go together."""
        name, calls = random.choice([*LIVE]), []
        entry = NODES[LIVE[name]]
        groups = [*entry.fixed] if random.random() < 0.1 else [entry.tuned]
        items = [item for group in groups for item in fields(group)]
        for _ in range(6):
            some = random.sample(items, random.choice([1, 1, 1, 2, 4]) if len(items) > 3 else 1)
            values = [[item.name if random.random() < 0.98 else random.choice(['', 'x', 'use_sim_time']),
                       random.choice(TYPES + STRANGE) if random.random() < 0.03 else None, value_of(item, random)]
                      for item in some]
            calls.append([values, random.random() < 0.5])
        return {'parameters.json': json.dumps({'node': name, 'calls': calls}).encode()}

    def run(self, case: Case) -> Counter[str]:
        """Call the services, and give sound messages; then back to the parameters as they were."""
        from rcl_interfaces.srv import SetParameters, SetParametersAtomically
        given, counts = json.loads(case['parameters.json']), Counter[str]()
        name = given['node']
        node = self._node(name)
        self._reset(node)
        services = {service.srv_name.rpartition('/')[2]: service.callback for service in node.services}
        for values, together in given['calls']:
            messages = [_message(*value) for value in values]
            if together:
                answer = services['set_parameters_atomically'](
                    SetParametersAtomically.Request(parameters=messages), SetParametersAtomically.Response())
                results = [answer.result] * len(messages)
            else:
                answer = services['set_parameters'](SetParameters.Request(parameters=messages),
                                                    SetParameters.Response())
                results = answer.results
            for result in results:
                counts['taken' if result.successful else 'refused'] += 1
                if not result.successful and not result.reason:
                    raise Wrong(f'{name}: refused without a reason: {values}')
            for sent in (sent for instant in traffic(name)[:6] for sent in instant):
                self._give(node, sent.topic, sent.cdr)
            self._reset(node)
        self._restore(node)
        self._reset(node)
        for sent in (sent for instant in traffic(name) for sent in instant):
            self._give(node, sent.topic, sent.cdr)
        if not node.sinks[MAIN[name]].messages:
            raise Wrong(f'{name}: silent with its parameters as they were')
        return counts

    def _restore(self, node: Any) -> None:
        from rclpy.parameter import Parameter
        default = NODES[node.executable].tuned()
        result = node.set_parameters_atomically([Parameter(item.name, value=getattr(default, item.name))
                                                 for item in fields(default)])
        if not result.successful:
            raise Wrong(f'the parameters cannot go back: {result.reason}')
        if node.forgets and getattr(node.stage, 'ordered', None) is not None:
            node.stage.configure(default)


class StartParameters(Messages):
    """Parameters that a node is started with: it runs, or says why not."""

    most = 60      # the middleware of ended nodes leaves much mapped

    def prepare(self) -> None:
        """Rclpy alone: each case makes its node."""
        self._begin()

    def make(self, random: Random) -> Case:
        """parameters.json: the executable and its parameters."""
        name = random.choice([*NODES])
        items = [item for group in (*NODES[name].fixed, *filter(None, [NODES[name].tuned])) for item in fields(group)]
        items = [item for item in items if item.name not in WAITS]
        values = {item.name: value_of(item, random) for item in random.sample(items, random.choice([1, 1, 2, 4]))}
        return {'parameters.json': json.dumps({'node': name, 'values': values}).encode()}

    def run(self, case: Case) -> Counter[str]:
        """Make it, configure and activate it; a transition that fails has said why in the log."""
        from rclpy.exceptions import ParameterException
        given = json.loads(case['parameters.json'])
        known = NODES[given['node']].names()
        values = {**{name: value for name, value in WAITS.items() if name in known}, **given['values']}
        if 'bag' in known:
            values.setdefault('bag', str(self.folder / 'bag'))
        node, count = None, len(given['values'])
        try:
            with overridden(values):
                node = class_of(given['node'])()
            if hasattr(node, 'trigger_configure'):
                done = [node.trigger_configure().name]
                done += [node.trigger_activate().name] if done == ['SUCCESS'] else []
                node.tick()
                return Counter({'taken' if done[-1] == 'SUCCESS' else 'refused by a transition': count})
            return Counter({'taken': count})
        except (MbseError, ParameterException):     # a fatal line and status 2
            return Counter({'refused': count})
        finally:
            if node is not None:
                node.finish()
                node.destroy_node()


class Replay(McapBag):
    """A changed bag in the player."""

    most = 100

    def prepare(self) -> None:
        """Rclpy."""
        Messages._begin(self)

    def run(self, case: Case) -> Counter[str]:
        """Play it to its end."""
        from mbse_ros.nodes.replay_node import ReplayNode
        node = None
        try:
            with overridden({'bag': str(self.folder), 'rate': 100.0}):
                node = ReplayNode()
            node._position = 1e18
            while node.tick() is not None:
                pass
            return Counter(['played'])
        except MbseError as error:
            return Counter([f'refused: {type(error).__name__}'])
        finally:
            if node is not None:
                node.destroy_node()


@contextmanager
def overridden(values: dict[str, Any]):
    """Nodes that are made here have these parameters, as from the command line."""
    from rclpy.node import Node
    from rclpy.parameter import Parameter
    init = Node.__init__
    given = [Parameter(name, value=value) for name, value in values.items()]
    Node.__init__ = lambda self, name, **more: init(self, name, **{**more, 'parameter_overrides': given})
    try:
        yield
    finally:
        Node.__init__ = init


@cache
def class_of(executable: str) -> type:
    """The class of a node."""
    from importlib import import_module
    word = ''.join(part.title() for part in executable.split('_'))
    return getattr(import_module(f'mbse_ros.nodes.{executable}'), word)


def _message(name: str, kind: int | None, value: Any) -> Any:
    """Parameter of a service's request; ``kind``: another type than the value's."""
    from rcl_interfaces.msg import Parameter as Message
    from rclpy.parameter import Parameter
    message = Parameter(name, value=value).to_parameter_msg() if name else Message(
        value=Parameter('x', value=value).to_parameter_msg().value)
    if kind is not None:
        message.value.type = kind
    return message
