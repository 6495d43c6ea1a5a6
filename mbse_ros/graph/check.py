# SPDX-License-Identifier: Apache-2.0
"""Whether a graph determines its variables, before a solver is started: what is loose, and what would tie it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import GraphError
from .graph import ALWAYS, FactorGraph, key_name
from .solvers.elimination import LAST, Linear, Lineariser, Packing, Terms, stacked

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

TOLERANCE = 1e-9        # of a singular value of rows of length one on directions of length one
MOVES = 1e-3            # of the largest entry of its kind, from which a component of an open direction is named


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
    first = np.concatenate([s.first + s.size * np.arange(len(s.steps)) for s in graph.series.values()])
    keys, links = [graph.key_at(place) for place in first], []
    for factors in graph.factors:           # graph.places raises for variables that are not there
        heads = np.cumsum([0, *factors.kind.variables.values()])[:-1]
        ids = np.searchsorted(first, graph.places(factors)[:, heads])
        links.append(np.column_stack([ids[:, :1].repeat(ids.shape[1], axis=1).ravel(), ids.ravel()]))
    pairs = np.vstack(links) if links else np.zeros((0, 2), dtype=int)
    loose = sorted(set(range(len(keys))) - set(pairs.ravel().tolist()))
    if loose:
        name = keys[loose[0]][0]
        raise GraphError('no factor on', [key_name(*keys[i]) for i in loose], TIES.get(name, DEFAULT_TIES))
    from scipy.sparse import coo_matrix  # here: slow to import
    from scipy.sparse.csgraph import connected_components
    matrix = coo_matrix((np.ones(len(pairs)), pairs.T), shape=(len(keys), len(keys)))
    count, part = connected_components(matrix, directed=False)
    if connected and count > 1:
        apart = np.flatnonzero(part != part[0])
        first = keys[apart[0]]
        missing = ('trapezoid', 'euler', 'equality') if first[1] not in (ALWAYS, keys[0][1]) else TIES.get(
            first[0], DEFAULT_TIES)
        raise GraphError(f'disconnected: nothing ties these to {key_name(*keys[0])}',
                         [key_name(*keys[i]) for i in apart], missing)


def _check_rank(graph: FactorGraph, linear: Sequence[Linear]) -> None:
    """Eliminate node after node by QR with pivots; a pivot that is zero leaves its variables open."""
    from scipy.linalg import qr  # here: slow to import
    packing = Packing(graph)
    waiting: dict[int, list[Terms]] = {key: [] for key in packing.nodes}
    for terms, _ in packing.blocks(linear):
        waiting[terms[0][0]].append(terms)
    for key, node in packing.nodes.items():
        rows = waiting.pop(key)
        others = sorted({other for terms in rows for other, _ in terms} - {key})
        widths = {k: len(packing.nodes[k]) for k in [key, *others]}
        A, width = stacked(rows, widths), len(node)
        size = np.linalg.norm(A, axis=1)
        kept = ~(size <= RANK_TOLERANCE)                    # rows of rounding errors are left out
        A = A[kept] / size[kept, None]
        if not np.isfinite(A).all():
            raise GraphError('not a number in the Jacobians', [graph.entry_name(node[0])])
        Q, R, order = qr(A[:, :width], pivoting=True)
        pivots = np.abs(np.diag(R))
        rank = int(np.sum(pivots > RANK_TOLERANCE))
        if rank < width:
            raise _undetermined(graph, node, R, order, rank)
        if others:
            rest = Q[:, rank:].T @ A[:, width:]
            if len(rest) > rest.shape[1]:                   # as many rows as columns say the same
                rest = np.linalg.qr(rest, 'r')
            ends = np.cumsum([widths[other] for other in others])[:-1]
            waiting[others[0]].append(list(zip(others, np.split(rest, ends, axis=1))))


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
    name = graph.key_at(involved[0])[0]
    present = {factors.label for factors in graph.factors if name in factors.names}
    kinds = {factors.kind.name for factors in graph.factors if name in factors.names}
    missing = [tie for tie in TIES.get(name, DEFAULT_TIES) if tie not in present | kinds]
    return GraphError(f'rank deficient, {width - rank} direction(s) open', [graph.entry_name(p) for p in involved],
                      missing or TIES.get(name, DEFAULT_TIES))


def check_blind(graph: FactorGraph, x: np.ndarray) -> None:
    """Raise GraphError, with the variables of the last instant, for motions that no sensor and no prior sees, however
    long the log of an estimation graph is, at the values x (size,).

    A direction that stays open satisfies every factor, soft ones too. Such directions are carried from instant to
    instant, each factor takes away what it sees; nothing is divided by what is small, so that rounding errors do not
    pass for information, as they do when the graph is eliminated over many instants. Factors may lie between
    neighbouring instants and on variables that do not change.
    """
    packing = Packing(graph)
    widths = {key: len(node) for key, node in packing.nodes.items()}
    constants = {key: width for key, width in widths.items() if key >= LAST}
    fixed = sum(constants.values())
    rows: dict[int, list[Terms]] = {}
    for terms, _ in packing.blocks(Lineariser(graph)(x)):
        rows.setdefault(max((key for key, _ in terms if key < LAST), default=-1), []).append(terms)
    open_, last = np.eye(fixed), -1                     # directions of the constants, then of the instant and them
    for key in sorted([-1, *(key for key in packing.nodes if key < LAST)]):
        size, before = widths.get(key, 0), len(open_) - fixed
        A = stacked(rows.get(key, []), {last: before, key: size, **constants})
        open_, last = _carried(A, open_, before, size, fixed), key
    if open_.shape[1]:
        raise _open(graph, packing, open_, [last, *constants])


def _carried(A: np.ndarray, open_: np.ndarray, before: int, size: int, fixed: int) -> np.ndarray:
    """Directions (size + fixed, open) of an instant that neither the ones before nor the rows A see.

    The rows on [before, here, fixed] in the coordinates c of the open directions, and of the instant's own entries.
    """
    c = open_.shape[1]
    onto = np.zeros((before + size + fixed, c + size))
    onto[:before, :c], onto[before + size:, :c] = open_[:before], open_[before:]
    onto[before:before + size, c:] = np.eye(size)
    length = np.linalg.norm(A, axis=1)
    seen = (A[length > 0] / length[length > 0, None]) @ onto
    null = _null(seen, c + size)
    found = (onto @ null)[before:]
    return np.linalg.qr(found)[0] if found.shape[1] else found


def _null(A: np.ndarray, width: int) -> np.ndarray:
    """Orthonormal directions (width, k) that A does not see."""
    if not len(A):
        return np.eye(width)
    _, s, V = np.linalg.svd(A)
    rank = int(np.sum(s > TOLERANCE * max(1.0, s[0])))
    return V[rank:].T


def _open(graph: FactorGraph, packing: Packing, directions: np.ndarray, keys: list[int]) -> GraphError:
    """The error that names what moves in the open directions."""
    places = np.concatenate([packing.nodes[key] for key in keys])
    size = np.abs(directions).max(axis=1)
    names, seen = [], set()
    for series in graph.series.values():
        own = np.flatnonzero((places >= series.first) & (places < series.first + series.size * len(series.steps)))
        for i in own[size[own] > MOVES * max(size[own].max(initial=0.0), MOVES)]:
            names.append(graph.entry_name(places[i]))
            seen.add(series.name)
    return GraphError(f'{directions.shape[1]} direction(s) that no sensor and no prior sees', names,
                      [f'prior of {name} at step 0' for name in ('q', 'qd', 'Q') if name in seen]
                      + ['a sensor that sees them'])
