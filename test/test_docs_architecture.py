# SPDX-License-Identifier: Apache-2.0
"""docs/architecture.md: all rooms in the order that test_architecture.py checks; files that are named exist."""

import re

from source_tree import ROOT
from test_architecture import ROOMS

TEXT = (ROOT / 'docs' / 'architecture.md').read_text()


def test_rooms_in_their_order():
    table = TEXT.partition('## Rooms')[2].partition('## A machine')[0]
    assert re.findall(r'^\| `(\w+)` \|', table, re.MULTILINE) == ROOMS


def test_files_exist():
    """Of files inside a room, with what follows a colon inside them."""
    found = re.findall(r'`((?:\w+/)+\w+\.py)(?:: (\w+)[\w.]*)?`', TEXT)
    assert len(found) > 20
    for path, name in found:
        source = (ROOT / 'mbse_ros' / path).read_text()
        assert not name or re.search(rf'^class {name}\b', source, re.MULTILINE), (path, name)
