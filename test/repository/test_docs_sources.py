# SPDX-License-Identifier: Apache-2.0
"""docs/sources.md: its example is a map, its paths are paths, it names every key and every shipped map."""

import re

from source_tree import ROOT

from mbse_ros.sources import map as maps
from mbse_ros.sources.fields import parse_path

TEXT = (ROOT / 'docs' / 'sources.md').read_text()


def test_the_example_is_a_map():
    example, definitions = re.findall(r'```yaml\n(.*?)```', TEXT, re.DOTALL)
    found = maps.parse_sources(example)
    assert len(found.channels) == 7 and len(found.channels['pressure/pump']) == 2
    assert found.channels['pressure/boom_rod'][0].rate == 100.0
    assert definitions.startswith('definitions:\n  rig_msgs/msg/Hydraulics: ')


def test_paths_of_the_table_are_paths():
    table = TEXT.partition('### Paths')[2].partition('### Stamps')[0]
    paths = [text.replace('\\|', '|') for text in re.findall(r'^\| `([^`]+)`', table, re.MULTILINE)]
    assert len(paths) >= 6
    for text in paths:
        parse_path(text)


def test_every_key_is_there():
    table = TEXT.partition('| key of a channel |')[2].partition('### Paths')[0]
    keys = set(re.findall(r'^\| `(\w+)` \|', table, re.MULTILINE))
    assert keys == {'topic', 'path', 'unit', *maps._OF_CHANNEL}
    assert 'definitions' in table and '`name`' in table
    for name in maps.known_sources():
        assert f'config/sources/{name}.yaml' in TEXT
