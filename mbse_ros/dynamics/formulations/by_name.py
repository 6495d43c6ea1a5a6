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
REPEATED = 100      # solutions after which friction has not settled
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
    Eq. 3.4), repeated from the forces of ideal constraints until phi, which depends on them, does not change.

    Raises SingularEquationsError where it does not settle: the friction jams.
    """
    @wraps(solve)
    def solved(terms: Terms, *args: object, **options: object) -> Accelerations:
        if terms.phi is None:
            return solve(terms, *args, **options)
        push, ideal = np.zeros(terms.n), replace(terms, phi=None)
        for _ in range(REPEATED):
            found = solve(replace(ideal, Q=terms.Q + push), *args, **options)
            last, push = push, terms.phi(found.multipliers)
            if not np.isfinite(push).all():
                break
            if np.abs(push - last).max() <= SETTLED * max(1.0, float(np.abs(push).max())):
                return found
        raise SingularEquationsError('friction jams, its coefficient is too large for the constraint forces of',
                                     terms.rows)
    return solved


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
