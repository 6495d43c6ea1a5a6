# SPDX-License-Identifier: Apache-2.0
"""Files of machines and mechanisms, robots and tables, changed by tokens, trees and bytes."""

from __future__ import annotations

import shutil
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import yaml
from linkage_mutations import KEYS, LOADER, copy, dump, good_trees, mutate, random_document, random_mechanism
from machine_mutations import machine_tree

from mbse_ros.api.bags import read_sensors
from mbse_ros.api.observability import _columns
from mbse_ros.bags.table import import_table
from mbse_ros.description.explain import explain
from mbse_ros.description.load import load_mechanism
from mbse_ros.dynamics.forces.motion_table import oddities, read_motion_table, row_motion
from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.errors import MbseError
from mbse_ros.machine import Machine
from mbse_ros.machine.reach import reach_of

from .kind import Case, Kind, refused
from .raw import NUMBERS, WORDS, mutate_bytes, mutate_text

CONFIG = Path(__file__).resolve().parents[2] / 'config'
HEAVY = 0.04        # share of the large machines among the files: they cost ten times as much
ROBOT = '''<?xml version="1.0"?>
<robot name="arm">
  <link name="base"><inertial><mass value="9"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <link name="boom"><inertial><origin xyz="0.1 0.2 0.3" rpy="0.4 -0.5 0.6"/><mass value="3"/>
    <inertia ixx="1" iyy="1.5" izz="2" ixy="0.1" ixz="-0.2" iyz="0.3"/></inertial>
    <visual><geometry><box size="1 1 1"/></geometry></visual></link>
  <link name="jib"><inertial><mass value="2"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="slide"/><link name="tool"/>
  <joint name="elbow" type="continuous"><origin xyz="1 0 0.2" rpy="0.3 0.2 -0.1"/><axis xyz="1 2 -2"/>
    <parent link="boom"/><child link="jib"/><dynamics damping="0.7" friction="0"/></joint>
  <joint name="shoulder" type="revolute"><origin xyz="0 0 0.5" rpy="0 1.2 0.7"/><axis xyz="0 0 1"/>
    <parent link="base"/><child link="boom"/><limit lower="-1" upper="2" effort="9" velocity="1"/></joint>
  <joint name="lift" type="prismatic"><origin rpy="0 0.5 0"/><parent link="jib"/><child link="slide"/>
    <limit lower="0.2" upper="0.6" effort="9" velocity="1"/></joint>
  <joint name="end" type="fixed"><origin xyz="0 0 0.1" rpy="1 0 0"/><parent link="slide"/><child link="tool"/></joint>
</robot>
'''
OF_ROBOT = 'format: mbse/mechanism/1\nname: m\ngravity: [0, 0, -9.81]\nurdf: robot.urdf\n'


def read_model(path: Path) -> Counter[str]:
    """What the package makes of a machine's or mechanism's file: read, explained, assembled, its cylinders moved."""
    try:
        description = load_mechanism(path)
        explain(description)
        if description.cylinders:
            reach_of(Machine(description))
        else:
            model = Model(description, backend='vm')
            model.accelerations(model.start.q, model.start.qd)
    except MbseError as error:
        return Counter([refused(error)])
    return Counter(['taken'])


class MachineFile(Kind):
    """Machines of the package, and one that uses every key."""

    def make(self, random: Random) -> Case:
        """x.yaml."""
        name = random.choice(heavy() if random.random() < HEAVY else light())
        return {'x.yaml': _changed_tree(copy(_tree(name)), _text(name), random)}

    def run(self, case: Case) -> Counter[str]:
        """Read it."""
        return read_model(self.folder / 'x.yaml')


class MechanismFile(MachineFile):
    """Mechanisms of the package, random linkages and documents."""

    def make(self, random: Random) -> Case:
        """x.yaml."""
        kind = random.random()
        if kind < 0.1:
            return {'x.yaml': dump(random_document(random)).encode('utf-8', 'replace')}
        tree = random_mechanism(random) if kind < 0.3 else random.choice(good_trees())
        return {'x.yaml': _changed_tree(tree, dump(tree), random)}


class RobotFile(MachineFile):
    """A URDF under a mechanism's file."""

    def make(self, random: Random) -> Case:
        """x.yaml and robot.urdf."""
        kind = random.random()
        if kind < 0.6:
            root = ElementTree.fromstring(ROBOT)
            for _ in range(random.choice([1, 1, 2, 4])):
                change_xml(root, random)
            text = ElementTree.tostring(root)
        elif kind < 0.8:
            text = mutate_text(ROBOT, random).encode('utf-8', 'replace')
        else:
            text = mutate_bytes(ROBOT.encode(), random)
        if random.random() < 0.03:
            entities = ''.join(f'<!ENTITY e{k + 1} "{f"&e{k};" * 10}">' for k in range(9))
            text = f'<!DOCTYPE robot [<!ENTITY e0 "x">{entities}]>'.encode() + text.replace(b'arm', b'&e9;', 1)
        head = OF_ROBOT if random.random() < 0.9 else mutate_text(OF_ROBOT, random)
        return {'x.yaml': head.encode('utf-8', 'replace'), 'robot.urdf': text}


class Table(Kind):
    """Samples as CSV with a map, those of a mechanism, and a motion."""

    def make(self, random: Random) -> Case:
        """t.csv and map.yaml, or m.csv."""
        if random.random() < 0.4:
            rows = [f'{0.01 * k:.2f},{5 * k},{500 + k},{0.2 + 0.01 * k:.3f}' for k in range(12)]
            return {'m.csv': _changed_rows(['t [s],theta1 [deg],theta1.velocity [deg/s],x', *rows], random)}
        rows = [f'{0.01 * k:.2f},{820 + k},{2e6 + k},{1e6 - k},5.{k % 10},{0.1 * k:.4f}' for k in range(12)]
        text = (CONFIG / 'maps' / 'patu655_measured.yaml').read_text()
        if random.random() < 0.4:
            tree = yaml.load(text, Loader=LOADER)
            mutate(tree, random)
            text = dump(tree) if random.random() < 0.7 else mutate_text(text, random)
        return {'t.csv': _changed_rows(['t,s1_mm,p1_pa,p2_pa,U1_V,encoder_1', *rows], random),
                'map.yaml': text.encode('utf-8', 'replace')}

    def run(self, case: Case) -> Counter[str]:
        """Import it, and read it as a mechanism's samples; or as motion and trajectory."""
        path, found = self.folder / 't.csv', []
        reads = [lambda: import_table(path, self.folder / 'map.yaml', self.folder / 'bag'),
                 lambda: read_sensors(path, load_model('five_bar', backend='vm'), ['encoder_1'])]
        if 'm.csv' in case:
            path = self.folder / 'm.csv'
            reads = [lambda: _columns(path), lambda: _moved(path)]
        for read in reads:
            try:
                read()
                found.append('taken')
            except MbseError as error:
                found.append(refused(error))
        shutil.rmtree(self.folder / 'bag', ignore_errors=True)
        return Counter(found[:1])        # one mutation, however often it is read


def _changed_rows(lines: list[str], random: Random) -> bytes:
    text = '\n'.join(lines) + '\n'
    data = (mutate_text(text, random) if random.random() < 0.8 else text).encode('utf-8', 'replace')
    return mutate_bytes(data, random) if random.random() < 0.3 else data


def _moved(path: Path) -> None:
    units = {'theta1': 'rad', 'x': 'm'}
    table = read_motion_table(path, units)
    oddities(table, units)
    for name in table.position:
        row_motion(table, name)


def change_xml(root: ElementTree.Element, random: Random) -> None:
    """One change of a random element: gone, twice, a thousand times, elsewhere, other tags, names and numbers."""
    places = [(parent, child) for parent in root.iter() for child in parent]
    if not places:
        return
    parent, child = random.choice(places)
    action = random.randrange(8)
    if action == 0:
        parent.remove(child)
    elif action == 1:
        parent.extend([child] * random.choice([1, 1, 1, 1, 1000]))
    elif action == 2:
        child.tag = random.choice(['link', 'joint', 'parent', 'child', 'origin', 'mimic', 'inertial', 'x', 'robot'])
    elif action == 3:
        random.choice(places)[1].append(ElementTree.Element(child.tag, child.attrib))
    elif child.attrib:
        name = random.choice(list(child.attrib))
        others = [value for _, one in places for value in one.attrib.values()]
        if action == 4:
            del child.attrib[name]
        elif action == 5:
            child.set(name, random.choice(others))
        else:
            parts = child.attrib[name].split() or ['']
            parts[random.randrange(len(parts))] = random.choice([*NUMBERS, *filter(str.isprintable, WORDS)])
            child.set(name, ' '.join(parts))


def _changed_tree(tree: dict, text: str, random: Random) -> bytes:
    """YAML of a tree with changes, or of its text."""
    if random.random() < 0.65:
        for _ in range(random.choice([1, 1, 2, 3])):
            mutate(tree, random)
        if random.random() < 0.2:
            _extreme(tree, random)
        text = dump(tree)
    else:
        text = mutate_text(text, random)
    data = text.encode('utf-8', 'replace')
    return mutate_bytes(data, random) if random.random() < 0.1 else data


def _extreme(tree: object, random: Random) -> None:
    """A value somewhere in the tree becomes a number or word out of raw, with the unit it had."""
    while isinstance(tree, dict | list) and tree:
        key = random.choice(list(tree)) if isinstance(tree, dict) else random.randrange(len(tree))
        if not isinstance(tree[key], dict | list):
            unit = str(tree[key]).partition(' ')[2]
            tree[key] = random.choice([f'{random.choice(NUMBERS)} {unit}', random.choice(WORDS), random.choice(KEYS)])
            return
        tree = tree[key]


@cache
def light() -> tuple[str, ...]:
    """Machines whose files are read at once."""
    return 'patu655_lift', 'lut_simple_crane', 'patu655_measured', 'patu655', ''


@cache
def heavy() -> tuple[str, ...]:
    """Excavators."""
    return 'zx200', 'zx200_can'


@cache
def _text(name: str) -> str:
    return (CONFIG / 'machines' / f'{name}.yaml').read_text() if name else dump(machine_tree())


@cache
def _tree(name: str) -> dict:
    return yaml.load(_text(name), Loader=LOADER)
