# SPDX-License-Identifier: Apache-2.0
"""Whether sensors and priors of an estimation graph determine its motion, however weakly, over any length of log.

A direction that stays open satisfies every factor, soft ones too: so it is a motion of the linearised mechanism that no
sensor and no prior sees. These motions are carried from instant to instant, each factor takes away what it sees;
nothing is divided by what is small, so that rounding errors do not pass for information, as they do when the graph is
eliminated over many instants.
"""

from __future__ import annotations

import numpy as np

from ..errors import GraphError
from .elimination import LAST, Packing, stacked
from .graph import FactorGraph
from .linearise import Lineariser

TOLERANCE = 1e-9        # of a singular value of rows of length one on directions of length one
SHARE = 1e-3            # of the largest entry of its kind, from which a component is named


def check_blind(graph: FactorGraph, x: np.ndarray) -> None:
    """Raise GraphError, with the variables of the last instant, for directions that stay open at the values x (size,).

    Factors may lie between neighbouring instants and on variables that do not change.
    """
    packing = Packing(graph)
    widths = {key: len(node.places) for key, node in packing.nodes.items()}
    constants = {key: width for key, width in widths.items() if key >= LAST}
    fixed, rows = sum(constants.values()), {}
    for terms, _ in packing.blocks(Lineariser(graph)(x)):
        rows.setdefault(max((key for key, _ in terms if key < LAST), default=-1), []).append(terms)
    open_, last = np.eye(fixed), None                   # directions of the constants, then of the instant and them
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
    places = np.concatenate([packing.nodes[key].places for key in keys])
    size = np.abs(directions).max(axis=1)
    names, seen = [], set()
    for series in graph.series.values():
        own = np.flatnonzero((places >= series.first) & (places < series.first + series.size * len(series.steps)))
        for i in own[size[own] > SHARE * max(size[own].max(initial=0.0), SHARE)]:
            names.append(graph.entry_name(places[i]))
            seen.add(series.name)
    return GraphError(f'{directions.shape[1]} direction(s) that no sensor and no prior sees', names,
                      [f'prior of {name} at step 0' for name in ('q', 'qd', 'Q') if name in seen]
                      + ['a sensor that sees them'])
