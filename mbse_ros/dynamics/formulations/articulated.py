# SPDX-License-Identifier: Apache-2.0
"""Accelerations of long trees by articulated bodies, and their exact derivatives, column by column (Featherstone, Rigid
Body Dynamics Algorithms, chapter 7; derivatives: ``mechanism.force_derivatives``).

The accelerations of N coordinates take O(N) operations, each column of A too: what a force at the joints does passes
once down the tree and once up. All columns go through one function, four at a time, which a compiler sees once.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ...mechanism.force_derivatives import changes
from ...mechanism.recursive import OpenTree
from ...mechanism.spatial import Inertia, Twist, Wrench
from ...mechanism.system import MechanismSystem

WIDTH = 4       # columns at a time: as many as `compiled.lanes` computes at once


@dataclass(frozen=True)
class Articulation:
    """By joint: ``W`` the wrench for a unit of its acceleration, divided by the inertia that it feels, ``1 / give``;
    ``qdd`` (N,) accelerations."""

    W: list[ca.SX]
    give: list[ca.SX]
    qdd: list[ca.SX]


def articulation(tree: OpenTree, qd: ca.SX, tau: ca.SX) -> Articulation:
    """Of the tree at velocities (n,) under generalised forces tau (n,)."""
    n = len(tree.places)
    inertias = [_matrix(inertia) for inertia in tree.inertias]
    wrenches = [_column(wrench) for wrench in tree.wrenches(*tree.outwards(qd))]
    S, W, give, push = [_column(column) for column in tree.columns], [ca.SX()] * n, [ca.SX()] * n, [ca.SX()] * n
    for k in reversed(range(n)):
        U = inertias[k] @ S[k]
        give[k] = 1 / (ca.dot(S[k], U) + tree.rotors[k])
        W[k] = U * give[k]
        push[k] = tau[tree.places[k]] - ca.dot(S[k], wrenches[k])
        before = tree.above[k]
        if before >= 0:
            inertias[before] += ca.tril2symm(ca.tril(inertias[k] - W[k] @ U.T))
            wrenches[before] += wrenches[k] + W[k] * push[k]
    a: list[ca.SX] = []
    qdd: list[ca.SX] = []
    for k, before in enumerate(tree.above):
        qdd.append(push[k] * give[k] - (ca.dot(W[k], a[before]) if before >= 0 else 0))
        a.append(S[k] * qdd[k] + (a[before] if before >= 0 else 0))
    return Articulation(W, give, qdd)


def rates_of_tree(system: MechanismSystem, parameters: ca.SX) -> ca.Function:
    """``(q, zd, u, t, p) -> zdd`` of a system without constraints by articulated bodies."""
    tree, z, zd = _tree(system), system.independent, ca.SX.sym('zd', system.n)
    qd = of_all(system, zd)
    qdd = ca.substitute(tree.along(articulation(tree, system.qd, system.applied).qdd), system.qd, qd)
    return ca.Function('mbse_rates', [system.q, zd, system.u, system.t, parameters], [qdd[z]], {'cse': True})


def motion_of_tree(rates: ca.Function, system: MechanismSystem) -> ca.Function:
    """``(q, zd, u, t, p) -> (zdd, qdd, lam, qd)`` by these rates."""
    symbols = rates.mx_in()
    zdd = rates(*symbols)
    return ca.Function('mbse_motion', symbols, [zdd, of_all(system, zdd), ca.MX(0, 1), of_all(system, symbols[1])])


def state_of_tree(system: MechanismSystem, parameters: ca.SX, symbols: list[ca.MX]) -> list[ca.MX]:
    """``zdd``, ``A``, ``B``, ``qdd`` of ``state_function``, at symbols ``q, zd, u, t, p``."""
    n, k, tree, z = system.n, system.u.numel(), _tree(system), system.independent
    q, zd, *others = symbols
    qdd, joints, *packed = _prepared(system, parameters)(q, of_all(system, zd), *others)
    functions, masks = {}, _masks(tree, 2 * n + k)
    found = []
    for c, numbers in enumerate(packed):
        size = numbers.numel()
        if size not in functions:
            functions[size] = _columns(tree, size)
        found.append(functions[size](joints, numbers, ca.DM(masks[WIDTH * c:WIDTH * (c + 1)])))
    wide = ca.vertcat(ca.vec(ca.horzcat(*found)), ca.MX(ca.DM([0.0, 1.0])))
    zero = wide.numel() - 2
    rows = np.array([tree.places.index(i) for i in z])
    columns = n * np.array([*z, *(n + i for i in z)])[:, None] + rows        # where the entry (column, row) is
    upper = zero + np.eye(2 * n, n, -n, dtype=int)
    A = ca.reshape(wide[np.hstack([upper, columns]).ravel('F').tolist()], 2 * n, 2 * n).T
    B = [zero + np.zeros((n, k), dtype=int), n * np.arange(2 * n, 2 * n + k) + rows[:, None]]
    return [qdd[z], A, ca.reshape(wide[np.vstack(B).ravel('F').tolist()], 2 * n, k), qdd]


def _tree(system: MechanismSystem) -> OpenTree:
    if system.tree is None:
        raise ValueError(f'{system.description.name}: not a tree without constraints')
    return system.tree


def of_all(system: MechanismSystem, zd: ca.SX) -> ca.SX:
    """Velocities in the order of q."""
    return zd[[system.independent.index(i) for i in range(system.n)]]


def _prepared(system: MechanismSystem, parameters: ca.SX) -> ca.Function:
    """``(q, qd, u, t, p) -> (qdd, numbers of joints, numbers of four columns, of the next four, ...)``."""
    tree, n = _tree(system), system.n
    q, qd, qdd = system.q, system.qd, ca.SX.sym('qdd', n)
    body = articulation(tree, qd, system.applied)
    c = changes(tree, qd, qdd)
    order = list(tree.places)
    forces = ca.horzcat(*(ca.jacobian(system.applied, by)[order, :] for by in (q, qd, system.u)))
    still = _column(tree.still)
    own = [order.index(i) for i in range(n)]
    columns = [(_column(c.by_q[j]), _column(c.second[j]), c.first[j].w) for j in own]
    columns += [(_column(c.by_qd[j]), _column(c.first[j] * 2), tree.columns[j].w) for j in own]
    columns += [(still, still, tree.still.w)] * (system.u.numel() + -(2 * n + system.u.numel()) % WIDTH)
    forces = ca.horzcat(forces, ca.SX(n, len(columns) - forces.size2()))
    packed = []
    for i in range(0, len(columns), WIDTH):
        parts = ca.horzcat(*(ca.vertcat(*column) for column in columns[i:i + WIDTH]))
        extra = forces[:, i:i + WIDTH]
        packed.append(ca.vec(ca.densify((ca.vertcat(parts, extra) if extra.nnz() else parts).T)))
    joints = [ca.vertcat(_column(S), W, give, _column(momentum), gyration) for S, W, give, momentum, gyration in zip(
        tree.columns, body.W, body.give, c.momenta, c.gyrations)]
    arguments = [q, qd, system.u, system.t, parameters]
    inner = ca.Function('changes', [*arguments, qdd], [ca.densify(ca.horzcat(*joints)), *packed])
    found = tree.along(body.qdd)
    return ca.Function('prepared', arguments, [found, *inner(*arguments, found)], {'cse': True})


def _masks(tree: OpenTree, count: int) -> np.ndarray:
    """By column (a multiple of ``WIDTH``) and joint: 1 where the joint is on the path of the column's; beside it, 1
    where the joint hangs on the column's. Columns of inputs, from 2n to ``count``, have none."""
    n = len(tree.places)
    found = np.zeros((-(-count // WIDTH) * WIDTH, 2 * n))
    for k, path in enumerate(tree.paths):
        for j in path:
            for first in (0, n):
                found[first + tree.places[k], j] = 1.0
                found[first + tree.places[j], n + k] = float(j != k)
    return found


def _columns(tree: OpenTree, count: int) -> ca.Function:
    """``(numbers of joints, of four columns (count,), masks) -> four columns of derivatives of qdd (N, 4)``."""
    n, size, angular = len(tree.places), _column(tree.still).numel(), tree.still.w.numel()
    joints = ca.SX.sym('joints', 3 * size + 1 + angular, n)
    packed, masks = ca.SX.sym('packed', count), ca.SX.sym('masks', WIDTH, 2 * n)
    numbers = ca.reshape(packed, WIDTH, count // WIDTH)
    by, second, first, forces = ca.horzsplit(numbers, [0, size, 2 * size, 2 * size + angular, numbers.size2()])
    parts = [ca.vertsplit(joints[:, k], [0, size, 2 * size, 2 * size + 1, 3 * size + 1, joints.size1()])
             for k in range(n)]
    p, push = [ca.SX.zeros(WIDTH, size)] * n, [ca.SX()] * n
    for k in reversed(range(n)):
        S, W, _, momentum, gyration = parts[k]
        load = masks[:, k] * (by @ S) + masks[:, n + k] * (second @ momentum + first @ gyration)
        push[k] = (forces[:, k] if forces.size2() else 0) - load - p[k] @ S
        before = tree.above[k]
        if before >= 0:
            p[before] = p[before] + p[k] + push[k] @ W.T
    a: list[ca.SX] = []
    found = []
    for k, before in enumerate(tree.above):
        S, W, give, _, _ = parts[k]
        x = push[k] * give - (a[before] @ W if before >= 0 else 0)
        a.append(x @ S.T + (a[before] if before >= 0 else 0))
        found.append(x.T)
    return ca.Function('columns', [joints, packed, masks], [ca.vertcat(*found)])


def _matrix(inertia: Inertia) -> ca.SX:
    """Inertia that takes a twist (s,) to its momentum (s,)."""
    d = inertia.first.numel()
    across = ca.skew(inertia.first) if d == 3 else ca.vertcat(-inertia.first[1], inertia.first[0]).T
    return ca.densify(ca.vertcat(ca.horzcat(inertia.mass * ca.SX.eye(d), -across if d == 3 else across.T),
                                 ca.horzcat(across, inertia.second)))


def _column(vector: Twist | Wrench) -> ca.SX:
    """All components (s,), those of v or f first."""
    first, second = (vector.v, vector.w) if isinstance(vector, Twist) else (vector.f, vector.n)
    return ca.densify(ca.vertcat(first, second))
