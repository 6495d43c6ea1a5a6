# SPDX-License-Identifier: Apache-2.0
"""Files no honest hand would write: refused in words, at once, without much memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from source_tree import ROOT

from mbse_ros.bags.bag import Bag
from mbse_ros.bags.table import import_table
from mbse_ros.description.language.document import read_document
from mbse_ros.description.load import load_mechanism
from mbse_ros.dynamics.model import Model
from mbse_ros.errors import BagError, DescriptionError, MbseError
from mbse_ros.machine import load_machine
from mbse_ros.report.files import read_table

LIFT = (ROOT / 'config' / 'machines' / 'patu655_lift.yaml').read_text()
LIMIT = 120.0       # s, of what takes well under one


@pytest.mark.parametrize('old, new, key', [
    ('time_constant: 4.5 ms', 'time_constant: 1e-300 s', 'time_constant'),
    ('time_constant: 4.5 ms', 'time_constant: 1 ns', 'time_constant'),
    ('laminar_pressure: 0.2 MPa', 'laminar_pressure: 1e-300 Pa', 'laminar_pressure'),
    ('laminar_pressure: 0.2 MPa', 'laminar_pressure: 1 Pa', 'laminar_pressure'),
])
def test_a_number_too_small_for_a_machine_is_refused(tmp_path: Path, old: str, new: str, key: str) -> None:
    assert old in LIFT
    path = tmp_path / 'machine.yaml'
    path.write_text(LIFT.replace(old, new))
    with pytest.raises(DescriptionError, match=f'{key}.*at least'):
        load_machine(path)


def test_a_fluid_too_stiff_for_any_step_is_refused(tmp_path: Path) -> None:
    from mbse_ros.streams.stages import ObserverStage
    path = tmp_path / 'machine.yaml'
    text = LIFT.replace('laminar_pressure: 0.2 MPa', 'laminar_pressure: 100 Pa')
    lines = ['      nominal_flow: 9 m^3/s' if line.strip().startswith('nominal_flow') else
             '      nominal_command: 1e-6 V' if line.strip().startswith('nominal_command') else line
             for line in text.splitlines()]
    path.write_text('\n'.join(lines))
    with pytest.raises(DescriptionError, match='rates up to'):
        ObserverStage(load_machine(path), backend='vm')


@pytest.mark.parametrize('text', ['- ' * 50_000, '? ' * 50_000, '[' * 50_000, '{a: ' * 20_000,
                                  '\n'.join(' ' * k + 'a:' for k in range(1_000))])
def test_nesting_without_end_is_refused(text: str) -> None:
    """In a process of its own: it was a segmentation fault."""
    code = ('import sys\nfrom mbse_ros.description.language.document import read_document\nfrom mbse_ros.errors import '
            'DescriptionError\ntry:\n    read_document(sys.stdin.read(), "f")\nexcept DescriptionError as error:\n'
            '    print("refused", error)')
    done = subprocess.run([sys.executable, '-c', code], input=text, capture_output=True, text=True, timeout=LIMIT,
                          cwd=ROOT)
    assert done.returncode == 0 and done.stdout.startswith('refused f: ')


def test_nesting_as_deep_as_allowed_is_read() -> None:
    assert read_document('- ' * 15 + 'a', 'f') is not None


@pytest.mark.parametrize('kind, count, expected', [('revolute', 2_000, 'at most 60 links that move'),
                                                   ('fixed', 6_000, 'at most 5000 links')])
def test_a_robot_of_thousands_of_links_is_refused(tmp_path: Path, kind: str, count: int, expected: str) -> None:
    with pytest.raises(DescriptionError, match=expected):
        load_mechanism(chain(tmp_path, kind, count))


def test_a_robot_that_is_all_fixed_has_nothing_to_move(tmp_path: Path) -> None:
    mechanism = load_mechanism(chain(tmp_path, 'fixed', 2_000))
    assert not mechanism.bodies and len(mechanism.ground) == 2_001
    with pytest.raises(DescriptionError, match='a body that can move'):
        Model(mechanism, backend='vm')


def chain(folder: Path, kind: str, count: int) -> Path:
    """Mechanism file of a robot of joints in a row."""
    links = ''.join(f'<link name="l{k}"/>' for k in range(count + 1))
    joints = ''.join(f'<joint name="j{k}" type="{kind}"><parent link="l{k}"/><child link="l{k + 1}"/></joint>'
                     for k in range(count))
    (folder / 'r.urdf').write_text(f'<robot name="r">{links}{joints}</robot>')
    (folder / 'm.yaml').write_text('format: mbse/mechanism/1\nname: m\ngravity: [0, 0, -9.81]\nurdf: r.urdf\n')
    return folder / 'm.yaml'


READERS = {
    'machine': ('m.yaml', lambda path: load_machine(path)),
    'table': ('t.csv', lambda path: import_table(path, ROOT / 'config' / 'maps' / 'patu655_measured.yaml',
                                                 path.with_name('bag'))),
    'map': ('map.yaml', lambda path: import_table(ROOT / 'README.md', path, path.with_name('bag'))),
    'bag': ('bag.mcap', lambda path: Bag(path)),
    'folder': ('folder/bag_0.mcap', lambda path: Bag(path.parent)),
    'database': ('folder/bag_0.db3', lambda path: Bag(path.parent)),
    'compressed': ('folder/bag_0.mcap.zstd', lambda path: Bag(path.parent)),
    'trajectory': ('motion.csv', lambda path: read_table(path)),
}


@pytest.mark.parametrize('reader', READERS)
def test_a_pipe_in_the_place_of_a_file_is_refused(tmp_path: Path, reader: str) -> None:
    name, read = READERS[reader]
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    os.mkfifo(path)
    with pytest.raises((MbseError, OSError), match='regular|readable|is not there'):
        read(path)


def test_a_pipe_beside_a_bag_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / 'metadata.yaml')
    (tmp_path / 'bag_0.mcap').write_bytes(b'x')
    with pytest.raises(BagError, match='metadata.yaml cannot be read.*not a regular file'):
        Bag(tmp_path)
