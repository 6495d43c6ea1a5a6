# SPDX-License-Identifier: Apache-2.0
"""Presets: the settings of a published method, or one's own, as a file of ROS parameters.

The nodes get the file. Python and the command line get its settings as words, such as ``observer.noise=paper``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..errors import DescriptionError, SettingError
from ..resources import read_text, share_directory
from .language.document import Tree, read_document

PARAMETERS, NODE = 'ros__parameters', '_node'
EXPECTED = f'a file of parameters, <node>: {PARAMETERS}: <name>: <value>'
TRUTHS = {word: truth for truth, words in (('true', 'y yes true on'), ('false', 'n no false off'))
          for one in words.split() for word in (one, one.capitalize(), one.upper())}     # of YAML 1.1, as ROS reads it


class PresetSetting(NamedTuple):
    """A parameter of a preset; ``node`` as the file has it, such as ``/**/observer_node``; ``value`` as a word."""

    node: str
    name: str
    value: str

    @property
    def executable(self) -> str:
        """The node without its namespace."""
        return self.node.rpartition('/')[2]

    def is_of(self, node: str) -> bool:
        """Whether ROS gives it to a node ``/namespace/name``: ``*`` is one part of the name, ``**`` any number."""
        pattern = re.escape('/' + self.node.lstrip('/')).replace(r'/\*\*', r'(/\w+)*').replace(r'/\*', r'/\w+')
        return re.fullmatch(pattern, node) is not None


def known_presets() -> dict[str, Path]:
    """The files of config/presets by name."""
    return {path.stem: path for path in sorted((share_directory() / 'config' / 'presets').glob('*.yaml'))}


def preset_file(name: str | Path) -> Path:
    """File of a preset by its name, or a path to a file of parameters of one's own. Raises SettingError."""
    known = known_presets()
    path = known.get(str(name), Path(str(name)))
    if not path.is_file():
        raise SettingError('preset', str(name), f'{", ".join(known)}, or a file of parameters')
    return path


def preset_parameters(name: str | Path) -> list[PresetSetting]:
    """What a preset sets. Raises SettingError for a file without parameters, or with one of them twice."""
    path = preset_file(name)
    try:
        found = list(_parameters(read_document(read_text(path), str(path))))
    except DescriptionError as error:
        raise SettingError('preset', str(path), f'{EXPECTED}: {error}') from error
    except (AttributeError, KeyError, TypeError) as error:
        raise SettingError('preset', str(path), EXPECTED) from error
    if not found:
        raise SettingError('preset', str(path), EXPECTED)
    return found


def _parameters(tree: Tree) -> Iterator[PresetSetting]:
    for node, values in tree.items():       # type: ignore[attr-defined]
        for name, value in values[PARAMETERS].items():
            yield PresetSetting(node, name, TRUTHS.get(value, value) if isinstance(value, str) else str(value))


def preset_words(name: str | Path) -> list[str]:
    """Settings of a preset as words ``observer.noise=paper``. Raises SettingError for a file that has none, or one
    twice, also by two names of a node."""
    found: dict[str, str] = {}
    for item in preset_parameters(name):
        key = f'{item.executable.removesuffix(NODE)}.{item.name}'
        if key in found:
            raise SettingError('preset', str(name), f'each setting once; {key} is there twice')
        found[key] = item.value
    return [f'{key}={value}' for key, value in found.items()]
