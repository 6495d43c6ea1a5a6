# SPDX-License-Identifier: Apache-2.0
"""The simulated mechanism: also of one that no input drives, and of those that have to be held up."""

from dataclasses import replace

import numpy as np
import pytest

from mbse_ros.description.load import load_mechanism
from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.errors import DivergenceError, SettingError
from mbse_ros.filters.linkage_settings import LinkageSettings
from mbse_ros.nodes.graphs.linkage_graph import ENCODERS, chosen_sensors
from mbse_ros.simulation.linkage import LinkagePlantSettings, SimulatedLinkage, must_follow
from mbse_ros.streams.linkage import LinkageStage
from mbse_ros.streams.records import ObserverStatus


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


@pytest.mark.parametrize('name, seconds', [
    ('excavator_arm', 2.0), ('three_rrr', 1.2), ('spatial_crane', 0.7), ('spatial_four_bar', 1.2)])
def test_what_sines_of_force_would_throw_down_is_held_moved_and_estimated(name, seconds):
    """As `mbse up linkage` has it: no settings, the encoders alone."""
    model = load_model(name, backend='vm')
    sensors = chosen_sensors(model.description, ENCODERS)
    plant = SimulatedLinkage(model, sensors, settings=LinkagePlantSettings(rate=100.0))
    stage = LinkageStage(model, LinkageSettings(), sensors, 0.01, backend='vm')
    found, moved = [], []
    for _ in range(round(seconds * 100)):
        frame = plant.frame()
        told = stage.add(frame.stamp_ns, dict(zip((*plant.channels, *(f'input/{name}' for name in model.inputs)),
                                                  (*frame.samples, *frame.inputs))))
        found += [(e, frame.q[model.z], frame.qd[model.z]) for e in told or ()]
        moved.append(frame.q[model.z])
    late = found[len(found) // 2:]
    assert {e.status for e, *_ in late} == {ObserverStatus.OK} and len(found) > 0.8 * seconds * 100
    assert not any(e.restart for e, *_ in found[1:])
    driven = plant._follow._driven
    assert (np.ptp(moved, axis=0)[driven] > 0.04).all()
    assert np.abs(moved - model.start.q[model.z])[:, driven].max() < 0.052     # travel, and what the start adds
    g = len(model.z)
    errors = np.array([(np.concatenate([z, zd]) - e.mean[:2 * g]) / np.sqrt(np.diag(e.covariance)[:2 * g])
                       for e, z, zd in late])
    assert np.abs(errors).max() < 5.0


@pytest.mark.parametrize('name, follows', [('excavator_arm', True), ('five_bar', False)])
def test_each_length_that_an_input_drives_has_ends(name, follows):
    """Also if it is the first coordinate, and alone; an angle has none."""
    whole = load_mechanism(name)
    for force, item in whole.forces.items():
        model = Model(replace(whole, forces={force: item}), backend='vm')
        assert item.input and must_follow(model) is follows


def test_a_mechanism_without_inputs_cannot_follow():
    model = load_model('pendulum', backend='vm')
    with pytest.raises(SettingError, match='motion.*auto or forces: pendulum has no inputs'):
        SimulatedLinkage(model, settings=LinkagePlantSettings(motion='follow'))


def test_one_coordinate_does_not_follow_two_inputs():
    model = load_model('slider_crank', backend='vm')
    with pytest.raises(SettingError, match='motion.*forces: input force of slider_crank'):
        SimulatedLinkage(model, settings=LinkagePlantSettings(motion='follow'))


def test_what_is_thrown_down_says_what_to_give():
    model = load_model('three_rrr', backend='vm')
    plant = SimulatedLinkage(model, settings=LinkagePlantSettings(motion='forces', rate=100.0))
    with pytest.raises(DivergenceError, match='three_rrr.*motion:=follow'):
        for _ in range(200):
            plant.frame()


@pytest.mark.parametrize('rate', [10.0, 100.0])
def test_damping_of_a_light_crank_does_not_throw_it_back(rate):
    """Held over 0.1 s, 2 N m s/rad would take eight times the velocity of the slider-crank in a period."""
    plant = SimulatedLinkage(load_model('slider_crank', backend='vm'), settings=LinkagePlantSettings(rate=rate))
    frames = [plant.frame() for _ in range(round(5 * rate))]
    assert max(np.abs(frame.qd).max() for frame in frames) < 40.0
    damped = [frame.inputs[0] for frame in frames]
    assert np.ptp(damped) > 0.5 and np.abs(damped).max() < 25.0
