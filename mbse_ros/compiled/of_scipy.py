# SPDX-License-Identifier: Apache-2.0
"""SciPy's compiled functions without the packages around them, whose import takes longer than to load a machine."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

NEVER = 1e280       # a squared innovation over its variance beyond any, which times a variance is still a number


@cache
def compiled_part(package: str, name: str, otherwise: str, *functions: str) -> ModuleType:
    """The extension module ``scipy.<package>.<name>`` by itself.

    Where SciPy has no such file, or it cannot be loaded so, or lacks one of the ``functions``: the public module
    ``otherwise``, which has them.
    """
    full = f'scipy.{package}.{name}'
    try:
        module = sys.modules.get(full) or _loaded(package, name, full)
        for function in functions:
            getattr(module, function)
    except (ImportError, AttributeError, TypeError, OSError):
        return import_module(otherwise)
    return sys.modules.setdefault(full, module)     # what imports the package later takes the same one


def _loaded(package: str, name: str, full: str) -> ModuleType:
    scipy = find_spec('scipy')
    part = PathFinder.find_spec(name, [str(Path(scipy.origin).parent / package)]) if scipy and scipy.origin else None
    spec = spec_from_file_location(full, part.origin) if part else None
    if spec is None or spec.loader is None:
        raise ImportError(full)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def exceeded(freedom: float, probability: float) -> float:
    """What a chi-squared number of so many degrees of freedom exceeds with a probability."""
    special = compiled_part('special', '_special_ufuncs', 'scipy.special', 'gammainccinv')
    return 2.0 * float(special.gammainccinv(0.5 * freedom, probability))


def gate_limit(gate: float) -> float:
    """The normalised innovation squared beyond which a gate of this probability leaves a sample out; 1: none."""
    return NEVER if gate >= 1 else exceeded(1, 1 - gate)
