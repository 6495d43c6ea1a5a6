# SPDX-License-Identifier: Apache-2.0
"""State, force and payload estimation of machines from a multibody model and a few sensors.

``import mbse_ros as mbse`` gives a dozen names, each imported when it is first used: docs/python_api.md. They need no
ROS.
"""

import os
import sys
from importlib import import_module
from pkgutil import extend_path
from typing import TYPE_CHECKING, Any

from .version import __version__  # noqa: F401

# Running from the source tree finds this file first, where the generated mbse_ros.msg is not:
# look for it in the other mbse_ros folders on sys.path (those of the installed package).
__path__ = extend_path(__path__, __name__)

# Wheels that the CMake build put there where packages were missing or too old: first, they are the tested versions.
sys.path[:0] = [_folder for _part in __path__ if os.path.isdir(_folder := os.path.join(_part, '_vendored'))
                and _folder not in sys.path]

if TYPE_CHECKING:
    from . import errors
    from .api.bags import read_bag, write_bag
    from .api.calibrate import calibrate
    from .api.check import check
    from .api.check_data import check_data
    from .api.estimate import estimate, smooth
    from .api.export_c import export_c
    from .api.inverse_dynamics import inverse_dynamics
    from .api.load import load
    from .api.loads import fleet, loads
    from .api.new import new
    from .api.observability import observability
    from .api.observer import Observer
    from .api.samples import Samples
    from .api.simulate import simulate
    from .api.simulate_batch import simulate_batch
    from .api.study import study
    from .api.topics import topics
    from .api.tune import tune
    from .report.compare import compare
    from .report.saved import read_result

__all__ = ['Observer', 'Samples', 'calibrate', 'check', 'check_data', 'compare', 'errors', 'estimate', 'export_c',
           'fleet', 'inverse_dynamics', 'load', 'loads', 'new', 'observability', 'read_bag', 'read_result', 'simulate',
           'simulate_batch', 'smooth', 'study', 'topics', 'tune', 'write_bag']
_MODULES = {'Observer': 'observer', 'Samples': 'samples', 'fleet': 'loads', 'read_bag': 'bags', 'smooth': 'estimate',
            'write_bag': 'bags'}
_ELSEWHERE = {'compare': '.report.compare', 'read_result': '.report.saved'}


def __getattr__(name: str) -> Any:
    """Import what a public name stands for (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    if name == 'errors':
        return import_module('.errors', __name__)
    place = _ELSEWHERE.get(name, f'.api.{_MODULES.get(name, name)}')
    found = getattr(import_module(place, __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """The public names, and the version."""
    return [*__all__, '__version__']
