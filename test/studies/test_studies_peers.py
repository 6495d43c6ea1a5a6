# SPDX-License-Identifier: Apache-2.0
"""What other multibody programs are given is our mechanism, and where they are installed they find our motion."""

import numpy as np
import pytest

from mbse_ros.dynamics.model import load_model
from mbse_ros.dynamics.motion import simulate
from studies import peer_model, peers, simulation
from studies.peer_model import NoPeerError, Pose, deviation
from studies.peer_mujoco import Setting, _tree, mjcf

CASES = tuple(simulation.MECHANISMS)


@pytest.mark.parametrize('name', CASES)
def test_energy_and_watched_coordinate_are_the_models(name):
    """Kinetic energy of the bodies with a velocity of one's own, by their numbers alone, and the change of potential
    energy along it."""
    model = load_model(name)
    model.start.qd[:] = model.partition().velocity(model.start.q, np.full(len(model.z), 0.3))
    peer = peer_model.peer_model(model)
    kinetic = power = 0.0
    for body in peer.bodies.values():
        local = body.pose.rotation.T @ body.spin
        kinetic += (body.mass * body.centre_velocity @ body.centre_velocity + local @ body.inertia @ local) / 2
        power -= body.mass * peer.gravity @ body.centre_velocity
    energy = model.energy(model.start.q, model.start.qd)
    assert kinetic == pytest.approx(energy.kinetic, rel=1e-12)
    ahead = [model.energy(model.start.q + h * model.start.qd, model.start.qd).potential for h in (-1e-6, 1e-6)]
    if not any(coil.stiffness for coil in peer.coils):
        assert power == pytest.approx((ahead[1] - ahead[0]) / 2e-6, rel=1e-6, abs=1e-6)
    watched = model.start.q[model.names.index(model.independent[0])]
    assert deviation(peer, peer.value(peer.start), watched) < 1e-12


@pytest.mark.parametrize('name', CASES)
def test_joints_hold_where_it_starts(name):
    peer = peer_model.peer_model(load_model(name))
    for link in peer.links.values():
        between = peer.start[link.child].at(link.far) - peer.start[link.parent].at(link.near)
        axis = peer.start[link.parent].rotation @ link.axis
        if link.type in ('prismatic', 'slot'):
            between = np.cross(axis, between)
        assert np.abs(between).max() < 1e-9, link.name
        if link.type == 'universal':
            assert abs(axis @ peer.start[link.child].rotation @ link.axis2) < 1e-9


@pytest.mark.parametrize('name, tree, closed', (
    ('four_bar', 3, ['revolute']), ('slider_crank', 3, ['revolute']), ('three_rrr', 10, ['revolute'] * 5),
    ('spatial_crane', 5, ['spherical']), ('andrews', 7, ['revolute'] * 3), ('pendulum', 1, [])))
def test_mujoco_closes_loops_by_what_it_can(name, tree, closed):
    """Sliders, slots and crosses are in the tree."""
    peer = peer_model.peer_model(load_model(name))
    order, cut = _tree(peer)
    assert len(order) == tree == len(peer.bodies) and [link.type for link in cut] == closed
    text = mjcf(peer, 1e-3, Setting())
    assert text.count('<body') == tree and text.count('<connect') == len(closed)


def test_springs_count_from_the_start():
    """The bend of the four-bar's coupler is -0.0287 rad where it starts, and free at zero."""
    coil, = peer_model.peer_model(load_model('four_bar_spring')).coils
    assert (coil.link, coil.stiffness) == ('E', 5e6) and coil.free == pytest.approx(0.028705, abs=1e-6)
    ends = peer_model.peer_model(load_model('andrews'))
    assert ends.coils[0].free == 0.07785 and ends.torques == {'K1': 0.033}


def test_what_has_no_peer_says_why():
    with pytest.raises(NoPeerError, match='drivers'):
        peer_model.peer_model(load_model('four_bar_adams_driven'))
    peer = peer_model.peer_model(load_model('excavator_arm'))
    assert peer.watched.kind == 'distance'
    away = {name: Pose(pose.place + 1.0, pose.rotation) for name, pose in peer.start.items()}
    assert peer.value(away) != peer.value(peer.start)       # the pin on the ground stays


@pytest.mark.parametrize('program', tuple(peers.PEERS))
@pytest.mark.parametrize('name', CASES)
def test_a_peer_comes_to_our_motion_with_shorter_steps(name, program):
    """With a quarter of the step; another mechanism would stay where it is."""
    if program not in peers.installed():
        pytest.skip(f'{program} is not installed')
    run, settings = peers.PEERS[program]
    model, duration = load_model(name), 0.2 * simulation.MECHANISMS[name]
    peer, k = peer_model.peer_model(model), model.z[0]
    true = simulate(model, duration, duration, 'dop853').q[-1, k]
    steps = round(duration / (1e-3 * simulation.SHORTER.get(name, 1.0)))
    errors = [deviation(peer, run(peer, duration / n, n, settings[0])[1], true) for n in (steps, 4 * steps)]
    assert errors[1] < max(errors[0] / 4, 1e-10) and errors[0] < 1e-2
