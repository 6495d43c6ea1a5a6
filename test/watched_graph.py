# SPDX-License-Identifier: Apache-2.0
"""A graph of processes that a test watches."""

from dataclasses import replace

from nodes_support import Peer

from mbse_ros.nodes.graphs.machine_graph import Graph, machine_graph, parse_arguments
from mbse_ros.nodes.graphs.run_graph import RunningGraph

START = 180.0       # s, on a machine with much else to do


def waiting(parameters):
    """Parameters of a node that waits for one reader more."""
    return {**parameters, 'wait_subscribers': parameters.get('wait_subscribers', 0) + 1}


def heard(graph):
    """A graph whose nodes wait for a peer too, that reads all their outputs."""
    return Graph(tuple(replace(p, parameters=waiting(p.parameters) if p.parameters else {},
                               parts={name: waiting(own) for name, own in p.parts.items()}) for p in graph.processes))


class Watched:
    """A graph that runs, its log, and a peer that hears all its topics from the first message on."""

    def __init__(self, topics, **arguments):
        self.log = []
        self.peer = Peer(**topics)
        self.graph = RunningGraph(heard(machine_graph(parse_arguments(arguments))), self.log.append)
        self.graph.start()

    def until(self, condition, limit=START):
        """Look after the graph and listen until the condition holds."""
        def check():
            self.graph.step()
            return condition()
        try:
            self.peer.until(check, limit)
        except AssertionError:
            raise AssertionError('\n'.join(['waited in vain', *self.log])) from None

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
