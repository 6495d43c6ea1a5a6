# SPDX-License-Identifier: Apache-2.0
"""The simulated mechanism: also of one that no input drives."""

import numpy as np
import pytest

from mbse_ros.dynamics.model import load_model
from mbse_ros.simulation.linkage import LinkagePlantSettings, SimulatedLinkage


@pytest.mark.parametrize('name', ['pendulum', 'four_bar_spring', 'four_bar_adams_driven', 'n_four_bar:2'])
def test_a_mechanism_without_inputs_moves_on_its_constraints(name):
    model = load_model(name, backend='vm')
    assert model.inputs == ()
    plant = SimulatedLinkage(model, seed=1, settings=LinkagePlantSettings(noise=0.0))
    first = plant.frame()
    frames = [first, *(plant.frame() for _ in range(20))]
    assert first.inputs.shape == (0,) and first.samples.shape == (len(plant.channels),)
    assert np.ptp([frame.q for frame in frames], axis=0).max() > 1e-5
    assert max(np.abs(model.residual(frame.q, 1e-9 * frame.stamp_ns)[0]).max() for frame in frames) < 1e-6


def test_a_pendulum_keeps_its_energy():
    model = load_model('pendulum', backend='vm')
    plant = SimulatedLinkage(model, seed=1)
    frames = [plant.frame() for _ in range(200)]
    energies = [model.energy(frame.q, frame.qd) for frame in frames]
    swing = np.ptp([energy.kinetic for energy in energies])
    assert swing > 0.0 and np.ptp([energy.total for energy in energies]) < 1e-3 * swing
