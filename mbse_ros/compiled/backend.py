# SPDX-License-Identifier: Apache-2.0
"""Choice between CasADi's virtual machine and compiled C."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

from ..errors import CompilationError, check_choice
from .compiler import have_compiler, remark

T = TypeVar('T')
BACKENDS = ('auto', 'vm', 'c')
SLOW = "functions run in CasADi's virtual machine, which is slower than compiled C"


def requested(backend: str) -> str:
    """The word asked for; the variable MBSE_BACKEND replaces 'auto'. SettingError for another word."""
    check_choice('backend', backend, BACKENDS)
    if backend != 'auto':
        return backend
    chosen = os.environ.get('MBSE_BACKEND') or 'auto'
    check_choice('MBSE_BACKEND', chosen, BACKENDS)
    return chosen


def build(backend: str, name: str, make_c: Callable[[], T], make_vm: Callable[[], T]) -> tuple[T, str, str]:
    """What was made, by which backend ('c' or 'vm'), and why C was wanted but not taken ('' if it was not).

    Raises CompilationError when C was asked for by name and cannot be had.
    """
    wanted = requested(backend)
    if wanted == 'vm':
        return make_vm(), 'vm', ''
    if wanted == 'auto' and not have_compiler():
        remark(f'{SLOW}: no C compiler was found')
        return make_vm(), 'vm', 'no C compiler was found'
    try:
        return make_c(), 'c', ''
    except CompilationError as error:
        failure = error
    except (OSError, RuntimeError) as error:      # not loadable here; or CasADi has no C for one of its nodes
        failure = CompilationError(name, 'load', str(error))
    if wanted == 'c':
        raise failure
    remark(f'{SLOW}: {failure}')
    return make_vm(), 'vm', str(failure)
