# SPDX-License-Identifier: Apache-2.0
"""Every type of joint, coordinate, force, spring, driver and sensor that the language has, to be put together."""

PLANE = '''format: mbse/machine/2
name: x
gravity: 9.81
points: {A: {fixed: [0, 0]}, G: {fixed: [0.3, -1.5]}}
bodies:
  arm: {points: {O: [0, 0], P: [1, 0.1]}, mass: 2, center_of_mass: [0.4, 0.1], inertia: 0.3}
  tool: {points: {Q: [0.1, 0.2], T: [0.8, 0.1]}, mass: 1, center_of_mass: [0.3, 0.15], inertia: 0.1
         , position: [0.9, 0.45], angle: 0.55}
joints:
  hinge: {type: revolute, parent: ground.A, child: arm.O, start: 0.4}
'''
SPACE = '''format: mbse/machine/2
name: x
dimension: 3
gravity: [0.5, 0, -9.8]
points: {A: {fixed: [0, 0, 0]}, G: {fixed: [0.3, 0.4, -1.5]}}
bodies:
  arm: {points: {A: [0, 0, 0], P: [1, 0.1, 0.05]}, mass: 2, center_of_mass: [0.4, 0.1, 0.2]
        , inertia: {xx: 0.2, yy: 0.3, zz: 0.25, xy: 0.02}}
  tool: {points: {Q: [0.1, 0.2, -0.1], T: [0.8, 0.1, 0.2]}, mass: 1, center_of_mass: [0.3, 0.15, 0.1]
         , inertia: {xx: 0.1, yy: 0.12, zz: 0.15, xz: 0.01}}
joints:
  hinge: {type: revolute, parent: ground.A, child: arm.A, axis: [0.1, -1, 0.2], start: 0.4}
'''
ENDS = 'parent: arm.P, child: tool.Q'
JOINTS = {
    2: {'revolute': f'{{type: revolute, {ENDS}, start: 0.15}}',
        'prismatic': f'{{type: prismatic, {ENDS}, axis: [1, 0.2], angle: 0.15, start: 0.1}}',
        'slot': f'{{type: slot, {ENDS}, axis: [1, 0.2], start: 0.1}}', 'fixed': f'{{type: fixed, {ENDS}, angle: 0.15}}',
        'distance': '{type: distance, parent: arm.P, child: tool.T, length: 0.7}'},
    3: {'revolute': f'{{type: revolute, {ENDS}, axis: [0.1, 1, 0.3], rpy: [0.2, 0, 0.1], start: 0.3}}',
        'prismatic': f'{{type: prismatic, {ENDS}, axis: [1, 0.2, 0], rpy: [0.2, 0, 0.1], start: 0.1}}',
        'cylindrical': f'{{type: cylindrical, {ENDS}, axis: [1, 0.2, 0.1], rpy: [0.2, 0, 0.1], start: 0.1}}',
        'spherical': f'{{type: spherical, {ENDS}, rpy: [0.2, 0.3, 0.1]}}',
        'universal': f'{{type: universal, {ENDS}, axis: [0, 1, 0], axis2: [1, 0, 0], rpy: [0.2, 0.1, 0.3]}}',
        'fixed': f'{{type: fixed, {ENDS}, rpy: [0.2, 0, 0.1]}}',
        'distance': '{type: distance, parent: arm.P, child: tool.T, length: 0.7}'}}
OF_JOINT = {2: ('revolute', 'prismatic', 'slot'), 3: ('revolute', 'prismatic', 'cylindrical')}  # have a coordinate
TURNING = {2: ('revolute',), 3: ('revolute',)}          # whose coordinate is an angle


def unit(dimension, joint, angle, length):
    return angle if joint in TURNING[dimension] else length


def named(dimension, joint):
    """Coordinates by all kinds; those of the joint where it has one."""
    found = {'h': '{joint: hinge}', 'd': '{distance: [tool.T, ground.G]}', 'x': '{x: tool.T}', 'y': '{y: arm.P}'}
    if dimension == 2:
        found |= {'a': '{angle: tool}', 'r': '{angle: [arm, tool]}', 'b': '{angle: arm, branches: true}'}
    else:
        found |= {'z': '{z: tool.T}'}
    return found | ({'j': '{joint: joint}'} if joint in OF_JOINT[dimension] else {})


def vector(dimension, *numbers):
    return '[' + ', '.join(map(str, numbers[:dimension])) + ']'


def forces(dimension, joint):
    """On points, bodies and coordinates: constant, and inputs."""
    along = f'direction: {vector(dimension, 0.3, -1.0, 0.5)}, '
    turning = along * (dimension == 3)
    found = {'fp': f'{{point: tool.T, force: {vector(dimension, 3, -4, 2)}}}',
             'ip': f'{{point: tool.T, {along}input: u1}}', 'fb': f'{{body: tool, {turning}value: 1.5}}',
             'ib': f'{{body: tool, {turning}input: u2}}',
             'fc': '{coordinate: d, value: 2}', 'ic': '{coordinate: x, input: u3}',
             'fh': '{coordinate: h, value: 2 N*m}', 'ih': '{coordinate: hinge, input: u4}'}
    return found | ({'fj': '{coordinate: j, value: 2}', 'ij': '{coordinate: j, input: u1}'}
                    if joint in OF_JOINT[dimension] else {})


def springs(dimension, joint):
    found = {'sp': '{points: [tool.T, ground.G], stiffness: 20, free: 0.4, damping: 2}',
             'sc': '{coordinate: d, stiffness: 20, free: 0.5, damping: 1}', 'sh': '{coordinate: h, damping: 2}'}
    if dimension == 2:
        found |= {'sb': '{bodies: [arm, tool], stiffness: 3, free: 0.2, damping: 0.5}'}
    return found | ({'sj': '{coordinate: j, stiffness: 3, free: 0.1}'} if joint in OF_JOINT[dimension] else {})


def drivers(dimension, joint):
    found = {'h': '{coordinate: h, motion: 0.4 + 0.3*sin(2*t)}',
             'd': '{coordinate: d, motion: "START + 0.05*sin(2*t)"}'}
    if dimension == 2:
        found |= {'a': '{coordinate: a, motion: "START + 0.1*sin(2*t)"}'}
    return found | ({'j': '{coordinate: j, motion: "START + 0.1*sin(2*t)"}'} if joint in OF_JOINT[dimension] else {})


def sensors(dimension, joint, driver=''):
    more = f'axes: [{vector(dimension, 1, 0.5, 0.2)}], gravity: false, '
    found = {f'e{name}': f'{{kind: encoder, coordinate: {name}, stddev: 1e-3}}' for name in named(dimension, joint)}
    found |= {'rate': '{kind: rate, coordinate: d}', 'rh': '{kind: rate, coordinate: hinge}',
              'position': f'{{kind: position, point: tool.T, bias: {vector(dimension, 0.1, 0.2, 0.3)}}}',
              'velocity': '{kind: velocity, point: tool.T}', 'gyro': '{kind: gyro, body: tool}',
              'acc': '{kind: accelerometer, point: tool.T}', 'acx': f'{{kind: accelerometer, {more}point: tool.T}}',
              'distance': '{kind: distance, points: [tool.T, ground.G]}', 'incl': '{kind: inclinometer, body: tool}'}
    return found | ({'force': f'{{kind: force, driver: {driver}}}'} if driver else {})


def text(dimension, joint, driver='', start=0.0, noise=False):
    """All of it on two bodies joined by one type of joint; ``driver`` on a coordinate that starts at ``start``;
    ``noise``: every sensor has some."""
    sections = {'named': named(dimension, joint), 'forces': forces(dimension, joint),
                'springs': springs(dimension, joint), 'sensors': sensors(dimension, joint, driver)}
    if noise:
        sections['sensors'] = {name: item if 'stddev' in item or name == 'force' else item[:-1] + ', stddev: 0.01}'
                               for name, item in sections['sensors'].items()}
    if driver:
        sections['drivers'] = {driver: drivers(dimension, joint)[driver].replace('START', repr(start))}
    base = (PLANE, SPACE.replace('  tool: {', '  tool: {position: [1.1, 0.3, 0.5], ') if joint == 'distance' else SPACE)
    return base[dimension - 2] + f'  joint: {JOINTS[dimension][joint]}\n' + ''.join(
        f'{section}:\n' + ''.join(f'  {name}: {item}\n' for name, item in items.items())
        for section, items in sections.items())
