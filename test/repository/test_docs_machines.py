# SPDX-License-Identifier: Apache-2.0
"""docs/machine_yaml.md: its example and all fragments load, its message comes, it names every key and every file."""

import re

import pytest
import yaml
from cli_support import mbse, refused
from machine_mutations import machine_tree, misspelled
from machine_variants import laid_over
from source_tree import ROOT

from mbse_ros.description.load import known_machines, parse_mechanism
from mbse_ros.description.sections.load_sensors import _KINDS
from mbse_ros.errors import DescriptionError
from mbse_ros.machine import Machine

TEXT = (ROOT / 'docs' / 'machine_yaml.md').read_text()
BLOCKS = [yaml.load(block, Loader=yaml.BaseLoader) for block in re.findall(r'```yaml\n(.*?)```', TEXT, re.DOTALL)]


def whole(count: int) -> str:
    """The example with so many of the fragments laid over it."""
    tree = BLOCKS[0]
    for block in BLOCKS[1:count + 1]:
        tree = laid_over(tree, block)
    return yaml.safe_dump(tree, sort_keys=False)


@pytest.mark.parametrize('count', range(len(BLOCKS)))
def test_examples_are_machines(count):
    machine = Machine(parse_mechanism(whole(count)))
    assert machine.coordinates[-1] == 'lift' and len(machine.coordinates) == (1 if count == 0 else 2)


def test_what_the_fragments_say():
    machine = Machine(parse_mechanism(whole(len(BLOCKS))))
    assert machine.description.cylinders['lift'].count == 2 and machine.inclinations == ('pitch',)
    assert machine.description.hydraulics.valves['lift_valve'].kind == 'compensated'
    assert machine.measured_supplies == ('pump',) and machine.description.sensors['slew_angle'].resolution > 0
    for channel in machine.channels:
        kind, owner = channel.split('/')
        assert f'`{kind}/<' in TEXT or f'`{channel}`' in TEXT


def test_the_example_passes_the_check(tmp_path):
    (tmp_path / 'loader.yaml').write_text(whole(0))
    assert mbse('check', tmp_path / 'loader.yaml').status == 0


def test_the_message(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'loader.yaml').write_text(whole(0).replace('mass:', 'mas:', 1))
    assert f'```\n{refused("check", "loader.yaml")}\n```' in TEXT


def test_every_key_is_on_the_page():
    """The keys that the loader itself lists where one is wrong; those of bodies and joints are on the other page."""
    known = set(_KINDS)
    for _, text in misspelled():
        with pytest.raises(DescriptionError) as caught:
            parse_mechanism(text)
        _, keys, words = caught.value.expected.partition('one of the keys ')
        if keys:
            known |= set(words.partition(';')[0].split(', '))
    assert {'closed_length', 'gains', 'reference', 'resolution', 'pitch', 'limits'} <= known and machine_tree()
    assert not {key for key in known if not re.search(rf'[`.*{{ ]{key}\b', TEXT)}


def test_every_machine_is_on_the_page():
    assert [name for name in known_machines() if f'`{name}.yaml`' not in TEXT] == []
