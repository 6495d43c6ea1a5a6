# SPDX-License-Identifier: Apache-2.0
"""A graph of processes that a test watches."""

import signal
import time
from dataclasses import replace

from nodes_support import Peer

from mbse_ros.nodes.graphs.graph import Graph, parse_arguments
from mbse_ros.nodes.graphs.machine_graph import MachineArguments, machine_graph
from mbse_ros.nodes.graphs.run_graph import RunningGraph
from mbse_ros.nodes.messages.wire import to_ns

START = 180.0       # s, on a machine with much else to do
LAG = 10 ** 9       # ns that what is heard may be behind the clock until the simulation waits for it
BURST = 100         # messages that come between two waits
QUIET = 20          # looks without a new one, after which all have been heard
HOLD = 2.0          # s of a wait: a participant that is silent for 10 s is given up by the others


def waiting(parameters):
    """Parameters of a node that waits for one reader more."""
    return {**parameters, 'wait_subscribers': parameters.get('wait_subscribers', 0) + 1}


def heard(graph):
    """A graph whose nodes wait for a peer too, that reads all their outputs."""
    return Graph(tuple(replace(p, parameters=waiting(p.parameters) if p.parameters else {},
                               parts={name: waiting(own) for name, own in p.parts.items()}) for p in graph.processes))


class WatchedGraph:
    """A graph that runs, its log, and a peer that hears all its topics from the first message on.

    On a computer with much else to do nodes and peer need longer than the simulation gives them. Then it stands still
    until they have done what they have: else they fall behind for ever, and their queues lose what they cannot hold.
    ``result``: the topic that comes last out of the graph; ``plant``: name of the simulation.
    """

    def __init__(self, graph, topics, result, plant):
        self.log, self.peer = [], Peer(**topics)
        self._result, self._plant, self._stopped, self._resumed = result, plant, None, 0
        self.graph = RunningGraph(heard(graph), self.log.append)

    def start(self):
        """Start the processes."""
        self.graph.start()
        return self

    def until(self, condition, limit=START, paced=True):
        """Look after the graph and listen until the condition holds; not ``paced``: while nodes are not there."""
        def check():
            self.graph.step()
            if paced:
                self._pace()
            return condition()
        try:
            self.peer.until(check, limit)
        except AssertionError:
            raise AssertionError('\n'.join(['waited in vain', *self.log])) from None
        finally:
            self._resume()

    def heard(self, topic):
        """Messages of a topic so far."""
        return self.peer.heard[topic]

    def logged(self, text):
        """Whether a line of the log holds a text."""
        return any(text in line for line in self.log)

    def close(self):
        """End the processes and leave."""
        self.graph.stop()
        self.peer.close()

    def _pace(self):
        results, plant = self.heard(self._result), self.graph.children.get(self._plant)
        if self._stopped is not None:
            self._quiet = self._quiet + 1 if len(results) == self._seen else 0
            self._seen = len(results)
            if self._quiet >= QUIET or time.monotonic() - self._since > HOLD:
                self._resume()
        elif (plant is not None and len(results) > self._resumed + BURST
              and time.time_ns() - to_ns(results[-1].header.stamp) > LAG):
            plant.send_signal(signal.SIGSTOP)
            self._stopped, self._since, self._seen, self._quiet = plant, time.monotonic(), 0, 0

    def _resume(self):
        if self._stopped is not None:
            self._stopped.send_signal(signal.SIGCONT)
            self._stopped, self._resumed = None, len(self.heard(self._result))


def watched_machine(topics, **arguments):
    """The running graph of a machine."""
    graph = machine_graph(parse_arguments(arguments, MachineArguments))
    return WatchedGraph(graph, topics, 'payload', 'plant_node').start()
