# SPDX-License-Identifier: Apache-2.0
"""Mechanisms as factor graphs (paper 002): simulation, inverse dynamics and smoothing of measurements.

A graph is data: variables and factors of a few kinds, each kind compiled once. GTSAM, an optional package, does the
linear algebra; nothing here imports it before a graph is solved.
"""

from .batch import Solution, solve_batch
from .check import check_graph
from .equations import Equations
from .forward import ForwardNoises, ForwardProblem, forward_graph
from .graph import ALWAYS, FactorGraph
from .kinds import FactorKind
from .marginals import Marginals, marginals

__all__ = ['ALWAYS', 'Equations', 'FactorGraph', 'FactorKind', 'ForwardNoises', 'ForwardProblem', 'Marginals',
           'Solution', 'check_graph', 'forward_graph', 'marginals', 'solve_batch']
