# SPDX-License-Identifier: Apache-2.0
"""A linearised graph given to GTSAM: all variables of one instant are one node, all factors between nodes one.

What is solved: the step dx with the least sum of squares of ``A dx - b``, each row divided by its sigma; each factor
gives rows J of A and ``b = -e``. A row of sigma 0 holds exactly (GTSAM's constrained noise).

Elimination is a QR of A, the columns of one node at a time. The rows that touch the node are put under each other;
their QR leaves rows ``R dx_node + S dx_others = d`` on top, the *conditional* of the node given the others, and below
rows without the node, a new factor on the others. When no node is left, the conditionals are solved from the last to
the first. R is the Cholesky factor of A'A, without A'A: squared weights of stiff rows would leave the digits of a
double.

    node            0  1  2  always            after node 0
    start           x                          R  S  .  S     conditional of 0 given 1 and what does not change
    motion 0 to 1   x  x     x          ->     .  x  .  x     new factor
    motion 1 to 2      x  x  x                 .  x  x  x     as before
    sensor at 2           x                    .  .  x  .     as before

In the order of time a node meets only the next one and what does not change: each QR is as large as the one before, and
the cost grows in proportion to the number of instants. What does not change (a mass, an offset) comes last: eliminated
first it would join all instants in one factor. See Dellaert and Kaess, Factor Graphs for Robot Perception (2017),
sections 3.2 and 3.4.

A graph has thousands of factors of a few rows; to hand them to GTSAM one by one takes longer than to eliminate them. So
`Packing` finds once which factors touch the same nodes and where each of their entries belongs in one flat buffer, a
matrix (rows, columns + 1) for each set of nodes with b in its last column. A linearisation fills the buffer.

``Lineariser``: residuals and Jacobians of a whole graph, one compiled call for each group of factors.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from ...errors import MissingModuleError
from ..graph import ALWAYS, FactorGraph, Factors

LAST = 1 << 40          # key of the first node of variables that do not change over time

Terms = list[tuple[int, np.ndarray]]        # blocks of the same rows of a Jacobian, by the keys of their nodes


@dataclass(frozen=True)
class Linear:
    """Residuals ``e`` (k, rows) and Jacobians ``J`` (k, rows, width) of a group of factors."""

    factors: Factors
    e: np.ndarray
    J: np.ndarray


class Lineariser:
    """Linearises a graph again and again; ``places`` of each group's arguments are found once."""

    def __init__(self, graph: FactorGraph) -> None:
        self.graph = graph
        self.places = [graph.places(factors) for factors in graph.factors]

    def __call__(self, x: np.ndarray) -> list[Linear]:
        """All groups at the values x (size,)."""
        return [Linear(factors, *factors.kind.evaluate(x[places], factors.constants))
                for factors, places in zip(self.graph.factors, self.places)]


@dataclass(frozen=True)
class Cost:
    """``soft``: half the sum of squared residuals, each by its sigma; ``hard``: largest residual of the rows that hold
    exactly, and ``worst``, the label of its factors and its step."""

    soft: float
    hard: float
    worst: str = ''

    @property
    def finite(self) -> bool:
        """Whether both are numbers."""
        return bool(np.isfinite(self.soft) and np.isfinite(self.hard))


def cost(linear: Sequence[Linear]) -> Cost:
    """Cost of a linearised graph."""
    soft, hard, worst = 0.0, 0.0, ''
    for item in linear:
        exact = item.factors.sigma == 0
        soft += float(np.sum((item.e[~exact] / item.factors.sigma[~exact]) ** 2)) / 2
        if exact.any():
            size = np.where(exact, np.abs(item.e), 0.0).max(axis=1)
            place = int(np.argmax(np.where(np.isnan(size), np.inf, size)))
            if not size[place] <= hard:
                hard, worst = float(size[place]), f'{item.factors.label} at step {item.factors.steps[place].max()}'
    return Cost(soft, hard, worst)


def reach(linear: Sequence[Linear], places: Sequence[np.ndarray], step: np.ndarray) -> float:
    """Largest change that a step dx (size,) could make in a row that holds exactly: ``max |J| |dx|``."""
    largest = 0.0
    for item, at in zip(linear, places):
        exact = item.factors.sigma == 0
        if exact.any():
            change = np.einsum('krw,kw->kr', np.abs(item.J), np.abs(step[at]))
            largest = max(largest, float(change[exact].max()))
    return largest


def gtsam_module() -> ModuleType:
    """The module ``gtsam``; raises MissingModuleError that says how to get it."""
    try:
        import gtsam
    except ImportError as error:
        how = 'pip install "mbse_ros[graph]", or pip install "gtsam>=4.3"'
        if sys.version_info < (3, 11):
            how += '; it needs Python 3.11 or newer, this is ' + '.'.join(map(str, sys.version_info[:2]))
        raise MissingModuleError('gtsam', 'factor graphs are solved with it', how, str(error)) from error
    if not hasattr(gtsam, 'GaussianConditional') or tuple(_version(gtsam)) < (4, 3):
        raise MissingModuleError('gtsam', 'factor graphs are solved with version 4.3 or newer',
                                 'pip install "gtsam>=4.3" (Python 3.11 or newer)', 'an older version was found')
    return gtsam


@lru_cache(maxsize=4)
def _version(gtsam: ModuleType) -> list[int]:
    """Version of the installed package, (4, 3) where it does not say."""
    from importlib.metadata import PackageNotFoundError, version
    try:
        return [int(part) for part in version('gtsam').split('.')[:2]]
    except (PackageNotFoundError, ValueError):
        return [4, 3]


@dataclass(frozen=True)
class Stack:
    """Rows of all factors on the same nodes: ``nodes`` and their first ``columns``; ``size`` rows by columns, the
    ``first`` place in the buffer, ``sigma`` of the rows."""

    nodes: tuple[int, ...]
    columns: tuple[int, ...]
    shape: tuple[int, int]
    first: int
    sigma: np.ndarray


class Packing:
    """How the factors of a graph are stacked into few large ones; found once, filled at every linearisation."""

    def __init__(self, graph: FactorGraph) -> None:
        self.graph = graph
        self.nodes = _nodes(graph)
        self.node_of = np.empty(graph.size, dtype=np.int64)         # place -> key of its node
        self._column_of = np.empty(graph.size, dtype=np.int64)      # place -> column in its node
        for key, places in self.nodes.items():
            self.node_of[places] = key
            self._column_of[places] = np.arange(len(places))
        self.stacks, self._targets, self._sides = self._stack()
        soft = [factors.sigma[factors.sigma > 0] for factors in graph.factors]
        self.scale = max((float(part.max()) for part in soft if part.size), default=1.0)
        self._buffer = np.zeros(sum(rows * (columns + 1) for rows, columns in (s.shape for s in self.stacks)))

    def blocks(self, linear: Sequence[Linear]) -> Iterator[tuple[Terms, np.ndarray]]:
        """Of each stack the keys of its nodes with their blocks of A, and b, of ``A dx = b = -e``: views, until the
        next linearisation fills them again."""
        self._buffer[:] = 0.0
        for item, target, side in zip(linear, self._targets, self._sides):
            self._buffer[target] = item.J
            self._buffer[side] = -item.e
        for stack in self.stacks:
            rows, columns = stack.shape
            block = self._buffer[stack.first:stack.first + rows * (columns + 1)].reshape(rows, columns + 1)
            ends = (*stack.columns[1:], columns)
            yield ([(key, block[:, begin:end]) for key, begin, end in zip(stack.nodes, stack.columns, ends)],
                   block[:, columns])

    def factors(self, linear: Sequence[Linear], damping: float = 0.0) -> Any:
        """GTSAM's GaussianFactorGraph; ``damping`` adds a soft prior of so much weight on every step."""
        gtsam = gtsam_module()
        made = gtsam.GaussianFactorGraph()
        for (terms, b), noise in zip(self.blocks(linear), self.noises):
            made.push_back(linear_factor(gtsam, terms, b, noise))
        if damping > 0.0:
            for key, places in self.nodes.items():
                size = len(places)
                noise = gtsam.noiseModel.Isotropic.Precision(size, damping * self.scale ** 2)
                made.push_back(gtsam.JacobianFactor(key, np.eye(size), np.zeros(size), noise))
        return made

    @cached_property
    def noises(self) -> list[Any]:
        """GTSAM's noise model of each stack, in units of the largest sigma: a precision below 1e-8 is none to it.

        Constrained noise only where a row holds exactly: a node with one such row is eliminated column by column, with
        weights, and loses the digits that the Householder QR of the others keeps.
        """
        gtsam = gtsam_module()
        made: dict[bytes, Any] = {}
        for stack in self.stacks:
            key = stack.sigma.tobytes()
            if key not in made:
                sigma = stack.sigma / self.scale
                made[key] = (gtsam.noiseModel.Diagonal.Sigmas(sigma) if (sigma > 0).all()
                             else gtsam.noiseModel.Constrained.MixedSigmas(1.0, sigma))
        return [made[stack.sigma.tobytes()] for stack in self.stacks]

    @cached_property
    def ordering(self) -> Any:
        """Order of elimination."""
        order = gtsam_module().Ordering()
        for key in self.nodes:
            order.push_back(key)
        return order

    def net(self, linear: Sequence[Linear], damping: float = 0.0) -> Any:
        """The eliminated graph: GTSAM's GaussianBayesNet, a conditional for each node in order.

        By QR always: Cholesky, which squares the weights, gives up on stiff ones without a word.
        """
        return self.factors(linear, damping).eliminateSequential(self.ordering, gtsam_module().EliminateQR)

    def solve(self, linear: Sequence[Linear], damping: float = 0.0) -> np.ndarray:
        """Step dx (size,) of least squares, the exact rows satisfied."""
        return self.optimum(self.net(linear, damping))

    def optimum(self, net: Any) -> np.ndarray:
        """The step dx (size,) of an eliminated graph."""
        step, keys = np.empty(self.graph.size), list(self.nodes)
        step[np.concatenate([self.nodes[key] for key in keys])] = net.optimize().vector(keys)
        return step

    def sigmas(self, factor: Any, rows: int) -> np.ndarray:
        """Standard deviations (rows,) of the rows of a factor or conditional of the eliminated graph."""
        noise = factor.get_model()
        return self.scale * (np.ones(rows) if noise is None else noise.sigmas())

    def _stack(self) -> tuple[list[Stack], list[np.ndarray], list[np.ndarray]]:
        """Stacks; for each group of factors the targets (k, rows, width) of J and (k, rows) of e in the buffer."""
        # which factors, by group and number in it, touch a set of nodes
        members: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        touched = [self.node_of[self.graph.places(factors)] for factors in self.graph.factors]
        for group, nodes in enumerate(touched):
            for instance, keys in enumerate(nodes.tolist()):
                members.setdefault(tuple(sorted(set(keys))), []).append((group, instance))
        firsts = [np.zeros((len(f), 3), dtype=np.int64) for f in self.graph.factors]    # buffer, row, width of stack
        stacks: list[Stack] = []
        begin = 0
        starts: list[dict[int, int]] = []
        which = [np.zeros(len(f), dtype=np.int64) for f in self.graph.factors]
        for keys, items in members.items():
            widths = [len(self.nodes[key]) for key in keys]
            columns = tuple(np.cumsum([0, *widths[:-1]]).tolist())
            row, width = 0, sum(widths)
            for group, instance in items:
                firsts[group][instance] = begin, row, width
                which[group][instance] = len(stacks)
                row += self.graph.factors[group].kind.rows
            sigma = np.concatenate([self.graph.factors[group].sigma[instance] for group, instance in items])
            stacks.append(Stack(keys, columns, (row, width), begin, sigma))
            starts.append(dict(zip(keys, columns)))
            begin += row * (width + 1)
        # entry (row, column) of a stack is at begin + row * (width + 1) + column
        targets, sides = [], []
        for group, factors in enumerate(self.graph.factors):
            places = self.graph.places(factors)
            shift = np.array([[starts[s][key] for key in keys]
                              for s, keys in zip(which[group].tolist(), touched[group].tolist())],
                             dtype=np.int64).reshape(places.shape)
            column = self._column_of[places] + shift
            first, above, across = firsts[group].T
            rows = above[:, None] + np.arange(factors.kind.rows)
            base = first[:, None] + rows * (across[:, None] + 1)
            targets.append(base[:, :, None] + column[:, None, :])
            sides.append(base + across[:, None])
        return stacks, targets, sides


def stacked(rows: Sequence[Terms], widths: Mapping[int, int]) -> np.ndarray:
    """Matrix of blocks under each other, a column of blocks for each key; zeros where rows have none for it."""
    blocks = [np.zeros((0, sum(widths.values())))]
    for terms in rows:
        given, count = dict(terms), len(terms[0][1])
        blocks.append(np.hstack([given.get(key, np.zeros((count, width))) for key, width in widths.items()]))
    return np.vstack(blocks)


def _nodes(graph: FactorGraph) -> dict[int, np.ndarray]:
    """Places in the vector of all values of what is eliminated together, by key (the step, or LAST and so on), in the
    order of elimination."""
    places: dict[int, list[np.ndarray]] = {}
    last = LAST
    for series in graph.series.values():
        for step, row in zip(series.steps.tolist(), series.places(series.steps)):
            if step == ALWAYS:
                places[last] = [row]
                last += 1
            else:
                places.setdefault(step, []).append(row)
    return {key: np.concatenate(places[key]) for key in sorted(places)}


def linear_factor(gtsam: Any, terms: Terms, b: np.ndarray, noise: Any) -> Any:
    """A linear factor; GTSAM's own takes three terms at most from Python, its conditional any number."""
    if len(terms) <= 3:
        return gtsam.JacobianFactor(*(part for term in terms for part in term), b, noise)
    return gtsam.GaussianConditional(terms, 1, b, noise)
