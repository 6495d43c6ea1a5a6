# SPDX-License-Identifier: Apache-2.0
"""What a name or a path on the command line describes: a machine or a mechanism."""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import DescriptionError
from ..resources import share_directory

MACHINE, MECHANISM = 'mbse/machine/1', 'mbse/mechanism/1'
SUFFIXES = ('.yaml', '.yml')
CHAIN = 'n_four_bar'       # generated: n_four_bar:5
_FORMAT = re.compile(r'''(?m)^[ {]*["']?format["']?\s*:\s*["']?([^\s"'#,}]+)''')


def is_mechanism(name: str) -> bool:
    """Whether a name out of config/machines or config/mechanisms, or a path, is that of a mechanism.

    Of a file the key `format` decides. Raises DescriptionError for an unknown name, which lists all of them, and for
    another format.
    """
    if name.partition(':')[0] == CHAIN:
        return True
    path = Path(name)
    if path.suffix not in SUFFIXES:
        return _known(name)
    try:
        found = _FORMAT.search(path.read_text(encoding='utf-8'))
    except (OSError, UnicodeDecodeError):
        return False                           # the reader of machines says what is wrong with it
    kind = found.group(1) if found else MACHINE
    if kind.rpartition('/')[0] not in (MACHINE.rpartition('/')[0], MECHANISM.rpartition('/')[0]):
        raise DescriptionError(name, 'format', kind, f'{MACHINE} or {MECHANISM}')
    return kind.startswith('mbse/mechanism')


def _known(name: str) -> bool:
    """Whether a name is a mechanism's and no machine's."""
    names = {folder: sorted(path.stem for path in (share_directory() / 'config' / folder).glob('*.yaml'))
             for folder in ('machines', 'mechanisms')}
    if name in names['machines']:
        return False
    if name in names['mechanisms']:
        return True
    raise DescriptionError(name, 'name', name, 'a path to a .yaml file, one of the machines '
                           f'{", ".join(names["machines"])}, or one of the mechanisms '
                           f'{", ".join(names["mechanisms"])}, {CHAIN}:N')
