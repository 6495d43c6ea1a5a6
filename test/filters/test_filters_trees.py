# SPDX-License-Identifier: Apache-2.0
"""Filters of chains that are too long to be written out: the forces by which they correct the model."""

import numpy as np
import yaml

from mbse_ros.compiled import Kernel
from mbse_ros.description.load import parse_mechanism
from mbse_ros.dynamics.model import Model
from mbse_ros.dynamics.state_equations import is_small
from mbse_ros.filters.parts.problem import problem


def test_forces_along_coordinates_act_on_a_long_chain():
    """``M (zdd - zdd without forces) = w``, and so says B."""
    n = 14
    content = {'format': 'mbse/mechanism/1', 'name': 'chain', 'coordinates': 'relative', 'gravity': '9.81 m/s^2',
               'points': {'foot': {'fixed': [0, 0]}},
               'bodies': {f'b{k}': {'points': {'a': [0, 0], 'b': [0.5, 0]}, 'mass': 1, 'inertia': 0.02,
                                    'center_of_mass': [0.25, 0]} for k in range(n)},
               'joints': {f'j{k}': {'type': 'revolute', 'parent': f'b{k - 1}.b' if k else 'ground.foot',
                                    'child': f'b{k}.a'} for k in range(n)},
               'sensors': {'encoder': {'kind': 'encoder', 'coordinate': 'j0', 'stddev': '1 deg'}}}
    model = Model(parse_mechanism(yaml.safe_dump(content)), backend='vm')
    found = problem(model, ['encoder'])
    assert not is_small(found.system)
    rates = Kernel(found.rates, 'vm')
    q, zd, w = np.random.default_rng(0).normal(size=(3, n))
    pushed, free = (rates(q, zd, force, [0.0], model.parameters) for force in (w, 0 * w))
    M = model.terms(q, zd).M
    np.testing.assert_allclose(M @ (pushed[0] - free[0]), w, rtol=0, atol=1e-10)
    np.testing.assert_allclose(M @ pushed[2][n:], np.eye(n), rtol=0, atol=1e-10)
