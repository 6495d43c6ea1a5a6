# SPDX-License-Identifier: Apache-2.0
"""Where the shared files are: machines, launch files, RViz configuration, message definitions."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import MbseError


def share_directory() -> Path:
    """Folder that holds config/, launch/, rviz/ and msg/.

    The source tree where the package runs from it, else share/mbse_ros of the first prefix on AMENT_PREFIX_PATH
    that has one, else that of the prefix this module is installed in.  Raises MbseError that names the places.
    """
    package = Path(__file__).resolve().parent
    prefixes = [Path(prefix) for prefix in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep) if prefix]
    prefixes += package.parents[3:5]    # <prefix>/lib/python3.x/site-packages or <prefix>/local/lib/...
    candidates = [package.parent, *(prefix / 'share' / 'mbse_ros' for prefix in prefixes)]
    for candidate in candidates:
        if (candidate / 'config').is_dir() and (candidate / 'msg').is_dir():
            return candidate
    raise MbseError('the shared files of mbse_ros (config/, msg/) are in none of: ' + ', '.join(map(str, candidates)))


def regular(path: str | Path) -> Path:
    """The path, where it is a regular file, else OSError: a pipe or a device would be read without end."""
    path = Path(path)
    if path.exists() and not path.is_dir() and not path.is_file():
        raise OSError(f'{path} is not a regular file')
    return path
