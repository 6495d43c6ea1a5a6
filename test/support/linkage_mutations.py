# SPDX-License-Identifier: Apache-2.0
"""Random mechanism files: good ones with random changes, and random ones out of the format's own words."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from random import Random

import yaml

FOLDER = Path(__file__).resolve().parents[2] / 'config' / 'mechanisms'
LOADER, DUMPER = getattr(yaml, 'CBaseLoader', yaml.BaseLoader), getattr(yaml, 'CDumper', yaml.Dumper)
REMOVED = '(removed)'     # a word that no file says
WORDS = ['', '0', '-1', '1', '1e-9', '1e9', '1e300', '.nan', '.inf', 'on', 'null', 'true', 'false', 'auto', 'all',
         '5 %', '-5 deg', '90 deg', '1 kg', '3 mm', '2 m', '10 MPa', '7 furlong', '1 degC', 'ground', 'ground.A',
         'crank.P1', 'A', 'B', 'P1', 'crank', 'coupler', 'theta', 'revolute', 'prismatic', 'slot', 'fixed', 'distance',
         'spherical', 'universal', 'natural', 'relative', 'reference_point', '2*L', 'sqrt(13)', 'crank/0', 'sqrt(-1)',
         '__class__', 'lambda: 1', '9**9**9', '(' * 300, 'sin(t)', '1/t', 'exp(t*t*t)', '%', 'é',
         '1 ' + 'm*' * 50 + 'm']
KEYS = ['name', 'source', 'dimension', 'gravity', 'coordinates', 'parameters', 'points', 'bodies', 'joints', 'named',
        'independent', 'initial', 'springs', 'forces', 'drivers', 'sensors', 'modules', 'levels', 'urdf', 'fixed',
        'length', 'mass', 'uniform', 'center_of_mass', 'inertia', 'position', 'angle', 'rpy', 'outline', 'type',
        'parent', 'child', 'axis', 'axis2', 'start', 'distance', 'joint', 'x', 'y', 'z', 'stiffness', 'free', 'damping',
        'point', 'force', 'input', 'direction', 'value', 'stddev', 'coordinate', 'motion', 'kind', 'body', 'axes',
        'velocity', 'branches', 'xx', 'yy', 'zz']


def good_trees() -> list[dict]:
    """The mechanisms of config/, as dictionaries, lists and text."""
    return [copy(tree) for tree in _good_trees()]


@lru_cache(maxsize=1)
def _good_trees() -> list[dict]:
    return [yaml.load(path.read_text(encoding='utf-8'), Loader=LOADER) for path in sorted(FOLDER.glob('*.yaml'))]


def dump(tree: object) -> str:
    """The tree as YAML."""
    return yaml.dump(tree, Dumper=DUMPER, allow_unicode=True, sort_keys=False)


def copy(tree: object) -> object:
    """The tree again, with no part shared."""
    if isinstance(tree, dict):
        return {key: copy(item) for key, item in tree.items()}
    return [copy(item) for item in tree] if isinstance(tree, list) else tree


def changed(text: str, path: str, value: object) -> str:
    """YAML text with one key replaced, added or (REMOVED) taken out; '/' divides the keys."""
    tree = copy(_tree(text))
    *way, last = path.split('/')
    place = tree
    for key in way:
        place = place[int(key)] if isinstance(place, list) else place.setdefault(key, {})
    if value is REMOVED:
        del place[last]
    else:
        place[int(last) if isinstance(place, list) else last] = value
    return dump(tree)


@lru_cache
def _tree(text: str) -> object:
    return yaml.load(text, Loader=LOADER)


def random_tree(random: Random, depth: int = 3) -> object:
    """Words in lists and dictionaries."""
    kind = random.randrange(4) if depth else 0
    if kind < 2:
        return random.choice(WORDS) if random.random() < 0.8 else str(random.uniform(-10.0, 10.0))
    if kind == 2:
        return [random_tree(random, depth - 1) for _ in range(random.randrange(4))]
    return {random.choice(KEYS + WORDS): random_tree(random, depth - 1) for _ in range(random.randrange(5))}


def mutate(tree: dict, random: Random) -> None:
    """One change at a random place."""
    ways = _places(tree)
    if not ways:
        return
    *way, last = random.choice(ways)
    parent = tree
    for key in way:
        parent = parent[key]
    number, _, unit = parent[last].partition(' ') if isinstance(parent[last], str) else ('', '', '')
    action = random.choice(['delete', 'rename', 'replace', 'swap', 'move', 'repeat', *10 * ['scale']])
    if action == 'delete':
        del parent[last]
    elif action == 'scale' and number.strip('-').replace('.', '').isdigit():
        factor = random.choice([0.5, 0.9, 1.01, 1.1, 2.0, -1.0, 0.0, 1e3, 1e-3, 1e300])
        parent[last] = f'{float(number) * factor} {unit}'.strip()
    elif action == 'swap':
        parent[last] = copy(_at(tree, random.choice(ways)))
    elif action in ('replace', 'scale'):
        parent[last] = random_tree(random, 0 if isinstance(parent[last], str) else 2)
    elif isinstance(parent, list):
        parent.insert(0, copy(parent[last]))
    elif action == 'rename':
        parent[random.choice(WORDS + KEYS)] = parent.pop(last)
    elif action == 'move':
        tree[last] = parent.pop(last)
    else:
        parent[str(last) + random.choice(['2', '_b', ' '])] = copy(parent[last])


def mutated(random: Random) -> dict:
    """A good file with one to three changes."""
    tree = random.choice(good_trees())
    for _ in range(random.choice([1, 1, 2, 3])):
        mutate(tree, random)
    return tree


def random_document(random: Random) -> object:
    """Words in any order, under a head that lets the reader go on."""
    tree = random_tree(random, 4)
    if isinstance(tree, dict):
        tree.update(format='mbse/mechanism/1', name='random', gravity='9.81')
        tree.update((key, random_tree(random)) for key in random.sample(KEYS[4:18], 3))
    return tree


def random_mechanism(random: Random) -> dict:
    """A planar linkage of random points and bodies that uses most keys of the format; many of them are sound."""
    def some(names: list[str], count: int) -> list[str]:
        return random.sample(names, min(count, len(names)))

    def number(low: float, high: float) -> str:
        return f'{random.uniform(low, high):.4g}'

    fixed, loose = [f'G{i}' for i in range(random.randint(1, 3))], [f'P{i}' for i in range(random.randint(1, 4))]
    points = {name: {'fixed': [number(-3, 3), number(-3, 3)]} for name in fixed}
    points.update((name, [number(-3, 3), number(-3, 3)]) for name in loose)
    chain = [random.choice(fixed), *loose, *([random.choice(fixed)] if random.random() < 0.7 else [])]
    bodies: dict[str, dict] = {f'bar{i}': {'points': [one, two]} for i, (one, two) in enumerate(zip(chain, chain[1:]))}
    if random.random() < 0.3 and len(points) > 3:
        bodies['plate'] = {'points': some(list(points), 3)}
    for body in bodies.values():
        body['mass'] = number(0.5, 9) + random.choice([' kg', '', ' g', 'e3 kg'])
        if random.random() < 0.6:
            body['uniform'] = 'true'
        else:
            body.update(center_of_mass=[number(-1, 1), number(-1, 1)], inertia=number(0, 2))
    names = list(bodies)
    named = {'theta': {'angle': random.choice(names)}, 'phi': {'angle': some(names, 2)},
             'x': {'x': random.choice(loose)}, 'd': {'distance': some(list(points), 2)}}
    tree = {'format': 'mbse/mechanism/1', 'name': 'random', 'gravity': '9.81', 'points': points, 'bodies': bodies,
            'coordinates': random.choice(['natural', 'reference_point', 'relative']),
            'named': {name: named[name] for name in some(list(named), random.randint(1, 4))}}
    extras = {
        'springs': {'coil': {'points': some(list(points), 2), 'stiffness': '1 kN/m', 'free': number(0, 1)}},
        'forces': {'push': {'point': random.choice(loose), 'force': [number(-9, 9), number(-9, 9)]},
                   'motor': {'coordinate': random.choice(list(named)), 'input': 'torque'}},
        'drivers': {'drive': {'coordinate': random.choice(list(named)), 'motion': random.choice(['t', 'sin(t)', '1'])}},
        'sensors': {'gyro': {'kind': 'gyro', 'body': random.choice(names)},
                    'imu': {'kind': 'accelerometer', 'body': names[0], 'point': chain[1], 'stddev': '0.05'}},
        'initial': {'velocity': {random.choice(list(named)): number(-1, 1)}},
        'independent': some(list(named), random.randint(1, 2))}
    tree.update((name, extras[name]) for name in extras if random.random() < 0.25)
    return tree


def _places(tree: object, way: tuple = ()) -> list[tuple]:
    """All paths into a tree of dictionaries and lists."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [found for key, item in pairs for found in ((*way, key), *_places(item, (*way, key)))]


def _at(tree: object, way: tuple) -> object:
    for key in way:
        tree = tree[key]
    return tree
