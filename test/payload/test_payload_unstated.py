# SPDX-License-Identifier: Apache-2.0
"""What numbers of drives that a file calls exact do to the mass, by an arm that shares no code with the package."""

import re

import arm_plant
import numpy as np
import pytest
from source_tree import ROOT

from mbse_ros.description.load import load_mechanism
from mbse_ros.filters.force_error import LASTS
from mbse_ros.filters.hydraulic_state import state_names
from mbse_ros.machine import Machine
from mbse_ros.payload.unstated import EVERY, UnstatedErrors

LARGEST = np.array([330.0, 330.0, 150.0, 56.0, 56.0, 56.0])        # N m
CENTRE, SPREAD, LOAD = np.array([0.0, 0.0, 0.05]), 0.05, 4.0        # m, m, kg
TEXT = (ROOT / 'config/arms/ur10e.yaml').read_text()


def machine_of(folder, text):
    (folder / 'arm.yaml').write_text(text)
    return Machine(load_mechanism(folder / 'arm.yaml'))


@pytest.fixture(scope='module')
def exact(tmp_path_factory):
    text = re.sub(r', stddev: (?!50 mm|[\d.e-]+ (rad|A),)[^}\n]*\}', '}', TEXT)
    return machine_of(tmp_path_factory.mktemp('arm'), text)


def least_squares(states, numbers):
    """Change (k,), kg, of the mass by errors of the efforts (instants, 6, k): least squares of mass and moments, whose
    derivatives are differences of inverse dynamics."""
    arm = arm_plant.ur10e()
    bare = arm.torques(*states)

    def force(centre):
        return arm.carrying(1.0, centre).torques(*states) - bare
    moved = [(force(CENTRE + h) - force(CENTRE - h)) / 2e-4 for h in 1e-4 * np.eye(3)]
    H = np.stack([force(CENTRE), *moved], axis=2) / (0.01 * LARGEST)[:, None]
    B = numbers / (0.01 * LARGEST)[:, None]
    A, b = np.einsum('tji,tjk->ik', H, H), np.einsum('tji,tjk->ik', H, B)
    return np.linalg.solve(A + np.diag([0, *[LASTS / EVERY / (SPREAD * LOAD) ** 2] * 3]), b)[0]


def test_their_effect_is_that_of_least_squares_by_another_arm(exact):
    errors = UnstatedErrors(exact)
    rng = np.random.default_rng(3)
    q = rng.uniform(-1, 1, (20, 6)) + [0, -1.3, 1.2, -1.2, -1.2, 0]
    qd, qdd = rng.choice([-1.0, 1.0], (20, 6)) * rng.uniform(0.3, 0.8, (20, 6)), rng.uniform(-1, 1, (20, 6))
    efforts = arm_plant.ur10e().carrying(LOAD, CENTRE).torques(q, qd, qdd)
    names = state_names(exact)[0]
    for row in zip(q, qd, qdd, efforts):
        errors.take(np.concatenate(row), LOAD, 0.0, EVERY)
    assert len(names) == 24 and not errors.kg(LOAD).any()       # nothing contradicts the file
    errors.doubted = True
    found = dict(zip(errors.names, errors.kg(LOAD)))
    friction = arm_plant.ur10e()
    own = friction.coulomb * np.tanh(4 * qd / arm_plant.TRANSITION) + friction.viscous * qd
    eye = np.eye(6)
    expected = {'gain': 0.1 * efforts[:, :, None] * eye, 'friction.scale': 0.5 * own[:, :, None] * eye,
                'offset': 0.01 * LARGEST[:, None] * eye * np.ones((20, 1, 1))}
    assert len(found) == 18
    for kind, numbers in expected.items():
        ours = [abs(kg) for name, kg in found.items() if name.endswith(kind)]
        assert ours == pytest.approx(np.abs(least_squares((q, qd, qdd), numbers)), rel=0.01, abs=1e-3), kind


def test_a_file_that_states_deviations_has_none(tmp_path):
    assert not UnstatedErrors(machine_of(tmp_path, TEXT)).names


def test_another_load_forgets_the_poses_of_the_one_before(exact):
    errors, once = UnstatedErrors(exact), UnstatedErrors(exact)
    rng = np.random.default_rng(4)
    states = [np.concatenate([row + [0, -1.3, 1.2, -1.2, -1.2, 0], rng.uniform(0.3, 0.8, 6), np.zeros(6),
                              rng.uniform(0.1, 0.3, 6) * LARGEST]) for row in rng.uniform(-1, 1, (12, 6))]
    for k, state in enumerate(states):
        errors.take(state, LOAD, -50.0 * (k >= 6), EVERY)
        if k >= 6:
            once.take(state, LOAD, 0.0, EVERY)
    errors.doubted = once.doubted = True
    assert errors.kg(LOAD) == pytest.approx(once.kg(LOAD))
