# SPDX-License-Identifier: Apache-2.0
"""A machine file of the first format as text of the present one; what did not change keeps its comments and layout."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from .language.document import read_document
from .language.entry import Entry
from .load import FORMAT, OLD

_PLAIN = re.compile(r'[A-Za-z0-9+.-][A-Za-z0-9 +.*/^%_-]*')


def convert_text(text: str, file: str = 'text') -> str:
    """The text in the present format: `ground` becomes `points`, `sensors` get names.

    Raises DescriptionError for another format, and for these sections where they are not as that format had them.
    """
    root = Entry(file, '', read_document(text, file))
    given = root.value.get('format') if isinstance(root.value, dict) else None
    if given != OLD:
        raise root.error(OLD, given, 'format')
    tree: Any = yaml.compose(text, Loader=yaml.BaseLoader)
    lines = text.splitlines()
    starts = [key.start_mark.line for key, _ in tree.value]
    if tree.flow_style or len(set(starts)) < len(starts):
        raise root.error('each key of the file on a line of its own', 'a mapping in braces')
    result = lines[:starts[0]]
    for (key, _), start, end in zip(tree.value, starts, [*starts[1:], len(lines)]):
        block, name = lines[start:end], key.value
        entry = Entry(file, name, root.value[name])
        result += [*_CHANGED[name](entry), *_trailing(block)] if name in _CHANGED else block
    return '\n'.join(result) + '\n'


def _trailing(block: list[str]) -> list[str]:
    """Blank lines and comments at the left margin that end a block: they belong to what follows."""
    count = 0
    while count < len(block) - 1 and (not block[-1 - count].strip() or block[-1 - count].startswith('#')):
        count += 1
    return block[len(block) - count:]


def flow_text(value: object) -> str:
    """A value on one line."""
    if isinstance(value, dict):
        return '{' + ', '.join(f'{key}: {flow_text(item)}' for key, item in value.items()) + '}'
    if isinstance(value, list):
        return '[' + ', '.join(map(flow_text, value)) + ']'
    text = '' if value is None else str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _format(entry: Entry) -> list[str]:
    return [f'format: {FORMAT}', 'dimension: 3']


def _ground(entry: Entry) -> list[str]:
    points = entry.mapping(['points'])['points'].named('points')
    return ['points:'] + [f'  {name}: {{fixed: {flow_text(point.value)}}}' for name, point in points.items()]


def _sensors(entry: Entry) -> list[str]:
    lines = ['sensors:']
    parts = entry.mapping(['position'], ['pressure'])
    for kind, words, end in (('position', 'kind: stroke, cylinder', '_stroke'), ('pressure', 'kind: pressure, volume',
                                                                               '')):
        for owner, noise in (parts[kind].named('sensors').items() if kind in parts else ()):
            stddev = flow_text(noise.mapping(['stddev'])['stddev'].value)
            lines.append(f'  {owner}{end}: {{{words}: {owner}, stddev: {stddev}}}')
    return lines

_CHANGED = {'format': _format, 'ground': _ground, 'sensors': _sensors}
