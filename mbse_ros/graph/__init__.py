# SPDX-License-Identifier: Apache-2.0
"""Mechanisms as factor graphs (Blanco-Claraco et al., factor graphs): simulation, inverse dynamics and smoothing of
measurements.

A graph is data: variables and factors of a few kinds, each kind compiled once. GTSAM, an optional package, does the
linear algebra; nothing here imports it before a graph is solved.
"""

from .check import check_graph
from .draw import draw_graph
from .factors.equations import FactorEquations
from .factors.kinds import FactorKind
from .forward import ForwardNoises, GraphProblem, forward_graph
from .forward_lag import ForwardLag, GraphMotion, simulate_fixed_lag
from .graph import ALWAYS, FactorGraph
from .inverse import GraphForces, InverseNoises, InverseProblem, inverse_graph, solve_inverse
from .solvers.batch_solver import Marginals, Solution, marginals, solve_batch
from .solvers.to_gtsam import solve_incremental, to_gtsam
from .window import LagSolution, solve_fixed_lag

__all__ = ['ALWAYS', 'FactorEquations', 'FactorGraph', 'FactorKind', 'ForwardLag', 'ForwardNoises', 'GraphProblem',
           'GraphForces', 'GraphMotion', 'InverseNoises', 'InverseProblem', 'LagSolution', 'Marginals', 'Solution',
           'check_graph', 'draw_graph', 'forward_graph', 'inverse_graph', 'marginals', 'simulate_fixed_lag',
           'solve_batch', 'solve_fixed_lag', 'solve_incremental', 'solve_inverse', 'to_gtsam']
