# SPDX-License-Identifier: Apache-2.0
"""Settings of a published method under one name: files of ROS parameters, in ``config/presets``.

Nodes take such a file as any other; ``preset_words`` gives the same settings as ``--set`` takes them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .errors import SettingError
from .resources import read_text, share_directory

PARAMETERS, NODE = 'ros__parameters', '_node'


def known_presets() -> dict[str, Path]:
    """The files of config/presets by name."""
    return {path.stem: path for path in sorted((share_directory() / 'config' / 'presets').glob('*.yaml'))}


def preset_file(name: str | Path) -> Path:
    """File of a preset by its name, or a path to a file of parameters of one's own. Raises SettingError."""
    known = known_presets()
    path = known.get(str(name), Path(name))
    if not path.is_file():
        raise SettingError('preset', str(name), f'{", ".join(known)}, or a file of parameters')
    return path


def preset_words(name: str | Path) -> list[str]:
    """Settings of a preset as words ``observer.noise=paper``. Raises SettingError for a file that has none."""
    import yaml  # here: slow to import
    path = preset_file(name)
    try:
        nodes = yaml.safe_load(read_text(path))
        settings = [(node.rpartition('/')[2].removesuffix(NODE), values[PARAMETERS]) for node, values in nodes.items()]
        return [f'{room}.{name}={_text(value)}' for room, values in settings for name, value in values.items()]
    except (yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
        raise SettingError('preset', str(path),
                           f'a file of parameters, <node>: {PARAMETERS}: <name>: <value>') from error


def _text(value: Any) -> str:
    """A value as a word."""
    return str(value).lower() if isinstance(value, bool) else str(value)
