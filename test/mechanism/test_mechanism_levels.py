# SPDX-License-Identifier: Apache-2.0
"""Which constraint rows each level of a hierarchy enforces, and which mechanisms are written out in scalars."""

from dataclasses import replace

import pytest

from mbse_ros.description.load import load_mechanism
from mbse_ros.description.model import Level
from mbse_ros.dynamics.model import load_model
from mbse_ros.dynamics.state_equations import is_small
from mbse_ros.mechanism.assembly import build_mechanism
from mbse_ros.mechanism.levels import joint_groups, level_rows


def test_three_levels_of_the_3rrr():
    """Orsino, modular modelling, figure 4: pivots, chains, platform; every row once."""
    system = build_mechanism(load_mechanism('three_rrr'), 'reference_point')
    levels = level_rows(system)
    assert [len(rows) for rows in levels] == [12, 9, 6]
    assert sorted(sum(levels, [])) == list(range(system.m))


def test_what_is_in_no_module_comes_last():
    """The driver ties no body: it belongs to no module, and to the last level."""
    description = replace(load_mechanism('four_bar_adams_driven'), modules={'arm': ('crank', 'coupler')},
                          levels=(Level(('arm',)), Level(())))
    system = build_mechanism(description, 'natural')
    first, last = ([system.rows[row] for row in rows] for rows in level_rows(system))
    assert first == ['crank.length', 'coupler.length', 'theta']
    assert last[0] == 'rocker.length' and last[1].startswith('drivers.')
    assert set(joint_groups(system)) == {'crank', 'coupler', 'rocker', 'theta', *description.drivers}


@pytest.mark.parametrize('name, coordinates, small', [
    ('n_four_bar:20', 'natural', True), ('three_rrr', 'reference_point', True),
    ('spatial_four_bar', 'reference_point', False), ('pendulum', 'relative', True)])
def test_small_is_what_comes_in_small_blocks(name, coordinates, small):
    assert is_small(load_model(name, coordinates, backend='vm').partition().system) is small
