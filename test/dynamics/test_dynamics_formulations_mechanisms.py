# SPDX-License-Identifier: Apache-2.0
"""All formulations on all mechanisms, in all coordinates; the hierarchy of the 3RRR of Orsino, modular modelling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import islice, permutations
from pathlib import Path

import numpy as np
import pytest
from dynamics_arrays import assert_multipliers, assert_same
from mechanism_samples import parallel_cranks
from spatial_samples import spatial_slider_crank

from mbse_ros.description.load import load_mechanism
from mbse_ros.description.model import MechanismDescription
from mbse_ros.dynamics.formulations.by_name import FORMULATIONS, accelerations
from mbse_ros.dynamics.formulations.projectors import WAYS, enforce
from mbse_ros.dynamics.formulations.redundancy import redundant_rows
from mbse_ros.dynamics.formulations.terms_arrays import Accelerations, Terms
from mbse_ros.dynamics.formulations.udwadia_kalaba import batch, recursive
from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.errors import SingularEquationsError
from mbse_ros.mechanism.levels import joint_groups, level_rows

FOLDER = Path(__file__).parents[2] / 'config' / 'mechanisms'
NAMES = sorted(path.stem for path in FOLDER.glob('*.yaml')) + ['n_four_bar:5']
CASES = [(name, kind) for name in NAMES for kind in ('natural', 'reference_point', 'relative')
         if kind != 'natural' or load_mechanism(name).dimension == 2]
OPTIONS = {'penalty': {'alpha': 1e13}}
TIME = 0.3


@cache
def model(name: str, coordinates: str) -> Model:
    return load_model(name, coordinates=coordinates, backend='vm')


@cache
def moving(name: str, coordinates: str) -> tuple[Terms, Accelerations]:
    """Terms a little away from the start, in motion, with inputs; accelerations and multipliers by the model itself,
    with non-holonomic constraints by KKT at the start."""
    m = model(name, coordinates)
    rng = np.random.default_rng(1)
    g, u = m.degrees_of_freedom, rng.uniform(-1.0, 1.0, len(m.inputs))
    if m.system.rate_rows:
        terms = m.terms(m.start.q, m.start.qd, u, TIME)
        return terms, accelerations('kkt', terms)
    q = m.position(m.start.q[m.z] + rng.uniform(-0.02, 0.02, g), m.start.q, TIME)
    zd = rng.uniform(-0.5, 0.5, g)
    rates = m.partition().rates(q, zd, u, TIME)
    return m.terms(q, rates.qd, u, TIME), Accelerations(rates.qdd, rates.lam)


@pytest.mark.parametrize('name, coordinates', CASES)
def test_all_formulations_agree(name: str, coordinates: str) -> None:
    """With the symbolic matrix-R: accelerations and multipliers."""
    terms, expected = moving(name, coordinates)
    for formulation in FORMULATIONS:
        options = OPTIONS.get(formulation, {})
        if formulation == 'matrix_r' and not model(name, coordinates).system.rate_rows:
            options = {'independent': model(name, coordinates).z}
        found = accelerations(formulation, terms, **options)
        assert_same(found.qdd, expected.qdd, 1e-8)
        assert_multipliers(terms, found.multipliers, expected.multipliers, 1e-8)


@pytest.mark.parametrize('name, coordinates', CASES)
def test_recursive_is_batch_in_every_order_of_the_joints(name: str, coordinates: str) -> None:
    """Groups are the rows of joints and bodies; a redundant one, a mixture of all rows and its double, is added."""
    terms, _ = moving(name, coordinates)
    groups = list(joint_groups(model(name, coordinates).system).values())
    if groups:
        size = np.linalg.norm(terms.J, axis=1)
        mixture = np.cos(np.arange(terms.m) + 1.0) / size
        terms = Terms(terms.M, terms.Q, np.vstack([terms.J, mixture @ terms.J, 2 * mixture @ terms.J]),
                      np.concatenate([terms.c, [mixture @ terms.c, 2 * mixture @ terms.c]]))
        groups.append([terms.m - 2, terms.m - 1])
    expected = batch(terms)
    for order in orders(groups):
        assert_same(recursive(terms, order)[0].qdd, expected.qdd, 1e-10)


def orders(groups: list[list[int]]) -> list[list[list[int]]]:
    """Every order of up to four groups, of more groups each of them first and last."""
    if len(groups) <= 4:
        return [list(order) for order in permutations(groups)]
    turns = [groups[i:] + groups[:i] for i in range(len(groups))]
    return list(islice((order[::way] for order in turns for way in (1, -1)), 24))


@pytest.mark.parametrize('way', WAYS)
@pytest.mark.parametrize('coordinates', ['natural', 'reference_point', 'relative'])
def test_levels_of_the_3rrr_are_one(way: str, coordinates: str) -> None:
    """Pivots, chains, the whole: each level enforced on the kernel of the one below, as in Orsino, modular
    modelling."""
    terms, expected = moving('three_rrr', coordinates)
    levels = level_rows(model('three_rrr', coordinates).system)
    by_levels, at_once = enforce(terms, levels, way), enforce(terms, [range(terms.m)], way)
    assert sorted(row for level in levels for row in level) == list(range(terms.m))
    assert by_levels.ranks == tuple(len(level) for level in levels) and sum(by_levels.ranks) == terms.n - 3
    for found in (by_levels, at_once):
        assert_same(found.accelerations.qdd, expected.qdd, 1e-9)
    onto = [found.S @ np.linalg.pinv(found.S, rcond=1e-9) for found in (by_levels, at_once)]
    np.testing.assert_allclose(*onto, rtol=0, atol=1e-10)
    if coordinates == 'reference_point':
        assert len(levels) == 3


def test_a_lower_level_is_the_model_of_its_modules() -> None:
    """Enforcing the first two levels only leaves the chains and the platform apart: 2 + 2 + 2 + 3 motions."""
    terms, _ = moving('three_rrr', 'reference_point')
    pivots, chains, _ = level_rows(model('three_rrr', 'reference_point').system)
    lower = terms.take([*pivots, *chains])
    found = enforce(lower, [range(len(pivots)), range(len(pivots), lower.m)])
    assert found.S.shape == (terms.n, 9)
    assert_same(found.accelerations.qdd, batch(lower).qdd, 1e-9)


def test_clearance_of_a_joint() -> None:
    """One pin of the four-bar gives way in proportion to its force; the rest stays exact."""
    m = model('four_bar', 'reference_point')
    terms, rigid = moving('four_bar', 'reference_point')
    groups = joint_groups(m.system)
    soft, compliance = next(iter(groups)), 1e-6
    found, _ = recursive(terms, list(groups.values()), [compliance if name == soft else None for name in groups])
    gap = terms.J @ found.qdd - terms.c
    np.testing.assert_allclose(gap[groups[soft]], compliance * found.multipliers[groups[soft]], rtol=1e-6)
    others = [i for name in groups if name != soft for i in groups[name]]
    np.testing.assert_allclose(gap[others], 0, atol=1e-10)
    assert 1e-7 < np.abs(found.qdd - rigid.qdd).max() / np.abs(rigid.qdd).max() < 1e-3


@pytest.mark.parametrize('formulation', FORMULATIONS)
def test_by_the_model(formulation: str) -> None:
    """``Model.accelerations`` takes each formulation by name."""
    m, start = model('five_bar', 'natural'), model('five_bar', 'natural').start
    expected = m.partition().rates(start.q, start.qd[m.z]).qdd
    options = OPTIONS.get(formulation, {})
    assert_same(m.accelerations(start.q, start.qd, formulation=formulation, **options), expected, 1e-8)


@pytest.mark.parametrize('mechanism, coordinates, redundant', [
    (parallel_cranks, 'natural', 1), (parallel_cranks, 'reference_point', 1), (parallel_cranks, 'relative', 1),
    (spatial_slider_crank, 'reference_point', 3), (spatial_slider_crank, 'relative', 3)])
def test_overconstrained_mechanisms(mechanism: Callable[[], MechanismDescription], coordinates: str,
                                    redundant: int) -> None:
    """All rows together give the motion of the independent ones; the redundant rows are reported by name."""
    m = load_model(mechanism(), coordinates=coordinates, backend='vm')
    q = m.position(m.start.q[m.z] + 0.1, m.start.q)
    rates = m.partition().rates(q, np.array([1.3]))
    terms = replace(m.terms(q, rates.qd), rows=m.rows)
    assert [row.name for row in redundant_rows(terms.J, m.rows)] == list(m.redundant) and len(m.redundant) == redundant
    with pytest.raises(SingularEquationsError, match='redundant constraints') as refused:
        accelerations('kkt', terms)
    assert refused.value.names == m.redundant
    least = batch(terms).multipliers
    for formulation in FORMULATIONS:
        options = OPTIONS.get(formulation, {}) | ({'redundant': True} if formulation.startswith('kkt') else {})
        found = accelerations(formulation, terms, **options)
        assert_same(found.qdd, rates.qdd, 1e-8)
        assert_multipliers(terms, found.multipliers, least, 1e-8 if formulation != 'penalty' else 1e-2)
    for order in orders(list(joint_groups(m.system).values())):
        assert_same(recursive(terms, order)[0].qdd, rates.qdd, 1e-10)


@pytest.mark.parametrize('name', ['kkt', 'kkt_sparse'])
def test_redundant_row_of_a_mechanism(name: str) -> None:
    """A bar given twice is refused unless allowed; then the motion is the same and the forces are shared."""
    terms, expected = moving('four_bar', 'natural')
    twice = replace(terms, J=terms.J[[0, *range(terms.m)]], c=terms.c[[0, *range(terms.m)]], rows=(),
                    Phi=None, Phidot=None)
    found = accelerations(name, twice, redundant=True)
    assert_same(found.qdd, expected.qdd, 1e-9)
    assert found.multipliers[0] == pytest.approx(expected.multipliers[0] / 2)
    assert found.multipliers[1] == pytest.approx(expected.multipliers[0] / 2)
