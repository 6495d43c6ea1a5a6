# SPDX-License-Identifier: Apache-2.0
"""A machine file of the first format as text of the present one; what did not change keeps its comments and layout."""

from __future__ import annotations

from pathlib import Path

import yaml

from ..errors import DescriptionError
from .entry import Entry
from .document import read_document
from .load import FORMAT, OLD

__all__ = ['convert_file', 'convert_text']


def convert_file(path: Path, target: Path) -> None:
    """Write the converted file; raises DescriptionError for another format or a target that exists."""
    try:
        text = path.read_text(encoding='utf-8')
    except (OSError, UnicodeDecodeError) as error:
        raise DescriptionError(str(path), '', str(error), 'a readable text file in UTF-8') from error
    converted = convert_text(text, str(path))
    if target.exists():
        raise DescriptionError(str(target), '', 'a file that exists', 'the name of a new file')
    target.write_text(converted, encoding='utf-8')


def convert_text(text: str, file: str = 'text') -> str:
    """The text in the present format: `ground` becomes `points`, `sensors` are named; raises DescriptionError."""
    root = Entry(file, '', read_document(text, file))
    given = root.value.get('format') if isinstance(root.value, dict) else None
    if given != OLD:
        raise root.error(OLD, given, 'format')
    tree = yaml.compose(text)
    lines, result = text.splitlines(), []
    keys = [(key.value, key.start_mark.line, value) for key, value in tree.value]
    ends = [line for _, line, _ in keys[1:]] + [len(lines)]
    result += lines[:keys[0][1]]
    for (name, start, value), end in zip(keys, ends):
        block = lines[start:end]
        result += _CHANGED[name](text, value) + _trailing(block) if name in _CHANGED else block
    return '\n'.join(result) + '\n'


def _trailing(block: list[str]) -> list[str]:
    """Blank lines and comments at the left margin that end a block: they belong to what follows."""
    count = 0
    while count < len(block) - 1 and (not block[-1 - count].strip() or block[-1 - count].startswith('#')):
        count += 1
    return block[len(block) - count:]


def _source(text: str, node: yaml.Node) -> str:
    """A value as it is written, on one line."""
    return ' '.join(text[node.start_mark.index:node.end_mark.index].split())


def _format(text: str, node: yaml.Node) -> list[str]:
    return [f'format: {FORMAT}', 'dimension: 3']


def _ground(text: str, node: yaml.Node) -> list[str]:
    points = dict((key.value, value) for key, value in node.value)['points']
    return ['points:'] + [f'  {key.value}: {{fixed: {_source(text, value)}}}' for key, value in points.value]


def _sensors(text: str, node: yaml.Node) -> list[str]:
    lines = ['sensors:']
    for key, group in node.value:
        for owner, noise in group.value:
            stddev = _source(text, dict((k.value, v) for k, v in noise.value)['stddev'])
            what = ('kind: stroke, cylinder' if key.value == 'position' else 'kind: pressure, volume')
            name = f'{owner.value}_stroke' if key.value == 'position' else owner.value
            lines.append(f'  {name}: {{{what}: {owner.value}, stddev: {stddev}}}')
    return lines


_CHANGED = {'format': _format, 'ground': _ground, 'sensors': _sensors}
