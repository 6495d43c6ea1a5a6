# SPDX-License-Identifier: Apache-2.0
"""A URDF tree with a loop in the mechanism file: the planar four-bar, built in space."""

import numpy as np
import pytest

from mbse_ros.description.load import parse_mechanism
from mbse_ros.dynamics.model import Model, load_model

MECHANISM = """
format: mbse/mechanism/1
name: four_bar_of_urdf
gravity: [0, -9.81, 0]
urdf: four_bar.urdf
joints:
  P2: {loop}
named: {{theta: {{joint: A}}}}
independent: [theta]
initial: {{position: {{theta: pi/3}}}}
"""


def link(name, length=0.0, mass=0.0):
    inertia = mass * length ** 2 / 12
    inertial = (f'<inertial><origin xyz="{length / 2} 0 0"/><mass value="{mass}"/><inertia ixx="0" iyy="{inertia}" '
                f'izz="{inertia}" ixy="0" ixz="0" iyz="0"/></inertial>')
    return f'<link name="{name}">{inertial if mass else ""}</link>'


def joint(name, kind, parent, child, x=0.0, limits=(0, 0)):
    return (f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="{x} 0 0"/><axis xyz="0 0 1"/><limit lower="{limits[0]}" upper="{limits[1]}"/></joint>')


@pytest.fixture(scope='module')
def robot(tmp_path_factory):
    """Crank, coupler and rocker of the benchmark; massless links at the two ends that meet; limits choose the elbow."""
    links = [link('world'), link('crank', 2.0, 2.0), link('coupler', 8.0, 8.0), link('rocker', 5.0, 5.0),
             link('tip'), link('end')]
    joints = [joint('A', 'continuous', 'world', 'crank'), joint('B', 'revolute', 'world', 'rocker', 10.0, (1.0, 2.8)),
              joint('P1', 'revolute', 'crank', 'coupler', 2.0, (-1.2, -0.2)),
              joint('tip-mount', 'fixed', 'coupler', 'tip', 8.0), joint('end-mount', 'fixed', 'rocker', 'end', 5.0)]
    path = tmp_path_factory.mktemp('urdf') / 'four_bar.urdf'
    path.write_text('<robot name="four_bar">' + ''.join(links + joints) + '</robot>')
    return path


@pytest.mark.parametrize('coordinates', ['relative', 'reference_point'])
@pytest.mark.parametrize('loop, redundant', [
    ('{type: revolute, parent: tip.origin, child: end.origin, axis: [0, 0, 1]}', 3),
    ('{type: spherical, parent: coupler.tip_mount, child: end.origin}', 1)])
def test_closed_by_the_mechanism_file(robot, coordinates, loop, redundant):
    description = parse_mechanism(MECHANISM.format(loop=loop), str(robot.with_suffix('.yaml')))
    model, planar = (Model(mechanism, coordinates, backend='vm') if coordinates else load_model(mechanism, backend='vm')
                     for mechanism, coordinates in ((description, coordinates), ('four_bar', None)))
    assert model.degrees_of_freedom == 1 and len(model.redundant) == redundant
    for theta, speed in ((np.pi / 3, 0.0), (1.5, 0.7), (0.4, -3.0)):
        zdd = [part.rates(part.position([theta], part_model.start.q), np.array([speed])).zdd
               for part_model in (model, planar) for part in (part_model.partition(),)]
        np.testing.assert_allclose(zdd[0], zdd[1], rtol=1e-10)
