# SPDX-License-Identifier: Apache-2.0
"""The text of a machine's file for another folder: the paths that it names lead where they did."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

PATHS = (('urdf',), ('urdf', 'file'), ('sources', 'definitions', '*'))      # from the folder of the file


def for_folder(text: str, file: str | Path, target: str | Path) -> str:
    """The text of ``file`` to be written as ``target``: with relative paths from the folder of that, or absolute ones
    where these are shorter. Text in the same folder stays as it is."""
    here, there = Path(file).resolve().parent, Path(target).resolve().parent
    if here == there:
        return text
    places = {node.start_mark.index: node for keys in PATHS
              for node in _scalars(yaml.compose(text, Loader=yaml.BaseLoader), keys)}
    for start, node in sorted(places.items(), reverse=True):
        whole = os.path.normpath(here / node.value)
        new = whole if os.path.isabs(node.value) else min(os.path.relpath(whole, there), whole, key=len)
        text = text[:start] + (new if new.isprintable() and set(new).isdisjoint(' :#{}[],&*!|>\'"%@`') else
                               json.dumps(new, ensure_ascii=False)) + text[node.end_mark.index:]
    return text


def _scalars(node: Any, keys: tuple[str, ...]) -> Iterator[yaml.ScalarNode]:
    """Texts under a path of keys, of which one may be any."""
    if isinstance(node, yaml.ScalarNode) and not keys:
        yield node
    elif isinstance(node, yaml.MappingNode) and keys:
        for name, value in node.value:
            if keys[0] in ('*', name.value):
                yield from _scalars(value, keys[1:])
