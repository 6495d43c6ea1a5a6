# SPDX-License-Identifier: Apache-2.0
"""All formulations of the constrained equations of motion by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ...errors import check_choice
from .kkt import kkt, penalty
from .matrix_r import matrix_r
from .projectors import enforce
from .terms_arrays import Accelerations, Terms
from .udwadia_kalaba import Clearance, batch, recursive

Groups = Sequence[Sequence[int]] | None


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


FORMULATIONS: dict[str, Callable[..., Accelerations]] = {
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


def accelerations(name: str, terms: Terms, **options: object) -> Accelerations:
    """Accelerations and multipliers by a formulation of ``FORMULATIONS``, with its own options.

    matrix_r: independent; kkt, kkt_sparse: redundant; penalty: alpha, zeta, omega; udwadia_kalaba_recursive: groups,
    clearance, a number of all or one a group; projection_*: levels. Raises SettingError for an unknown name, and what
    the formulation raises.
    """
    check_choice('formulation', name, FORMULATIONS)
    return FORMULATIONS[name](terms, **options)
