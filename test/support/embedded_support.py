# SPDX-License-Identifier: Apache-2.0
"""An exported estimator as a library, tick by tick, and against the Python pipeline."""

from __future__ import annotations

import ctypes
import re
import subprocess
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from mbse_ros.embedded.record import OBSERVER, STATUS, PythonEstimator
from mbse_ros.embedded.tables import EstimatorSetup
from mbse_ros.monitor.faults import Fault
from mbse_ros.streams.records import PayloadStatus

MASS = 1e-9         # of a mass: what rounding makes of sums of which only 1e-8 is left after a start


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


def compared_ticks(of: EstimatorSetup, folder: Path, samples: np.ndarray, commands: np.ndarray,
                   pauses=(), first: float = MASS) -> tuple[set[PayloadStatus], Fault]:
    """Statuses and faults of the mass in all ticks; asserts that all numbers are those of Python. ``pauses``: by tick,
    ticks without samples before it; ``first``: share to which the first 10 masses after none was known agree."""
    pauses, tick = dict(pauses), 1.0 / of.rate
    exported, python = ExportedEstimator(folder, of.machine.name, '-O1'), PythonEstimator(of, 'auto')
    status, faults, known = set(), Fault(0), 0
    for k, (sample, command) in enumerate(zip(samples, commands)):
        if k in pauses:
            python.pause(pauses[k])
            exported.pause(tick * (1 + pauses[k]))
        python.step(sample, command)
        got, expected = exported.step(sample, command), python.output
        if expected is None:
            assert k in {0, *pauses} and np.isnan(got.mass), k
            continue
        state, mass = expected.state, expected.payload
        assert (got.observer, got.status, got.state_faults, got.faults) == (
            OBSERVER[state.status], STATUS[mass.status], state.faults, mass.faults), (k, mass, got)
        np.testing.assert_allclose([got.held_mass, got.held_stddev, got.held_lower, got.held_upper],
                                   [mass.mass, mass.stddev, mass.lower, mass.upper], atol=MASS,
                                   rtol=MASS if known > 10 else first, err_msg=f'tick {k}')
        known = known + 1 if np.isfinite(mass.mass) else 0
        stddev = np.sqrt(state.covariance.diagonal())
        np.testing.assert_array_less(np.abs(got.state - state.mean[-1]) / stddev, 1e-9, f'tick {k}')
        np.testing.assert_allclose(got.state_stddev, stddev, rtol=1e-9, err_msg=f'tick {k}')
        assert (mass.status is PayloadStatus.UPDATING) == np.isfinite(got.mass)
        status.add(mass.status)
        faults |= mass.faults | state.faults
    return status, faults
