# SPDX-License-Identifier: Apache-2.0
"""Exported C, compiled: as a test program, or as a library called through ctypes."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np

COMPILERS = [name for name in ('cc', 'clang') if shutil.which(name)]
STRICT = ['-std=c99', '-Wall', '-Wextra', '-Wpedantic', '-Werror']


def run_test(folder: Path, compiler: str = 'cc', *flags: str) -> subprocess.CompletedProcess:
    """Compile all files without a warning, run the test program; its exit status and output."""
    program = folder.parent / f'{folder.name}_test'
    sources = sorted(str(path) for path in folder.glob('*.c'))
    built = subprocess.run([compiler, *STRICT, *flags, *sources, '-lm', '-o', str(program)],
                           capture_output=True, text=True)
    assert built.returncode == 0 and not built.stderr, built.stderr
    return subprocess.run([str(program)], capture_output=True, text=True)


class Library:
    """Functions of an exported model; sizes by their macros.

    Compiled in the compiler's own dialect, whose headers have more names than those of C99.
    """

    def __init__(self, folder: Path, prefix: str) -> None:
        path = folder.parent / f'{folder.name}.so'
        sources = [str(folder / f'{prefix}.c'), str(folder / f'{prefix}_casadi.c')]
        subprocess.run(['cc', '-O1', '-fPIC', '-shared', *sources, '-lm', '-o', str(path)], check=True)
        self._loaded, self._prefix = ctypes.CDLL(str(path)), prefix
        header = (folder / f'{prefix}.h').read_text()
        self.size = {name: int(value) for name, value in re.findall(rf'#define {prefix.upper()}_(N\w) (\d+)', header)}
        self.macro = {name: int(value) for name, value in re.findall(rf'#define {prefix.upper()}_(\w+) (\d+)', header)}

    def call(self, name: str, *arguments: object) -> int:
        """Return code; arrays are given as they are, numbers as double, None as NULL."""
        return getattr(self._loaded, f'{self._prefix}_{name}')(*(
            item.ctypes.data_as(ctypes.c_void_p) if isinstance(item, np.ndarray)
            else None if item is None else ctypes.c_double(item) for item in arguments))

    def constant(self, name: str, size: int) -> np.ndarray:
        """A constant array."""
        return np.array((ctypes.c_double * size).in_dll(self._loaded, f'{self._prefix}_{name}'))
