# SPDX-License-Identifier: Apache-2.0
"""From C to a function: the compiler, its identity, one call that makes a shared library, and whether CasADi's virtual
machine runs instead.

What users should know of the functions of this process is kept here: nodes log it, nothing is raised for it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from ..errors import CompilationError, check_choice

# -Og runs generated straight-line code as fast as -O1 and -O2 and compiles it in half of the time of -O1: what it
# leaves out finds nothing there (docs/kernels.md).
# No contraction to fused multiply-add and no -ffast-math: C and the virtual machine agree, NaN stays NaN, and -mavx2,
# where the CPU has it, changes no bit. The C library is not compiled for AVX: a CPU may take three times as long for it
# unless the upper halves of registers are cleared before a call, which gcc does with -fexpensive-optimizations only.
FLAGS = ('-std=gnu11', '-Og', '-ffp-contract=off', '-fPIC', '-shared')
WIDE = '-mavx2', '-fexpensive-optimizations'
CANDIDATES = ('cc', 'gcc', 'clang')
LONGEST = 600.0     # s
_REMARKS: dict[str, None] = {}      # in the order in which they came, each once
T = TypeVar('T')
BACKENDS = ('auto', 'vm', 'c')
SLOW = "functions run in CasADi's virtual machine, which is slower than compiled C"


def compiler() -> tuple[str, ...] | None:
    """Command of the C compiler, its program as an absolute path: that of the variable CC (which may carry options,
    which come after ours and so win), else the first of cc, gcc, clang; None without one."""
    wanted = shlex.split(os.environ.get('CC', ''))
    for program, *options in [wanted] if wanted else [[name] for name in CANDIDATES]:
        path = shutil.which(program)
        if path:
            return (path, *options)
    return None


def have_compiler() -> bool:
    """Whether a C compiler was found."""
    return compiler() is not None


def identity(command: tuple[str, ...]) -> str:
    """Text that changes when the compiler does: its file, size and time, so that nothing need be started to know."""
    path = Path(command[0]).resolve()
    status = path.stat()
    return ' '.join([str(path), str(status.st_size), str(status.st_mtime_ns), *command[1:], *flags()])


@lru_cache(maxsize=1)
def flags() -> tuple[str, ...]:
    """Options of the compiler on this CPU; part of an entry's name, since another one may not run what they make."""
    try:
        wide = 'avx2' in Path('/proc/cpuinfo').read_text().split()
    except (OSError, UnicodeDecodeError):
        wide = False
    return (*FLAGS, *WIDE) if wide else FLAGS


def compile_library(name: str, source: str, command: tuple[str, ...]) -> bytes:
    """Shared library of C ``source``.

    Raises CompilationError (name, command, what the compiler said) when it does not start, refuses the source, or takes
    longer than `time_limit`.
    """
    with tempfile.TemporaryDirectory(prefix='mbse_ros-') as folder:
        output = Path(folder) / 'library.so'
        first = next((i for i, word in enumerate(command) if word.startswith('-')), len(command))
        full = [*command[:first], *flags(), *command[first:], '-x', 'c', '-', '-o', str(output), '-lm']
        try:
            status, said = _run(full, source)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CompilationError(name, shlex.join(full), str(error)) from error
        if status or not output.exists():
            raise CompilationError(name, shlex.join(full), said or f'no library, exit status {status}')
        return output.read_bytes()


def _run(command: list[str], source: str) -> tuple[int, str]:
    """Exit status and errors of a compiler; none of its processes outlives this call."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          errors='replace', start_new_session=True) as process:
        try:
            _, said = process.communicate(source, time_limit())
        except BaseException:       # Ctrl-C, too, which its own session keeps from it
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, said


def time_limit() -> float:
    """Seconds that one call of the compiler may take: MBSE_COMPILE_LIMIT, else 600."""
    try:
        return float(os.environ.get('MBSE_COMPILE_LIMIT', ''))
    except ValueError:
        return LONGEST


def remark(text: str) -> None:
    """Add a line."""
    _REMARKS[text] = None


def remarks() -> tuple[str, ...]:
    """All lines so far."""
    return tuple(_REMARKS)


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
