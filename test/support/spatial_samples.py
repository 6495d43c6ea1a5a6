# SPDX-License-Identifier: Apache-2.0
"""Spatial mechanisms made by hand (the planar ones and the means are in ``mechanism_samples.py``)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from mechanism_samples import along, body, component, distance, force, joint, mechanism, number, rotated, spring

from mbse_ros.description.model import Body, Driver, MechanismDescription

TENSOR = (0.30, 0.22, 0.18, 0.03, -0.02, 0.04)


def arm(name: str, at: np.ndarray, rpy: tuple[float, ...], mass: float = 1.0, **points: tuple[float, ...]) -> Body:
    """A body with a full tensor and its centre of mass off all axes; its point P lies at ``at``."""
    rotation = rotated(rpy)
    place = np.array(at) - rotation @ points['P']
    return body(name, mass, points, (0.2, -0.1, 0.15), TENSOR, tuple(place), rpy)


def rpy_of(r: np.ndarray) -> tuple[float, ...]:
    """Roll, pitch and yaw of a rotation."""
    return float(np.arctan2(r[2, 1], r[2, 2])), float(-np.arcsin(r[2, 0])), float(np.arctan2(r[1, 0], r[0, 0]))


def relative_rpy(parent: Body, child: Body) -> tuple[float, ...]:
    """Roll, pitch and yaw of the child in the parent."""
    return rpy_of(np.array(parent.rotation).T @ np.array(child.rotation))


def place(one: Body, label: str) -> np.ndarray:
    """Where a point of a body is at the guess."""
    return np.array(one.position) + np.array(one.rotation) @ [item.value for item in one.points[label]]


def spatial_pendulum() -> MechanismDescription:
    """One arm on a skew axis, written from the arm, with a rotation at its zero."""
    axis, rpy = np.array([1.0, 2.0, -0.5]), (0.3, -0.4, 0.7)
    one = body('arm', 1.0, {'P': (0.2, 0.1, -0.3), 'Q': (0.5, 0.4, 0.2)}, (0.2, -0.1, 0.15), TENSOR,
               tuple(np.array([0.1, 0.2, 0.3]) - rotated(rpy).T @ [0.2, 0.1, -0.3]), rpy_of(rotated(rpy).T))
    return mechanism('spatial_pendulum', [one], [joint('hinge', 'revolute', 'arm.P', 'ground.O', axis, rpy)],
                     {'O': (0.1, 0.2, 0.3)}, [along('theta', 'hinge'), component('height', 'arm.Q', 2)],
                     [spring('coil', 'theta', 2.0, 0.4, 0.3)],
                     [force('motor', 'theta', source='torque'), force('load', 'arm.Q', (1.0, -2.0, 0.5)),
                      force('fan', 'arm:', direction=(1, 1, 0), source='fan')])


def ball_and_cross() -> MechanismDescription:
    """An arm on a cross whose arms are not perpendicular at its zero, another on a ball that is written from it."""
    one = arm('one', (0, 0, 0), (0.2, -0.3, 0.5), P=(0.0, 0.1, 0.0), Q=(0.6, 0.0, 0.1))
    two = arm('two', place(one, 'Q'), (0.4, 0.1, 0.9), 0.7, P=(-0.1, 0.0, 0.2), Q=(0.5, 0.2, 0.0))
    return mechanism('ball_and_cross', [one, two],
                     [joint('cross', 'universal', 'ground.O', 'one.P', (1, 0, 1), (0.2, 0.1, 0.3), (0.1, 1, 0)),
                      joint('ball', 'spherical', 'two.P', 'one.Q', rpy=(0.1, 0.2, 0.3))], {'O': (0, 0, 0)},
                     [distance('d', 'ground.O', 'two.Q')], [spring('coil', ('one.P', 'two.Q'), 9.0, 0.5, 0.4)],
                     [force('twist', 'two:', (0.4, 0.2, -0.3)), force('push', 'd', source='push')])


def sliders() -> MechanismDescription:
    """A carriage on a rail, a plunger that slides and turns in it, an outer sleeve written from the far side."""
    rail, rpy = np.array([1.0, 0.2, 0.4]) / np.linalg.norm([1.0, 0.2, 0.4]), (0.2, 0.1, -0.4)
    carriage = arm('carriage', 0.3 * rail, rpy, 2.0, P=(0.1, 0.0, 0.0), Q=(0.0, 0.3, 0.1))
    axis = np.array([0.0, 0.6, 0.8])
    bored = place(carriage, 'Q') + rotated(rpy) @ axis * 0.2
    plunger = arm('plunger', bored, rpy, P=(0.0, 0.0, 0.1), Q=(0.2, 0.2, 0.2))
    back = (0.5, 0.0, 0.3)
    sleeve = arm('sleeve', place(plunger, 'Q'), back, 0.8, P=(0.0, -0.1, 0.0), Q=(0.3, 0.0, 0.0))
    return mechanism(
        'sliders', [carriage, plunger, sleeve],
        [joint('rail', 'prismatic', 'ground.O', 'carriage.P', rail, rpy),
         joint('bore', 'cylindrical', 'carriage.Q', 'plunger.P', axis),
         joint('sleeve', 'cylindrical', 'sleeve.P', 'plunger.Q', (1, 1, 0), relative_rpy(sleeve, plunger))],
        {'O': (0, 0, 0)}, [along('s', 'rail'), along('depth', 'bore'), along('cover', 'sleeve')],
        [spring('buffer', 'depth', 30.0, 0.1, 0.5), spring('coil', ('ground.O', 'sleeve.Q'), 10.0, 0.3, 0.2)],
        [force('push', 's', source='push'), force('spin', 'plunger:', direction=(0, 1, 2), source='spin'),
         force('pull', 'cover', (0.7,))])


def spatial_four_bar() -> MechanismDescription:
    """RSUR loop: crank about z, rocker about y, a ball and a cross at the coupler."""
    crank = arm('crank', (0, 0, 0), (0, 0, 0.8), P=(0, 0, 0), Q=(0.2, 0, 0))
    rocker = arm('rocker', (0.6, 0, 0), (0, -1.5, 0), 2.0, P=(0, 0, 0), Q=(0.5, 0, 0))
    gap = place(rocker, 'Q') - place(crank, 'Q')
    pitch, yaw = -np.arctan2(gap[2], np.hypot(gap[0], gap[1])), np.arctan2(gap[1], gap[0])
    coupler = arm('coupler', place(crank, 'Q'), (0, pitch, yaw), 1.5, P=(0, 0, 0), Q=(np.linalg.norm(gap), 0, 0))
    return mechanism('spatial_four_bar', [crank, rocker, coupler],
                     [joint('crank_pin', 'revolute', 'ground.A', 'crank.P', (0, 0, 1)),
                      joint('rocker_pin', 'revolute', 'ground.B', 'rocker.P', (0, -1, 0)),
                      joint('ball', 'spherical', 'crank.Q', 'coupler.P'),
                      joint('cross', 'universal', 'rocker.Q', 'coupler.Q', (0, 1, 0), axis2=(0, 0, 1))],
                     {'A': (0, 0, 0), 'B': (0.6, 0, 0)}, [along('theta', 'crank_pin'), along('swing', 'rocker_pin')],
                     [spring('coil', 'swing', 4.0, 1.2, 0.2)], [force('motor', 'theta', source='torque')])


def rccc() -> MechanismDescription:
    """A loop of a revolute and three cylindrical joints about skew axes."""
    corners = [np.array(p) for p in ((0.0, 0, 0), (0.4, 0.1, 0.3), (0.9, 0.5, 0.2), (0.8, -0.3, 0.0))]
    axes = [np.array(a) / np.linalg.norm(a) for a in ((0, 0, 1), (0.3, 1, 0.2), (1, -0.2, 0.5), (-0.1, 0.4, 1))]
    links = [arm(f'link{k}', corners[k], (0, 0, 0), P=(0, 0, 0), Q=tuple(corners[k + 1] - corners[k]))
             for k in range(3)]
    joints = [joint('j0', 'revolute', 'ground.A', 'link0.P', axes[0]),
              joint('j1', 'cylindrical', 'link0.Q', 'link1.P', axes[1]),
              joint('j2', 'cylindrical', 'link1.Q', 'link2.P', axes[2]),
              joint('j3', 'cylindrical', 'link2.Q', 'ground.B', axes[3])]
    return mechanism('rccc', links, joints, {'A': (0, 0, 0), 'B': tuple(corners[3])},
                     [along('theta', 'j0'), along('slide', 'j3')], [spring('coil', 'slide', 20.0, 0.1, 0.3)],
                     [force('motor', 'theta', source='torque')])


def spatial_slider_crank() -> MechanismDescription:
    """A planar slider-crank written in space: three constraints are redundant, the prismatic joint is cut."""
    crank = arm('crank', (0, 0, 0), (0, 0, 0.9), P=(0, 0, 0), Q=(0.1, 0, 0))
    tip = place(crank, 'Q')
    reach = np.sqrt(0.09 - tip[1] ** 2)
    rod = body('rod', 1.2, {'P': (0, 0, 0), 'Q': (0.3, 0, 0)}, at=tuple(tip), turn=(0, 0, -np.arctan2(tip[1], reach)))
    block = arm('block', (tip[0] + reach, 0, 0), (0, 0, 0), P=(0, 0, 0))
    z = (0, 0, 1)
    return mechanism('spatial_slider_crank', [crank, rod, block],
                     [joint('a', 'revolute', 'ground.O', 'crank.P', z), joint('b', 'revolute', 'crank.Q', 'rod.P', z),
                      joint('c', 'revolute', 'rod.Q', 'block.P', z),
                      joint('d', 'prismatic', 'ground.O', 'block.P', (1, 0, 0))], {'O': (0, 0, 0)},
                     [along('theta', 'a'), along('stroke', 'd')], (), [force('gas', 'stroke', source='gas')])


def rod_and_weld() -> MechanismDescription:
    """Two welded bodies on a ball, kept from the ground by a massless rod."""
    base = arm('base', (0, 0, 0), (0.1, 0.2, 0.3), P=(0, 0, 0), Q=(0.4, 0.1, 0.0))
    added = arm('added', place(base, 'Q'), (0.7, -0.2, 0.1), 0.6, P=(0.1, 0.1, 0.0), Q=(0.3, 0.3, 0.5))
    anchor = np.array([1.0, -0.5, 1.0])
    return mechanism('rod_and_weld', [base, added],
                     [joint('ball', 'spherical', 'ground.O', 'base.P'),
                      joint('weld', 'fixed', 'added.P', 'base.Q', rpy=relative_rpy(added, base)),
                      joint('rod', 'distance', 'added.Q', 'ground.C',
                            length=float(np.linalg.norm(anchor - place(added, 'Q'))))],
                     {'O': (0, 0, 0), 'C': tuple(anchor)}, (), (), [force('push', 'added.Q', direction=(1, 0, 0),
                                                                        source='push')])


def flyer() -> MechanismDescription:
    """A free body with a hinged flap, on a spring."""
    ship = arm('ship', (0.2, 0.1, 0.5), (0.4, -0.3, 1.0), 3.0, P=(0, 0, 0), Q=(0.5, 0.1, 0))
    flap = arm('flap', place(ship, 'Q'), (0.4, -0.3, 1.0), 0.5, P=(0.1, 0, 0), Q=(0.4, 0, 0.1))
    return mechanism('flyer', [ship, flap], [joint('hinge', 'revolute', 'ship.Q', 'flap.P', (0, 1, 0))],
                     {'O': (0, 0, 0)}, [along('flap_angle', 'hinge'), component('height', 'ship.P', 2)],
                     [spring('tether', ('ground.O', 'ship.P'), 12.0, 0.3, 0.5)],
                     [force('motor', 'flap_angle', source='torque'), force('wheel', 'ship:', direction=(0, 0, 1),
                                                                           source='wheel')])


def driven_crane() -> MechanismDescription:
    """A driven slewing axis and a driven boom with a free rod."""
    mast = arm('mast', (0, 0, 0), (0, 0, 0.2), 2.0, P=(0, 0, 0), Q=(0.1, 0, 1.0))
    boom = arm('boom', place(mast, 'Q'), (0, -0.4, 0.2), P=(0, 0, 0), Q=(1.0, 0, 0))
    load = body('load', 0.5, {'P': (0, 0, 0), 'Q': (0.1, 0.3, -0.7)}, at=tuple(place(boom, 'Q')), turn=(0, 0, 0.2))
    return mechanism('driven_crane', [mast, boom, load],
                     [joint('slew', 'revolute', 'ground.O', 'mast.P', (0, 0, 1)),
                      joint('luff', 'revolute', 'mast.Q', 'boom.P', (0, -1, 0)),
                      joint('swivel', 'universal', 'boom.Q', 'load.P', (0, 1, 0), axis2=(1, 0, 0))], {'O': (0, 0, 0)},
                     [along('slewing', 'slew'), along('luffing', 'luff')], (), (),
                     [Driver('slewing', 'slewing', '0.2 + 0.5*sin(2*t)'),
                      Driver('luff', 'luffing', '0.4 + rate*t**2')],
                     parameters={'rate': number(0.3, 'parameters.rate')})


SPATIAL: dict[str, Callable[[], MechanismDescription]] = {f.__name__: lru_cache(f) for f in (
    spatial_pendulum, ball_and_cross, sliders, spatial_four_bar, rccc, spatial_slider_crank, rod_and_weld, flyer,
    driven_crane)}
