# SPDX-License-Identifier: Apache-2.0
"""GTSAM, where it is installed; a clear error where it is not."""

from __future__ import annotations

import sys
from functools import lru_cache
from types import ModuleType

from ...errors import MissingModuleError


def gtsam_module() -> ModuleType:
    """The module ``gtsam``; raises MissingModuleError that says how to get it."""
    try:
        import gtsam
    except ImportError as error:
        how = 'pip install "mbse_ros[graph]", or pip install "gtsam>=4.3"'
        if sys.version_info < (3, 11):
            how += '; it needs Python 3.11 or newer, this is ' + '.'.join(map(str, sys.version_info[:2]))
        raise MissingModuleError('gtsam', 'factor graphs are solved with it', how, str(error)) from error
    if not hasattr(gtsam, 'GaussianConditional') or tuple(_version(gtsam)) < (4, 3):
        raise MissingModuleError('gtsam', 'factor graphs are solved with version 4.3 or newer',
                                 'pip install "gtsam>=4.3" (Python 3.11 or newer)', 'an older version was found')
    return gtsam


@lru_cache(maxsize=4)
def _version(gtsam: ModuleType) -> list[int]:
    """Version of the installed package, (4, 3) where it does not say."""
    from importlib.metadata import PackageNotFoundError, version
    try:
        return [int(part) for part in version('gtsam').split('.')[:2]]
    except (PackageNotFoundError, ValueError):
        return [4, 3]
