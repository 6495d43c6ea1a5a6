# SPDX-License-Identifier: Apache-2.0
"""A function that may be called too rarely to be worth a compiler: the virtual machine runs it, until it was called so
often that compiling would have cost less. Then another process compiles it, at low priority, puts the library into the
cache and ends.

It is another process, since what writes C would keep the interpreter from other threads. The bits of the results stay
the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import suppress

import casadi as ca

from ..errors import CompilationError
from .cache import ROOT, cache_folder, found, keep, library_file
from .compiler import SLOW, compile_library, compiler, have_compiler, remark, requested
from .dense import c_source, made_of

# Calls in the virtual machine, 4 ns an operation, that take as long as to compile: 70 us an operation, and 0.4 s
CALLS, OPERATIONS = 17_000, 100_000_000
PATIENT = 10        # niceness of the process


class RareFunction:
    """A dense function of scalar operations whose library is compiled later, see ``waiting``."""

    def __init__(self, function: ca.Function, name: str, file: str) -> None:
        self._function, self._name, self._file = function, name, file
        self._left = CALLS + OPERATIONS // max(1, function.n_instructions())
        self._process: subprocess.Popen[bytes] | None = None

    def called(self) -> bool:
        """Count a call; whether the library is in the cache now. A remark says that it could not be made."""
        self._left -= 1
        if self._left > 0:
            return False
        if self._process is None:
            self._process = self._begun()
        if self._process.poll() is None:
            return False
        if found(self._file)[1] is not None:
            return True
        remark(f'{SLOW}: {self._name} was compiled in the background, and {cache_folder()} does not have it')
        self._left = sys.maxsize
        return False

    def _begun(self) -> subprocess.Popen[bytes]:
        path = os.pathsep.join([str(ROOT.parent), *filter(None, sys.path)])
        with tempfile.TemporaryFile() as file:      # a pipe would wait for its reader
            file.write(self._function.serialize().encode())
            file.seek(0)
            command = [sys.executable, '-c', f'from {__name__} import run; run()', self._name, self._file]
            return subprocess.Popen(command, env={**os.environ, 'PYTHONPATH': path}, stdin=file,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def waiting(backend: str, function: ca.Function, name: str) -> RareFunction | None:
    """None where C is to be had at once: it is in the cache or asked for, or operations are not scalar; or never."""
    if requested(backend) != 'auto' or not have_compiler() or not function.is_a('SXFunction'):
        return None
    file = library_file(made_of(function))
    return None if found(file)[1] is not None else RareFunction(function, name, file)


def run() -> None:
    """What the other process does: the function comes from its standard input, name and entry as its arguments."""
    os.nice(PATIENT)
    name, file = sys.argv[1:]
    function, command = ca.Function.deserialize(sys.stdin.read()), compiler()
    with suppress(CompilationError, OSError):       # the entry will be missing
        if command is not None:
            keep(file, compile_library(name, c_source(function), command))
