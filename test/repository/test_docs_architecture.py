# SPDX-License-Identifier: Apache-2.0
"""docs/architecture.md: all rooms in the order that test_architecture.py checks; files that are named exist."""

import re

from source_tree import ROOT
from test_architecture import ROOMS

BANDS = {'errors': ('basis',), 'mechanism': ('model',), 'filters': ('estimation',), 'simulation': ('data',),
         'offline': ('use',), 'nodes': ('surface',)}        # titles of one word, before their first room
TEXT = (ROOT / 'docs' / 'architecture.md').read_text()


def test_rooms_in_their_order():
    table = TEXT.partition('## Rooms')[2].partition('## A machine')[0]
    assert re.findall(r'^\| `(\w+)` \|', table, re.MULTILINE) == ROOMS


def test_the_picture_shows_all_rooms():
    """From the ground up, too: the lowest band comes first in the file."""
    assert re.findall(r'>(\w+)</text>', (ROOT / 'docs' / 'images' / 'rooms.svg').read_text()) == [
        word for room in ROOMS for word in BANDS.get(room, ()) + (room,)]


def test_files_exist():
    """Of files inside a room, with what follows a colon inside them."""
    found = re.findall(r'`((?:\w+/)+\w+\.py)(?:: (\w+)[\w.]*)?`', TEXT)
    assert len(found) > 20
    for path, name in found:
        source = (ROOT / 'mbse_ros' / path).read_text()
        assert not name or re.search(rf'^class {name}\b', source, re.MULTILINE), (path, name)
