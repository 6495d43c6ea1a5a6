# SPDX-License-Identifier: Apache-2.0
"""The text of a file with other numbers, or for another folder: what does not change keeps its comments and layout."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..errors import DescriptionError
from .basics import Scalar
from .convert import flow_text
from .language.units import parse_unit, split_number
from .model import MechanismDescription

_INDEX = re.compile(r'(.*)\[(\d+)\]')
_SHOWN = {'offset': ('kPa', 1e3), 'delay': ('ms', 1e-3), 'roll': ('deg', 0.017453292519943295),
          'pitch': ('deg', 0.017453292519943295)}
DIGITS = 10
OF_DRIVES = 'effort', 'current'      # kinds of sensors whose offset has another unit than that of a pressure
BESIDE = {'.parallel': (), '.friction': ('preset: typical',)}   # parts of a cylinder that a file may leave out
LINKS = 'bodies.'       # how keys of a URDF's links begin
PATHS = (('urdf',), ('urdf', 'file'), ('sources', 'definitions', '*'))      # from the folder of the file


@dataclass(frozen=True)
class Number:
    """A value and its standard deviation, SI, and where they are from."""

    value: float
    stddev: float
    source: str = ''


def with_numbers(text: str, file: str, numbers: Mapping[str, Number],
                 known: Mapping[str, Scalar] | None = None) -> str:
    """The text of a file with other numbers, by their keys; what the file leaves out is put in.

    Values keep their unit. Those of a URDF's links become part of the section `urdf`, in SI; ``known``, the numbers of
    the whole file, has components of their vectors that stay. Raises DescriptionError for a key whose section is not in
    the text.
    """
    text = _without_aliases(text)
    root: Any = yaml.compose(text, Loader=yaml.BaseLoader)
    robot: Any = _find(root, ['urdf'])
    links = {key: number for key, number in numbers.items() if robot is not None and key.startswith(LINKS)}
    if links:
        text = text[:robot.start_mark.index] + flow_text(_robot(robot, links, known or {}, file)) + (
            text[robot.end_mark.index:] if _flows(robot) else '\n' + text[robot.end_mark.index:])
        root = yaml.compose(text, Loader=yaml.BaseLoader)
        numbers = {key: number for key, number in numbers.items() if key not in links}
    changes: list[tuple[int, int, str]] = []
    vectors: dict[str, dict[int, Number]] = {}
    added: dict[str, list[str]] = {}
    beside: dict[str, list[str]] = {}
    for key, number in numbers.items():
        indexed, section = _INDEX.fullmatch(key), key.rpartition('.')[0]
        node = _find(root, key.split('.'))
        if indexed:
            vectors.setdefault(indexed[1], {})[int(indexed[2])] = number
        elif node is not None:
            changes.append(_scalar(node, number))
        elif section == 'base' or isinstance(_find(root, section.split('.')), yaml.MappingNode):
            kind = _find(root, [*section.split('.'), 'kind'])
            added.setdefault(section, []).append(_new(key, number, '' if kind is None else kind.value))
        elif section.endswith(tuple(BESIDE)):
            beside.setdefault(section, []).append(_new(key, number))
        else:
            raise DescriptionError(file, key, None, 'a number in this file, to be written again')
    changes += [change for key, parts in vectors.items() for change in _vector(root, key, parts, file)]
    for section, lines in beside.items():
        cylinder, dot, part = section.rpartition('.')
        block, name = '{' + ', '.join([*BESIDE[dot + part], *lines]) + '}', _find(root, section.split('.'))
        if name is not None:        # of a preset
            changes.append(_replaced(name, block))
        else:
            added.setdefault(cylinder, []).append(f'{part}: {block}')
    base = added.pop('base', None) if _find(root, ['base']) is None else None
    changes += [_put_in(_find(root, section.split('.')), lines) for section, lines in added.items()]
    for start, end, new in sorted(changes, reverse=True):
        text = text[:start] + new + text[end:]
    return text if base is None else with_section(text, 'base', 'base: {' + ', '.join(base) + '}')


def with_part(text: str, file: str, section: str, name: str, part: str) -> str:
    """The text with a part ``name`` of a section, such as 'cylinders.lift', which is put in or replaced. Raises
    DescriptionError for a section that is not in the text."""
    text = _without_aliases(text)
    parent = _find(yaml.compose(text, Loader=yaml.BaseLoader), section.split('.'))
    if not isinstance(parent, yaml.MappingNode):
        raise DescriptionError(file, section, None, 'a section in this file, to be written again')
    old = _find(parent, [name])
    start, end, new = _put_in(parent, [f'{name}: {part}']) if old is None else _replaced(old, part)
    return text[:start] + new + text[end:]


def with_section(text: str, name: str, block: str) -> str:
    """The text with a section, at its end or in the place of an older one of this name."""
    root: Any = yaml.compose(text, Loader=yaml.BaseLoader)
    for k, (key, value) in enumerate(root.value):
        if key.value == name:
            later = root.value[k + 1:]
            end = later[0][0].start_mark.index if later else value.end_mark.index
            text = text[:key.start_mark.index] + text[end:]
    return text.rstrip('\n') + '\n\n' + block.rstrip('\n') + '\n'


def _robot(node: Any, numbers: Mapping[str, Number], known: Mapping[str, Scalar], file: str) -> dict[str, Any]:
    """The section `urdf` with numbers of its links."""
    given: Any = _data(node)
    section: dict[str, Any] = {'file': given} if isinstance(given, str) else given
    vectors: dict[str, dict[int, Number]] = {}
    for key, number in numbers.items():
        indexed = _INDEX.fullmatch(key)
        if indexed:
            vectors.setdefault(indexed[1], {})[int(indexed[2])] = number
        else:
            _put(section, key, f'{number.value:.{DIGITS}g}', f'{number.stddev:.{DIGITS}g}', number.source)
    for key, parts in vectors.items():
        whole = [parts.get(k) or known.get(f'{key}[{k}]') for k in range(3)]
        items = [item for item in whole if item is not None]
        if len(items) < len(whole):
            raise DescriptionError(file, key, None, 'three numbers of a link of the URDF')
        _put(section, key, [f'{item.value:.{DIGITS}g}' for item in items],
             [f'{item.stddev:.{DIGITS}g}' for item in items], next(iter(parts.values())).source)
    return section


def _put(section: dict[str, Any], key: str, value: object, stddev: object, source: str) -> None:
    """A number in its place in nested mappings."""
    *path, name = key.split('.')
    for part in path:
        section = section.setdefault(part, {})
    section[name] = {'value': value, 'stddev': stddev, **({'source': source} if source else {})}


def _without_aliases(text: str) -> str:
    """Each alias written out: its numbers will be others than those of its anchor."""
    anchors, aliases = {}, []

    def gather(node: Any) -> None:
        anchors[node.start_mark.index, node.end_mark.index] = node
        for item in node.value if not isinstance(node, yaml.ScalarNode) else ():
            for inner in item if isinstance(item, tuple) else (item,):
                if (inner.start_mark.index, inner.end_mark.index) not in anchors:
                    gather(inner)

    gather(yaml.compose(text, Loader=yaml.BaseLoader))
    named: dict[str, int] = {}
    event: Any
    for event in yaml.parse(text, Loader=yaml.BaseLoader):
        start, end, anchor = event.start_mark.index, event.end_mark.index, getattr(event, 'anchor', '')
        if isinstance(event, yaml.AliasEvent):
            aliases.append((start, end, named[anchor]))
        elif anchor:
            named[anchor] = start
    nodes = {start: node for (start, _), node in reversed(anchors.items())}
    for start, end, anchor in reversed(aliases):
        text = text[:start] + flow_text(_data(nodes[anchor])) + text[end:]
    return text


def _data(node: yaml.Node) -> object:
    if isinstance(node, yaml.MappingNode):
        return {key.value: _data(value) for key, value in node.value}
    return [_data(item) for item in node.value] if isinstance(node, yaml.SequenceNode) else node.value


def in_file(machine: MechanismDescription, key: str) -> str:
    """Key in the file of an uncertain number as a model names it: named parameters stand in their section."""
    return f'parameters.{key}' if key in machine.parameters else key


def _scalar(node: yaml.Node, number: Number) -> tuple[int, int, str]:
    old = _nominal(node)
    unit, factor = _unit(old.value if isinstance(old, yaml.ScalarNode) else '')
    return _replaced(node, _mapping(_amount(number.value, unit, factor), _amount(number.stddev, unit, factor),
                                    number.source))


def _new(key: str, number: Number, kind: str = '') -> str:
    """A number that the file leaves out; ``kind`` of the sensor that it is of."""
    name = key.rpartition('.')[2]
    unit, factor = ('', 1.0) if kind in OF_DRIVES else _SHOWN.get(name, ('', 1.0))
    return f'{name}: ' + _mapping(_amount(number.value, unit, factor), _amount(number.stddev, unit, factor),
                                  number.source)


def _put_in(parent: Any, lines: list[str]) -> tuple[int, int, str]:
    """First in a mapping, behind its anchor."""
    mark = parent.value[0][0].start_mark if parent.value else parent.end_mark
    start = mark.index if parent.value else mark.index - 1
    if parent.flow_style:
        return start, start, ', '.join(lines) + (', ' if parent.value else '')
    return start, start, ''.join(line + '\n' + ' ' * mark.column for line in lines)


def _vector(root: yaml.MappingNode, key: str, parts: Mapping[int, Number], file: str) -> list[tuple[int, int, str]]:
    """Numbers of a list; where one of them is a mapping each is written by itself."""
    node = _find(root, key.split('.'))
    inner = None if node is None else _nominal(node)
    if node is None or not isinstance(inner, yaml.SequenceNode):
        raise DescriptionError(file, key, None, 'a list of numbers in this file, to be written again')
    if node is inner and any(isinstance(item, yaml.MappingNode) for item in inner.value):
        return [_scalar(inner.value[k], number) for k, number in parts.items()]
    values, spreads = [], []
    old = dict((k.value, v) for k, v in node.value) if isinstance(node, yaml.MappingNode) else {}
    for k, item in enumerate(inner.value):
        unit, factor = _unit(item.value)
        number = parts.get(k)
        values.append(item.value if number is None else _amount(number.value, unit, factor))
        spreads.append(_old_spread(old.get('stddev'), k, item.value, unit) if number is None
                       else _amount(number.stddev, unit, factor))
    source = next(iter(parts.values())).source
    return [_replaced(node, _mapping(f'[{", ".join(values)}]', f'[{", ".join(spreads)}]', source))]


def _old_spread(node: yaml.Node | None, k: int, value: str, unit: str) -> str:
    """Of a component that stays as it is."""
    if node is None:
        return f'0 {unit}'.strip()
    text = node.value[k].value if isinstance(node, yaml.SequenceNode) else node.value
    zero = text.strip().endswith('%') and float(split_number(value)[0]) == 0.0
    return f'0 {unit}'.strip() if zero else text


def _find(node: yaml.Node | None, path: list[str]) -> yaml.Node | None:
    """The node at a path; a part such as `hoses[0]` is an item of a list."""
    for part in path:
        indexed = _INDEX.fullmatch(part)
        name = indexed[1] if indexed else part
        if not isinstance(node, yaml.MappingNode):
            return None
        node = next((value for key, value in node.value if key.value == name), None)
        if indexed:
            items = node.value if isinstance(node, yaml.SequenceNode) else []
            node = items[int(indexed[2])] if int(indexed[2]) < len(items) else None
    return node


def _nominal(node: yaml.Node) -> yaml.Node:
    """What stands for the value of a number."""
    found = _find(node, ['value'])
    return node if found is None else found


def _unit(text: str) -> tuple[str, float]:
    """Unit of a number as it stands, and its factor to SI; none of arithmetic."""
    try:
        number, unit = split_number(text)
        return unit, parse_unit(unit)[0] if unit else 1.0
    except ValueError:
        return '', 1.0


def _amount(value: float, unit: str, factor: float) -> str:
    return f'{value / factor:.{DIGITS}g} {unit}'.strip()


def _mapping(value: str, stddev: str, source: str) -> str:
    more = f', source: "{source}"' if source else ''
    return f'{{value: {value}, stddev: {stddev}{more}}}'


def _flows(node: yaml.Node) -> bool:
    return not isinstance(node, yaml.CollectionNode) or bool(node.flow_style)


def _replaced(node: yaml.Node, text: str) -> tuple[int, int, str]:
    """A node in its place; a block ends at what follows, and so does the text. A list may be no deeper than its key."""
    start, end = node.start_mark, node.end_mark
    return start.index, end.index, text if _flows(node) else f'  {text}\n' + ' ' * end.column


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
