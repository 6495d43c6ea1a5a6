# SPDX-License-Identifier: Apache-2.0
"""Wrong mechanism files: every one is refused with file, key path, value and what was expected."""

from pathlib import Path

import pytest
from linkage_mutations import REMOVED, changed

from mbse_ros.description.load import load_mechanism, parse_mechanism
from mbse_ros.errors import DescriptionError, DescriptionErrors

PLANE = """
format: mbse/mechanism/1
name: four_bar
gravity: 9.81
parameters: {crank: 2 m, coupler: 8, weight: 2 kg, start: 60 deg, ratio: 50 %, worth: {value: 1, stddev: 1 %}}
points:
  A: {fixed: [0, 0]}
  B: {fixed: {value: [10 m, 0 m], stddev: 1 mm}}
  P1: [crank*cos(start), crank*sin(start)]
  P2: [8.4, 4.7]
  P3: [5, 6]
bodies:
  crank: {points: [A, P1], length: crank, mass: 2 kg, uniform: true}
  coupler: {points: [P1, P2, P3], mass: 8, center_of_mass: [4, 0], inertia: 40 kg*m^2}
  rocker: {points: [P2, B], length: 5, mass: 5 kg, uniform: true}
  block: {points: {P3: [0, 0], edge: [0.1, 0]}, mass: 1, center_of_mass: [0, 0], inertia: 1, angle: 0}
joints:
  rod: {type: distance, parent: ground.A, child: block.edge, length: 7.8 m}
named:
  theta: {angle: crank}
  phi: {angle: [crank, rocker]}
  d: {distance: [A, P2]}
  x: {x: P2}
  r: {joint: A}
independent: [phi]
initial: {position: {x: 8.4 m, d: 9}, velocity: {phi: 1 rad/s}}
springs:
  bend: {bodies: [crank, coupler], stiffness: 5 kN*m/rad, free: 0, damping: 0}
  coil: {points: [P1, B], stiffness: 1 kN/m, free: 0.5 m}
forces:
  weight: {point: P2, force: [0, -100 N]}
  push: {point: P1, direction: [1, 0], input: F}
  motor: {body: crank, input: torque}
  constant: {coordinate: phi, value: 3 N*m}
drivers:
  drive: {coordinate: theta, motion: "1.2*(1 - cos(2*t))"}
sensors:
  encoder: {kind: encoder, coordinate: theta, stddev: 1 deg}
  gyro: {kind: gyro, body: coupler, stddev: 1e-3}
  imu: {kind: accelerometer, body: crank, point: P1, axes: [[1, 0], [0, 1]], stddev: 0.05}
  string: {kind: distance, points: [A, P2]}
  torque: {kind: force, driver: drive}
modules: {left: [crank, coupler], right: [rocker], both: [left, right]}
levels: [[left, right], [both], all]
"""
SPACE = """
format: mbse/mechanism/1
name: arm
dimension: 3
gravity: [0, 0, -9.81]
points: {base: {fixed: [0, 0, 1]}}
bodies:
  column:
    {points: {foot: [0, 0, 0], top: [0, 0, 1]}, mass: 9, center_of_mass: [0, 0, 1], inertia: {xx: 1, yy: 1, zz: 1}}
  arm: {points: {hinge: [0, 0, 0], tip: [1, 0, 0]}, mass: 2, uniform: true}
joints:
  slew: {type: revolute, parent: ground.base, child: column.foot, axis: [0, 0, 1], rpy: [0, 0, 0.1]}
  elbow: {type: universal, parent: column.top, child: arm.hinge, axis: [0, 1, 0], axis2: [0, 0, 1]}
named: {q: {joint: slew}, z: {z: arm.tip}}
springs: {friction: {coordinate: q, damping: 1}}
forces: {motor: {body: column, direction: [0, 0, 1], input: M}}
sensors: {gyro: {kind: gyro, body: arm}}
"""


def test_the_good_files_load():
    parse_mechanism(PLANE)
    parse_mechanism(SPACE)


BAR = {'points': ['P1', 'P3'], 'mass': 1, 'uniform': True}
FRAME = {'points': {'a': [0, 0], 'b': [1, 0]}, 'mass': 1, 'uniform': True}
SLIDE = {'type': 'prismatic', 'parent': 'ground.A', 'child': 'block.edge', 'axis': [1, 0]}
DISTANCE = {'type': 'distance', 'parent': 'ground.A', 'child': 'block.edge', 'length': 1}
ROLL = {'rolls': 'arm.tip', 'radius': '1 m', 'axis': [0, 1, 0], 'on': 'base'}
DRIVE = {'coordinate': 'phi', 'motion': '0'}
CASES = [
    ('nonholonomic/blade', {'point': 'block.edge', 'along': [0, 1]}, '', ''),
    ('nonholonomic/blade', {'point': 'block.edge', 'along': [0, 1, 0]}, 'nonholonomic.blade.along', '2 numbers'),
    ('nonholonomic/blade', {'point': 'block.edge'}, 'nonholonomic.blade.along', 'missing'),
    ('nonholonomic/blade', {'point': 'block.egde', 'along': [0, 1]}, 'nonholonomic.blade.point', 'did you mean edge?'),
    ('nonholonomic/blade', {'along': [0, 1]}, 'nonholonomic.blade', 'exactly one of the keys point, rolls'),
    ('nonholonomic/blade', ['block.edge'], 'nonholonomic.blade', 'a mapping'),
    ('nonholonomic/wheel', {'rolls': 'block.edge', 'radius': 1, 'axis': [0, 1]}, 'nonholonomic.wheel.axis', 'on'),
    ('friction/pin', {'joint': 'B', 'coefficient': 0.2, 'radius': '20 mm'}, '', ''),
    ('friction/pin', {'joint': 'B', 'coefficient': 0.2}, 'friction.pin.radius', 'of a revolute joint'),
    ('friction/pin', {'joint': 'B', 'coefficient': -0.2, 'radius': 1}, 'friction.pin.coefficient', 'from 0'),
    ('friction/pin', {'joint': 'B', 'coefficient': '.nan', 'radius': 1}, 'friction.pin.coefficient', 'a number'),
    ('friction/pin', {'joint': 'B', 'coefficient': 1, 'radius': 1, 'speed': 0}, 'friction.pin.speed', '1 m/s'),
    ('friction/pin', {'joint': 'rod', 'coefficient': 0.2}, 'friction.pin.joint', 'this one is distance'),
    ('friction/pin', {'joint': 'C', 'coefficient': 0.2}, 'friction.pin.joint', 'a joint'),
    ('friction', {name: {'joint': 'B', 'coefficient': 0.2, 'radius': 1} for name in ('one', 'two')},
     'friction.two.joint', 'without another friction'),
    ('quasi_velocities', {'turn': {'body': 'block'}, 'ahead': {'point': 'block.edge', 'along': [1, 0]}}, '', ''),
    ('quasi_velocities/turn', {'body': 'block', 'along': [1, 0]}, 'quasi_velocities.turn.along', 'body'),
    ('quasi_velocities/turn', {'body': 'blok'}, 'quasi_velocities.turn.body', 'did you mean block?'),
    ('quasi_velocities/ahead', {'point': 'block.edge'}, 'quasi_velocities.ahead.along', 'missing'),
    ('quasi_velocities/ahead', {'along': [1, 0]}, 'quasi_velocities.ahead', 'exactly one of the keys point, body'),
    ('quasi_velocities/phi', {'body': 'block'}, 'quasi_velocities.phi', 'another name'),
    # keys and head
    ('format', 'mbse/machine/1', 'format', '`mbse convert a.yaml -o NEW.yaml` rewrites it'),
    ('format', 'mbse/mechanism/3', 'format', 'mbse/machine/2'),
    ('gravity', REMOVED, 'gravity', 'missing'),
    ('gravity', 9810, 'gravity', 'from 0 to 100 m/s^2'),
    ('gravity', -9.81, 'gravity', 'from 0'),
    ('gravity', [0, 0, -9.81], 'gravity', '2 numbers x, y'),
    ('gravity', [0, -981], 'gravity[1]', 'from -100 to 100'),
    ('dimension', 4, 'dimension', '2 for a plane or 3 for space'),
    ('coordinates', 'natual', 'coordinates', 'did you mean natural?'),
    ('bodys', {}, 'bodys', 'did you mean bodies?'),
    ('bodies', REMOVED, 'bodies', 'exactly one of the keys bodies, urdf'),
    ('urdf', 'robot.urdf', 'bodies', 'exactly one of the keys bodies, urdf'),
    ('name', 'my four-bar', 'name', 'a name of letters'),
    ('source', ['me'], 'source', 'text'),
    # parameters and numbers
    ('parameters/crank', '2 mm/', 'parameters.crank', 'a number, text with a unit'),
    ('parameters/crank', 'coupler/4', 'parameters.crank', 'unknown name'),
    ('parameters/late', '2*crnk', 'parameters.late', 'did you mean crank?'),
    ('parameters/sin', '1', 'parameters.sin', 'has a meaning in arithmetic'),
    ('parameters/lambda', '1', 'parameters.lambda', 'has a meaning in arithmetic'),
    ('parameters/sum', 'crank + weight', 'parameters.sum', '+ of m and kg'),
    ('parameters/sum', 'max(crank, weight)', 'parameters.sum', 'max of m and kg'),
    ('parameters/sum', 'sin(crank)', 'parameters.sum', 'sin of m'),
    ('parameters/sum', '2**crank', 'parameters.sum', 'an exponent in m'),
    ('parameters/sum', '3*crank mm', 'parameters.sum', 'no unit behind arithmetic that is in m'),
    ('parameters/sum', '1/(crank - 2)', 'parameters.sum', 'divides by zero'),
    ('parameters/sum', 'exp(500)*exp(500)', 'parameters.sum', 'finite'),
    ('parameters/sum', '().__class__', 'parameters.sum', 'character'),
    ('parameters/worth', {'value': '1 m', 'stddev': '1 kg'}, 'parameters.worth.stddev', 'in m'),
    ('parameters/worth', {'value': 0, 'stddev': '1 %'}, 'parameters.worth.stddev', 'a percentage of 0'),
    ('parameters/worth', {'value': 1, 'stddev': -1}, 'parameters.worth.stddev', '0 or more'),
    ('bodies/crank/mass', 'crank', 'bodies.crank.mass', 'a number in kg instead of arithmetic that gives m'),
    ('bodies/crank/mass', '2*crank', 'bodies.crank.mass', 'gives m'),
    ('bodies/crank/mass', 'weight**2/weight + crank**0*weight*crank', 'bodies.crank.mass', '+ of kg and'),
    ('bodies/crank/mass', '2 m', 'bodies.crank.mass', "'m' is not a unit of kg"),
    ('bodies/crank/mass', -2, 'bodies.crank.mass', 'above 0'),
    ('bodies/crank/mass', 0, 'bodies.crank.mass', 'above 0'),
    ('bodies/crank/mass', '-weight', 'bodies.crank.mass', 'it is -2 kg'),
    ('bodies/crank/mass', 'nan', 'bodies.crank.mass', 'unknown name'),
    ('bodies/crank/mass', '1e400', 'bodies.crank.mass', 'a number above 0'),
    ('bodies/crank/mass', None, 'bodies.crank.mass', 'a number'),
    ('bodies/crank/mass', '1' * 600, 'bodies.crank.mass', 'longer than 500'),
    ('bodies/crank/length', 'start', 'bodies.crank.length', 'gives rad'),
    ('bodies/crank/length', 2000, 'bodies.crank.length', 'up to 1000 m'),
    ('bodies/rocker/length', {'value': 5, 'std': 1}, 'bodies.rocker.length.std', 'did you mean stddev?'),
    # points and bodies
    ('points/P1', [1, 2, 3], 'points.P1', '2 numbers'),
    ('points/P1', {'fix': [1, 2]}, 'points.P1.fix', 'did you mean fixed?'),
    ('points/P9', [1, 2], 'points.P9', 'a point that a body uses'),
    ('points/ground', [1, 2], 'points.ground', 'another name'),
    ('points/P1', ['0', {'value': 0, 'stddev': 1}], 'points.P1[1]', 'a number'),
    ('bodies/ground', BAR, 'bodies.ground', 'another name'),
    ('bodies/crank/points', ['A', 'P4'], 'bodies.crank.points[1]', 'a point of `points`'),
    ('bodies/crank/points', ['A'], 'bodies.crank.points', 'at least two different points'),
    ('bodies/crank/points', ['A', 'A'], 'bodies.crank.points', 'at least two different points'),
    ('bodies/crank/points', [], 'bodies.crank.points', 'at least two different points'),
    ('bodies/block/points', {}, 'bodies.block.points', 'at least one of points'),
    ('bodies/block/points', REMOVED, 'bodies.block.points', 'missing'),
    ('points/P1', [0, 0], 'bodies.crank.points', 'A and P1 coincide'),
    ('bodies/crank/position', [0, 0], 'bodies.crank.position', 'together with a list of points'),
    ('bodies/coupler/length', 3, 'bodies.coupler.length', 'shape of three or more points'),
    ('bodies/crank/inertia', 3, 'bodies.crank.inertia', 'together with `uniform: true`'),
    ('bodies/crank/uniform', 'yes', 'bodies.crank.uniform', 'true or false'),
    ('bodies/crank/uniform', False, 'bodies.crank.center_of_mass', 'missing'),
    ('bodies/coupler/inertia', REMOVED, 'bodies.coupler.inertia', 'or `uniform: true`'),
    ('bodies/coupler/inertia', -1, 'bodies.coupler.inertia', 'from 0'),
    ('bodies/coupler/inertia', {'xx': 1, 'yy': 1, 'zz': 1}, 'bodies.coupler.inertia', 'a tensor is for space'),
    ('bodies/coupler/center_of_mass', [4], 'bodies.coupler.center_of_mass', '2 numbers x, y'),
    ('bodies/block/rpy', [0, 0, 0], 'bodies.block.rpy', '`angle`, which turns a body in a plane'),
    ('bodies/block/position', [0, 0], 'bodies.block.position', 'placed by its point P3'),
    ('bodies/block/outline', ['P3', 'top'], 'bodies.block.outline[1]', 'a point of block'),
    ('bodies/block/points/B', [0, 0], 'bodies.block.points', 'P3 and B coincide'),
    ('bodies/free', FRAME, 'bodies.free', '`position` (a guess'),
    ('bodies/rocker/points', ['P3', 'P2'], '', ''),
    # joints
    ('joints/rod/type', 'spherical', 'joints.rod.type', 'a type of joint of dimension 2'),
    ('joints/rod/type', 'sldier', 'joints.rod.type', 'a type of joint of dimension 2'),
    ('joints/rod/type', REMOVED, 'joints.rod.type', 'missing'),
    ('joints/rod/length', REMOVED, 'joints.rod.length', 'missing'),
    ('joints/rod/axis', [1, 0], 'joints.rod.axis', 'one of the keys type'),
    ('joints/rod/child', 'ground.B', 'joints.rod.child', 'fixed to the ground'),
    ('joints/rod/parent', 'block.P3', 'joints.rod.child', 'another body than the parent'),
    ('joints/rod/child', 'block.edgy', 'joints.rod.child', 'did you mean edge?'),
    ('joints/rod/child', 'blok.edge', 'joints.rod.child', 'did you mean block?'),
    ('joints/rod/child', 'edge', 'joints.rod.child', 'block.edge'),
    ('joints/A', DISTANCE, 'joints.A', 'make a joint of this name'),
    ('joints/pin', {**SLIDE, 'child': 'crank.A'}, 'joints.pin', 'the point A of `points` is one already'),
    ('joints/pin', {**SLIDE, 'axis': [0, 0]}, 'joints.pin.axis', 'zero vector'),
    ('joints/pin', {**SLIDE, 'axis': ['crank', 0]}, 'joints.pin.axis[0]', 'a plain number instead of'),
    ('joints/pin', {**SLIDE, 'axis': ['coupler', 0]}, 'joints.pin.axis[0]', 'without parameters'),
    ('joints/pin', {**SLIDE, 'rpy': [0, 0, 0]}, 'joints.pin.rpy', 'angle'),
    ('joints/pin', {**SLIDE, 'start': '5 deg'}, 'joints.pin.start', 'not a unit of m'),
    # coordinates
    ('named/theta', {'angle': 'krank'}, 'named.theta.angle', 'did you mean crank?'),
    ('named/theta', {'angle': 'ground'}, 'named.theta.angle', 'a body'),
    ('named/theta', {'angle': ['crank', 'crank']}, 'named.theta.angle', 'two different bodies'),
    ('named/theta', {'angle': 'crank', 'x': 'P1'}, 'named.theta', 'exactly one of the keys'),
    ('named/theta', {}, 'named.theta', 'exactly one of the keys'),
    ('named/d', {'distance': ['A', 'B']}, 'named.d.distance', 'distance can change'),
    ('named/d', {'distance': ['crank.P1', 'coupler.P1']}, 'named.d.distance', 'distance can change'),
    ('named/d', {'distance': ['A', 'P2'], 'branches': True}, 'named.d.branches', 'for an angle'),
    ('named/x', {'x': 'A'}, 'named.x.x', 'fixed to the ground'),
    ('named/x', {'z': 'P2'}, 'named.x.z', 'a plane has no z'),
    ('named/x', {'joint': 'rod'}, 'named.x.joint', 'this one is distance'),
    ('named/x', {'joint': 'slide'}, 'named.x.joint', 'a joint: A'),
    ('independent', ['thetta'], 'independent[0]', 'did you mean theta?'),
    ('independent', ['theta'], 'independent[0]', 'no driver moves'),
    ('independent', ['phi', 'phi'], 'independent[1]', 'each coordinate once'),
    ('independent', [], 'independent', 'at least one'),
    ('independent', 'automatic', 'independent', 'or auto'),
    ('initial/position/theta', 0, 'initial.position.theta', 'a driver moves this coordinate'),
    ('initial/position/phy', 0, 'initial.position.phy', 'did you mean phi?'),
    ('initial/velocity/phi', '1 m/s', 'initial.velocity.phi', 'not a unit of rad/s'),
    ('initial/position/d', -1, 'initial.position.d', 'from 0'),
    ('initial/speed', {}, 'initial.speed', 'position, velocity'),
    # springs, forces, drivers
    ('springs/bend', {'coordinate': 'phi', 'damping': 1, 'bodies': ['crank', 'rocker']}, 'springs.bend', 'exactly one'),
    ('springs/bend/coordinate', 'phi', 'springs.bend', 'exactly one of the keys points, coordinate, bodies'),
    ('springs/bend', {'coordinate': 'psi', 'damping': 1}, 'springs.bend.coordinate', 'a coordinate of `named`'),
    ('springs/bend', {'coordinate': 'phi'}, 'springs.bend', 'stiffness and free, damping'),
    ('springs/bend', {'coordinate': 'phi', 'stiffness': 1}, 'springs.bend', '`stiffness` and `free`'),
    ('springs/bend/stiffness', '5 kN/m', 'springs.bend.stiffness', 'not a unit of N*m/rad'),
    ('springs/bend/stiffness', '-5 kN*m/rad', 'springs.bend.stiffness', 'from 0'),
    ('springs/bend/damping', -1, 'springs.bend.damping', 'from 0'),
    ('springs/phi', {'bodies': ['crank', 'rocker'], 'damping': 1}, 'springs.phi.bodies', 'there is a coordinate phi'),
    ('springs/coil/points', ['P1', 'A'], '', ''),
    ('springs/coil/points', ['crank.P1', 'crank.A'], 'springs.coil.points', 'distance can change'),
    ('forces/weight', {'force': [0, 1]}, 'forces.weight', 'exactly one of the keys point, body, coordinate'),
    ('forces/weight/body', 'crank', 'forces.weight', 'exactly one of the keys point, body, coordinate'),
    ('forces/weight/point', 'A', 'forces.weight.point', 'fixed to the ground'),
    ('forces/weight/force', [0, '1 kg'], 'forces.weight.force[1]', 'not a unit of N'),
    ('forces/weight/force', REMOVED, 'forces.weight', 'exactly one of the keys force, input'),
    ('forces/push/direction', REMOVED, 'forces.push.direction', 'missing'),
    ('forces/push/input', '2 N', 'forces.push.input', 'a name'),
    ('forces/motor/direction', [1, 0], 'forces.motor.direction', 'no `direction` here'),
    ('forces/motor/value', 3, 'forces.motor', 'exactly one of the keys value, input'),
    ('forces/constant/value', '3 N', 'forces.constant.value', 'not a unit of N*m'),
    ('drivers/second', {'coordinate': 'theta', 'motion': '0'}, 'drivers.second.coordinate', 'as drive does'),
    ('drivers/second', {'coordinate': 'phy', 'motion': '0'}, 'drivers.second.coordinate', 'did you mean phi?'),
    ('drivers/drive/motion', 'log(t)', 'drivers.drive.motion', 'log(0) is not a real'),
    ('drivers/drive/motion', 'sqrt(5 - t)', 'drivers.drive.motion', 'at t = 5.1 s'),
    ('drivers/drive/motion', 'exp(99*t)', 'drivers.drive.motion', 'too large'),
    ('drivers/drive/motion', 'crank*sin(t)', 'drivers.drive.motion', 'in rad instead of arithmetic that gives m'),
    ('drivers/drive/motion', 'sine(t)', 'drivers.drive.motion', 'did you mean sin?'),
    ('drivers/drive/motion', 't m', 'drivers.drive.motion', 'not a unit of rad'),
    ('drivers/drive/motion', None, 'drivers.drive.motion', 'arithmetic'),
    # sensors
    ('sensors/gyro/kind', 'giro', 'sensors.gyro.kind', 'did you mean gyro?'),
    ('sensors/gyro/kind', REMOVED, 'sensors.gyro.kind', 'missing'),
    ('sensors/gyro/coordinate', 'phi', 'sensors.gyro.coordinate', 'one of the keys kind, body, stddev'),
    ('sensors/gyro/stddev', '1 deg', 'sensors.gyro.stddev', 'not a unit of rad/s'),
    ('sensors/imu/body', REMOVED, 'sensors.imu.point', 'the key `body` as well'),
    ('sensors/imu/point', 'P2', 'sensors.imu.point', 'a point of crank'),
    ('sensors/imu/axes', [[1, 0, 0]], 'sensors.imu.axes[0]', '2 numbers'),
    ('sensors/imu/axes', [], 'sensors.imu.axes', 'at least one'),
    ('sensors/string/points', ['A', 'B'], 'sensors.string.points', 'distance can change'),
    ('sensors/torque/driver', 'motor', 'sensors.torque.driver', 'a driver: drive'),
    # modules and levels
    ('modules/left', ['crank', 'coupler', 'both'], 'modules.left', 'do not contain themselves'),
    ('modules/left', [], 'modules.left', 'at least one'),
    ('modules/left', ['crank', 'crank'], 'modules.left', 'each once'),
    ('modules/crank', ['rocker'], 'modules.crank', 'taken'),
    ('modules/left', ['crank', 'beam'], 'modules.left[1]', 'a body or a module'),
    ('modules/right', ['rocker', 'crank'], 'modules.both', 'crank belongs to left and to right'),
    ('levels', [['left', 'both'], 'all'], 'levels[0]', 'belongs to left and to both'),
    ('levels', [['left']], 'levels', 'the last one is `all`'),
    ('levels', ['all', 'all'], 'levels[0]', 'modules, or `all` as the last level'),
    ('levels', [['middle'], 'all'], 'levels[0][0]', 'a module: left'),
    ('levels', REMOVED, 'modules', '`levels` as well'),
]
SPACE_CASES = [
    ('coordinates', 'natural', 'coordinates', 'natural coordinates are for a plane'),
    ('points/P', [0, 0, 0], 'points.P', 'a body in space gives its own points'),
    ('bodies/arm/points', ['base', 'base'], 'bodies.arm.points', 'a list is for a plane'),
    ('bodies/arm/angle', 0, 'bodies.arm.angle', '`rpy`, which turns a body in space'),
    ('bodies/arm/points/tip', [1, 0], 'bodies.arm.points.tip', '3 numbers x, y, z'),
    ('bodies/column/inertia', 1, 'bodies.column.inertia', 'a mapping with the keys xx'),
    ('bodies/column/inertia', {'xx': 1, 'yy': 1, 'zz': 3}, 'bodies.column.inertia', 'sum of the other two'),
    ('bodies/column/inertia', {'xx': 1, 'yy': 1, 'zz': 1, 'xy': 2}, 'bodies.column.inertia', 'sum of the other two'),
    ('bodies/arm/points/tip', [0, 0, 0], 'bodies.arm.points', 'the ends of the rod coincide'),
    ('bodies/arm/points', {'hinge': [0, 0, 0]}, 'bodies.arm.points', 'two points, the ends of the rod'),
    ('joints/slew/type', 'slot', 'joints.slew.type', 'a type of joint of dimension 3'),
    ('joints/slew/axis', REMOVED, 'joints.slew.axis', 'missing'),
    ('joints/slew/angle', 0, 'joints.slew.angle', 'rpy'),
    ('joints/slew/rpy', [0, 0], 'joints.slew.rpy', 'three angles roll, pitch, yaw'),
    ('joints/elbow/axis2', [0, 1, 0], 'joints.elbow', 'perpendicular'),
    ('joints/elbow', REMOVED, 'bodies.arm', '`position` (a guess'),
    ('named/q', {'angle': 'arm'}, 'named.q.angle', 'is for a plane'),
    ('named/q', {'joint': 'elbow'}, 'named.q.joint', 'this one is universal'),
    ('springs/friction', {'bodies': ['arm', 'column'], 'damping': 1}, 'springs.friction.bodies', 'for a plane'),
    ('forces/motor/direction', REMOVED, 'forces.motor.direction', 'missing'),
    ('sensors/gyro/kind', 'inclinometer', '', ''),      # of its x axis above the horizontal
    ('nonholonomic/roll', ROLL, '', ''),
    ('nonholonomic/roll', {**ROLL, 'axis': [1, 0]}, 'nonholonomic.roll.axis', '3 numbers'),
    ('nonholonomic/roll', {**ROLL, 'axis': [0, 0, 0]}, 'nonholonomic.roll.axis', 'direction'),
    ('nonholonomic/roll', {**ROLL, 'radius': '-1 m'}, 'nonholonomic.roll.radius', 'above 0'),
    ('nonholonomic/roll', {**ROLL, 'radius': '.nan'}, 'nonholonomic.roll.radius', 'a number'),
    ('nonholonomic/roll', {**ROLL, 'on': 'arm.tip'}, 'nonholonomic.roll.on', 'of the ground'),
    ('nonholonomic/roll', {**ROLL, 'radus': 1}, 'nonholonomic.roll.radus', 'did you mean radius?'),
    ('nonholonomic/roll', {'rolls': 'arm.tip'}, 'nonholonomic.roll.radius', 'missing'),
    ('nonholonomic/roll', {'rolls': 'base', 'radius': 1}, 'nonholonomic.roll.rolls', 'a point of a body'),
]


def check(text, path, value, key, expected):
    if not expected:        # near the wrong ones, but right
        return parse_mechanism(changed(text, path, value))
    with pytest.raises(DescriptionError) as caught:
        parse_mechanism(changed(text, path, value), 'a.yaml')
    error = caught.value
    assert (error.file, error.key) == ('a.yaml', key) and expected in error.expected, str(error)
    assert '\n' not in error.finding and len(str(error)) < 1000
    assert path == 'bodies/crank/uniform' or not isinstance(error, DescriptionErrors), str(error)


@pytest.mark.parametrize('path, value, key, expected', CASES)
def test_planar(path, value, key, expected):
    check(PLANE, path, value, key, expected)


@pytest.mark.parametrize('path, value, key, expected', SPACE_CASES)
def test_spatial(path, value, key, expected):
    check(SPACE, path, value, key, expected)


def test_floating_linkage():
    text = changed(PLANE, 'points/A', [0, 0]).replace('ground.A', 'crank.A')
    text = changed(changed(text, 'points/B', [10, 0]), 'named/r', {'x': 'B'})
    with pytest.raises(DescriptionError, match='bodies.crank.*ties to the ground.*`position`'):
        parse_mechanism(text)


@pytest.mark.parametrize('name, expected', [
    ('four_bra', 'did you mean four_bar?'), ('n_four_bar:x', 'whole number'), ('n_four_bar:0', 'from 1 to'),
    ('n_four_bar:', 'whole number'), ('nowhere.yaml', 'readable text file'), ('', 'one of the mechanisms'),
])
def test_names(name, expected):
    with pytest.raises(DescriptionError, match=expected.replace('?', r'\?')) as caught:
        load_mechanism(name)
    assert caught.value.file == name and caught.value.key == ('' if name == 'nowhere.yaml' else 'mechanism')


def test_file_that_is_no_text(tmp_path: Path):
    (tmp_path / 'a.yaml').write_bytes(b'\xff\xfe\x00')
    with pytest.raises(DescriptionError, match='UTF-8'):
        load_mechanism(tmp_path / 'a.yaml')
