# SPDX-License-Identifier: Apache-2.0
"""Whether a graph determines its variables, before a solver is started: what is loose, and what would tie it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import qr
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from ..errors import GraphError
from .elimination import Packing
from .graph import ALWAYS, FactorGraph, key_name
from .linearise import Linear, Lineariser

RANK_TOLERANCE = 1e-10      # of a pivot, rows of length one
SHARE = 0.3                 # of the largest entry, from which a component takes part in an undetermined direction

# What could determine a variable, by its name; the labels of factors.
TIES = {
    'q': ('prior', 'position', 'position_independent', 'trapezoid', 'equality', 'sensor'),
    'qd': ('prior', 'velocity', 'velocity_independent', 'trapezoid', 'sensor'),
    'qdd': ('dynamics', 'acceleration_independent', 'prior', 'equality'),
    'z': ('position_independent', 'prior', 'trapezoid', 'sensor'),
    'zd': ('velocity_independent', 'prior', 'trapezoid', 'sensor'),
    'zdd': ('dynamics_independent', 'acceleration_independent', 'prior', 'equality'),
    'Q': ('inverse_dynamics', 'prior', 'equality')}
DEFAULT_TIES = ('prior', 'equality', 'sensor')


def check_graph(graph: FactorGraph, x: np.ndarray, connected: bool = True) -> None:
    """Raise GraphError for variables without factors, for parts without a link (unless not ``connected``), and for
    variables that the factors, linearised at x (size,), leave open."""
    if not graph.size:
        raise GraphError('nothing in it', ['no variables'], ['variables and factors'])
    if x.shape != (graph.size,) or not np.isfinite(x).all():
        raise GraphError('values to start from', [f'{x.shape}, finite: {bool(np.isfinite(x).all())}'],
                         [f'{graph.size} finite numbers, from graph.values'])
    _check_links(graph, connected)
    _check_rank(graph, Lineariser(graph)(x))


def _check_links(graph: FactorGraph, connected: bool) -> None:
    """Variables that no factor is on; parts of the graph between which there is none."""
    keys, number = _variables(graph)
    links = []
    for factors in graph.factors:
        ids = np.column_stack([first + np.searchsorted(graph.series[name].steps, factors.steps[:, i])
                               for i, name in enumerate(factors.names) for first in [number[name]]])
        graph.places(factors)               # raises for variables that are not there
        links += [np.column_stack([ids[:, :1].repeat(ids.shape[1], axis=1).ravel(), ids.ravel()])]
    pairs = np.vstack(links) if links else np.zeros((0, 2), dtype=int)
    loose = sorted(set(range(len(keys))) - set(pairs.ravel().tolist()))
    if loose:
        name = keys[loose[0]][0]
        raise GraphError('no factor on', [key_name(*keys[i]) for i in loose], TIES.get(name, DEFAULT_TIES))
    matrix = coo_matrix((np.ones(len(pairs)), pairs.T), shape=(len(keys), len(keys)))
    count, part = connected_components(matrix, directed=False)
    if connected and count > 1:
        apart = np.flatnonzero(part != part[0])
        first = keys[apart[0]]
        missing = ('trapezoid', 'euler', 'equality') if first[1] not in (ALWAYS, keys[0][1]) else TIES.get(
            first[0], DEFAULT_TIES)
        raise GraphError(f'disconnected: nothing ties these to {key_name(*keys[0])}',
                         [key_name(*keys[i]) for i in apart], missing)


def _variables(graph: FactorGraph) -> tuple[list[tuple[str, int]], dict[str, int]]:
    """All variables in order, and the first number of each name."""
    keys, number = [], {}
    for series in graph.series.values():
        number[series.name] = len(keys)
        keys += [(series.name, step) for step in series.steps.tolist()]
    return keys, number


def _check_rank(graph: FactorGraph, linear: Sequence[Linear]) -> None:
    """Eliminate node after node by QR with pivots; a pivot that is zero leaves its variables open."""
    packing = Packing(graph)
    buffer = packing.fill(linear)
    waiting: dict[int, list[tuple[tuple[int, ...], np.ndarray]]] = {key: [] for key in packing.nodes}
    for stack in packing.stacks:
        rows, columns = stack.shape
        block = buffer[stack.first:stack.first + rows * (columns + 1)].reshape(rows, columns + 1)[:, :columns]
        waiting[stack.nodes[0]].append((stack.nodes, block))
    for key, node in packing.nodes.items():
        blocks = waiting.pop(key)
        others = sorted({other for keys, _ in blocks for other in keys} - {key})
        A = _stacked(blocks, [key, *others], {k: len(packing.nodes[k].places) for k in [key, *others]})
        width = len(node.places)
        if not np.isfinite(A).all():
            raise GraphError('not a number in the Jacobians', [_name(graph, node.places[0])])
        Q, R, order = qr(A[:, :width], pivoting=True)
        pivots = np.abs(np.diag(R))
        rank = int(np.sum(pivots > RANK_TOLERANCE))
        if rank < width:
            raise _undetermined(graph, node.places, R, order, rank)
        if others:
            rest = Q[:, rank:].T @ A[:, width:]
            if len(rest) > rest.shape[1]:                   # as many rows as columns say the same
                rest = np.linalg.qr(rest, 'r')
            waiting[others[0]].append((tuple(others), rest))


def _stacked(blocks: list[tuple[tuple[int, ...], np.ndarray]], keys: list[int], widths: dict[int, int]) -> np.ndarray:
    """Blocks under each other, rows of length one, rows of rounding errors left out."""
    first = dict(zip(keys, np.cumsum([0, *[widths[key] for key in keys]])))
    out = np.zeros((sum(len(block) for _, block in blocks), sum(widths.values())))
    row = 0
    for owners, block in blocks:
        column = 0
        for key in owners:
            out[row:row + len(block), first[key]:first[key] + widths[key]] = block[:, column:column + widths[key]]
            column += widths[key]
        row += len(block)
    size = np.linalg.norm(out, axis=1)
    return out[size > RANK_TOLERANCE] / size[size > RANK_TOLERANCE, None] if (size <= RANK_TOLERANCE).any() \
        else out / size[:, None]


def _undetermined(graph: FactorGraph, places: np.ndarray, R: np.ndarray, order: np.ndarray, rank: int) -> GraphError:
    """The error that names what takes part in the first open direction of a node."""
    width = len(places)
    null = np.zeros(width)
    null[rank] = 1.0
    if rank:
        null[:rank] = -np.linalg.solve(np.triu(R[:rank, :rank]), R[:rank, rank])
    size = np.empty(width)
    size[order] = np.abs(null)
    involved = places[np.flatnonzero(size > SHARE * size.max())]
    name = _owner(graph, involved[0])[0]
    present = {factors.label for factors in graph.factors if name in factors.names}
    kinds = {factors.kind.name for factors in graph.factors if name in factors.names}
    missing = [tie for tie in TIES.get(name, DEFAULT_TIES) if tie not in present | kinds]
    return GraphError(f'rank deficient, {width - rank} direction(s) open', [_name(graph, p) for p in involved],
                      missing or TIES.get(name, DEFAULT_TIES))


def _owner(graph: FactorGraph, place: int) -> tuple[str, int, int]:
    """Name, step and entry of a place in the vector of all values."""
    for series in graph.series.values():
        at = place - series.first
        if 0 <= at < series.size * len(series.steps):
            return series.name, int(series.steps[at // series.size]), int(at % series.size)
    raise IndexError(place)


def _name(graph: FactorGraph, place: int) -> str:
    name, step, entry = _owner(graph, int(place))
    known = graph.components.get(name)
    size = graph.series[name].size
    return key_name(name, step, known[entry] if known else str(entry) if size > 1 else '')
