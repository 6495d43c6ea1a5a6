# SPDX-License-Identifier: Apache-2.0
"""An exported estimator as a library, tick by tick."""

from __future__ import annotations

import ctypes
import re
import subprocess
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np


@cache
def compiled(folder: Path, prefix: str, *flags: str) -> ctypes.CDLL:
    """The sources of a folder as a library, once; an estimator's state is in the memory that it is given."""
    library = folder.parent / f'{folder.name}.so'
    sources = [str(folder / f'{prefix}.c'), str(folder / f'{prefix}_casadi.c')]
    subprocess.run(['cc', '-std=c99', '-pedantic', '-Wall', '-Wextra', '-Werror', *flags, '-fPIC', '-shared', *sources,
                    '-lm', '-o', str(library)], check=True)
    return ctypes.CDLL(str(library))


class ExportedEstimator:
    """The estimator of a folder that ``export_estimator`` wrote; ``flags`` of its compiler."""

    def __init__(self, folder: Path, prefix: str, *flags: str) -> None:
        header = (folder / f'{prefix}.h').read_text()
        macros = re.findall(rf'#define {prefix.upper()}_(\w+) (\d+)u?\b', header)
        self.macro = {name: int(value) for name, value in macros}
        real = ctypes.c_float if 'typedef float' in header else ctypes.c_double
        channels, states = self.macro['CHANNELS'], self.macro['STATES']
        commands = max(1, self.macro['COMMANDS'])

        class Input(ctypes.Structure):
            _fields_ = [('sample', real * channels), ('command', real * commands)]

        class Output(ctypes.Structure):
            _fields_ = [('status', ctypes.c_int), ('observer', ctypes.c_int), ('reasons', ctypes.c_uint),
                        *((name, real) for name in (
                            'mass', 'lower', 'upper', 'held_mass', 'held_lower', 'held_upper', 'held_stddev',
                            'held_for', 'raw', 'mean_nis')), ('taken', ctypes.c_int),
                        ('channel', ctypes.c_uint * channels), ('state', real * states),
                        ('state_stddev', real * states),
                        ('faults', ctypes.c_uint), ('state_faults', ctypes.c_uint)]

        self._library, self._prefix = compiled(folder, prefix, *(flags or ('-O0',))), prefix
        self._input, self._output = Input, Output
        self._memory = ctypes.create_string_buffer(1 << 21)
        self._call('init')

    def _call(self, name, *arguments):
        getattr(self._library, f'{self._prefix}_{name}')(self._memory, *map(ctypes.byref, arguments))

    def step(self, sample, command) -> SimpleNamespace:
        """Outputs of a tick."""
        given, found = self._input(), self._output()
        given.sample[:], given.command[:len(command)] = list(sample), list(command)
        self._call('step', given, found)
        return SimpleNamespace(**{name: np.array(value) if hasattr(value := getattr(found, name), '__len__') else value
                                  for name, _ in self._output._fields_})

    def new_load(self):
        """Another load."""
        self._call('new_load')

    def gap(self):
        """Samples were missing."""
        self._call('gap')

    def pause(self, seconds):
        """Samples were missing for so many s."""
        getattr(self._library, f'{self._prefix}_pause')(self._memory, ctypes.c_double(seconds))
