# SPDX-License-Identifier: Apache-2.0
"""YAML text to plain dictionaries, lists and text, without YAML's guesses.

Scalars stay text: YAML 1.1 would read `on` as true, 012 as ten, 1:30 as ninety and 1e7 as text. Refused: keys that
appear twice, tags, aliases that contain themselves, several documents.
"""

from __future__ import annotations

import yaml

from ...errors import DescriptionError

MAX_CHARACTERS, MAX_NODES, MAX_DEPTH = 1_000_000, 50_000, 20
_LOADER = getattr(yaml, 'CBaseLoader', yaml.BaseLoader)
_TAGS = {'tag:yaml.org,2002:str', 'tag:yaml.org,2002:seq', 'tag:yaml.org,2002:map'}

Tree = object   # None, str, list of Tree or dict from str to Tree


def read_document(text: str, file: str) -> Tree:
    """The tree of one YAML document; an empty scalar or null is None.

    Raises DescriptionError whose key is 'line N' where the text is not usable YAML.
    """
    if len(text) > MAX_CHARACTERS or _depth(text) > MAX_DEPTH:
        raise DescriptionError(file, '', f'{len(text)} characters',
                               f'at most {MAX_CHARACTERS} characters and {MAX_DEPTH} nested brackets')
    try:
        _check_nesting(text, file)
        node = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise DescriptionError(file, _line(mark), error.problem or error.context, 'correct YAML') from error
    except yaml.YAMLError as error:
        raise DescriptionError(file, '', str(error), 'correct YAML') from error
    except RecursionError as error:
        raise DescriptionError(file, '', 'deep nesting', f'at most {MAX_DEPTH} levels') from error
    if node is None:
        raise DescriptionError(file, '', None, 'a YAML document, the file is empty')
    return _Converter(file).convert(node, 0)


def _check_nesting(text: str, file: str) -> None:
    """Refuse deep nesting by indentation: composing it would overrun the stack of the C library."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise DescriptionError(file, _line(event.start_mark), 'deep nesting', f'at most {MAX_DEPTH} levels')


def _depth(text: str) -> int:
    """Upper bound of the nesting of [ and {, to protect the parser's stack."""
    depth = deepest = 0
    for character in text:
        depth = depth + 1 if character in '[{' else max(depth - 1, 0) if character in ']}' else depth
        deepest = max(deepest, depth)
    return deepest


def _line(mark: yaml.Mark | yaml._yaml.Mark | None) -> str:
    return f'line {mark.line + 1}' if mark else ''


class _Converter:
    """Walks the node graph once, with limits on its size."""

    def __init__(self, file: str) -> None:
        self.file, self.nodes = file, 0

    def convert(self, node: yaml.Node, depth: int) -> Tree:
        """The node as plain data."""
        self.nodes += 1
        if depth > MAX_DEPTH or self.nodes > MAX_NODES:
            self._refuse(node, 'deep or endless nesting', f'at most {MAX_DEPTH} levels and {MAX_NODES} values')
        if node.tag not in _TAGS:
            self._refuse(node, node.tag, 'a value without a tag')
        if isinstance(node, yaml.ScalarNode):
            absent = not node.style and node.value in ('', '~', 'null', 'Null', 'NULL')
            return None if absent else node.value
        if isinstance(node, yaml.SequenceNode):
            return [self.convert(item, depth + 1) for item in node.value]
        return self._mapping(node, depth)

    def _mapping(self, node: yaml.Node, depth: int) -> dict[str, Tree]:
        result: dict[str, Tree] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._refuse(key, 'a list or mapping', 'a word as key')
            if key.value in result:
                self._refuse(key, key.value, 'each key once')
            result[key.value] = self.convert(value, depth + 1)
        return result

    def _refuse(self, node: yaml.Node, value: object, expected: str) -> None:
        raise DescriptionError(self.file, _line(node.start_mark), value, expected)
