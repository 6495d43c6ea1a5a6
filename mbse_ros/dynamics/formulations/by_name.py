# SPDX-License-Identifier: Apache-2.0
"""All formulations of the constrained equations of motion by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, wraps

import numpy as np

from ...errors import SingularEquationsError, check_choice
from .kkt import kkt, penalty
from .matrix_r import matrix_r
from .projectors import enforce
from .terms_arrays import Accelerations, Terms
from .udwadia_kalaba import Clearance, batch, recursive

Groups = Sequence[Sequence[int]] | None
Solve = Callable[..., Accelerations]
REPEATED = 100      # repetitions after which friction has not settled
SETTLED = 1e-11     # of the largest force: change that counts as none


def _recursive(terms: Terms, groups: Groups = None, clearance: Clearance | float = None) -> Accelerations:
    groups = _all(terms, groups)
    return recursive(terms, groups, [clearance] * len(groups) if isinstance(clearance, (int, float)) else clearance)[0]


def _projection(way: str) -> Callable[..., Accelerations]:
    def projection(terms: Terms, levels: Groups = None) -> Accelerations:
        return enforce(terms, _all(terms, levels), way).accelerations
    return projection


def _all(terms: Terms, groups: Groups) -> Sequence[Sequence[int]]:
    """Each row a group of its own where none are given."""
    return [[i] for i in range(terms.m)] if groups is None else groups


def with_work(solve: Solve) -> Solve:
    """A formulation with the work of the constraint forces: ``f + phi`` instead of f (Orsino, modular modelling,
    Eq. 3.4).

    Accelerations and multipliers are linear in the forces: they are solved for ideal constraints and for 1 N of
    friction in each joint. Friction, which depends on the multipliers, is then repeated until it does not change.
    Raises SingularEquationsError where it does not settle: the friction jams.
    """
    @wraps(solve)
    def solved(terms: Terms, *args: object, **options: object) -> Accelerations:
        if terms.phi is None:
            return solve(terms, *args, **options)
        work, none, ideal = terms.phi, np.zeros(terms.m), replace(terms, phi=None)
        found = solve(ideal, *args, **options)
        still = replace(ideal, c=none, Phi=none, Phidot=none)
        effects = [solve(replace(still, Q=direction), *args, **options) for direction in work.directions.T]
        qdd, lam = (np.column_stack([getattr(effect, name) for effect in effects]) for name in ('qdd', 'multipliers'))
        across, more = work.forces @ found.multipliers, work.forces @ lam
        push = _settled(work.factors, across, more, terms)
        slowing = work.directions.T @ qdd * (work.coefficients * np.linalg.norm(across + more @ push, axis=1))
        return Accelerations(found.qdd + qdd @ push, found.multipliers + lam @ push, slowing)
    return solved


def _settled(factors: np.ndarray, across: np.ndarray, more: np.ndarray, terms: Terms) -> np.ndarray:
    """Frictions (k,), N, that are ``factors`` times the forces ``across + more push``, of shapes (k, d) and
    (k, d, k)."""
    push = np.zeros(len(factors))
    for _ in range(REPEATED):
        last, push = push, factors * np.linalg.norm(across + more @ push, axis=1)
        if not np.isfinite(push).all():
            break
        if np.abs(push - last).max() <= SETTLED * max(1.0, float(np.abs(push).max())):
            return push
    raise SingularEquationsError('friction jams, its coefficient is too large for the constraint forces of', terms.rows)


_IDEAL: dict[str, Solve] = {
    'matrix_r': matrix_r,
    'kkt': kkt,
    'kkt_sparse': partial(kkt, use_sparse=True),
    'penalty': penalty,
    'udwadia_kalaba': batch,
    'udwadia_kalaba_recursive': _recursive,
    'projection_complement': _projection('complement'),
    'projection_inverse': _projection('inverse'),
    'projection_one_inverse': _projection('one_inverse'),
    'projection_orthonormal': _projection('orthonormalization'),
}
FORMULATIONS: dict[str, Solve] = {name: with_work(solve) for name, solve in _IDEAL.items()}


def accelerations(name: str, terms: Terms, **options: object) -> Accelerations:
    """Accelerations and multipliers by a formulation of ``FORMULATIONS``, with its own options.

    matrix_r: independent; kkt, kkt_sparse: redundant; penalty: alpha, zeta, omega; udwadia_kalaba_recursive: groups,
    clearance, a number of all or one a group; projection_*: levels. Raises SettingError for an unknown name, and what
    the formulation raises.
    """
    check_choice('formulation', name, FORMULATIONS)
    return FORMULATIONS[name](terms, **options)
