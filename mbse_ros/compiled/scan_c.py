# SPDX-License-Identifier: Apache-2.0
"""The scan as generated C: the step and a loop round it in one shared library, called through ctypes."""

from __future__ import annotations

import ctypes

import casadi as ca
import numpy as np

from .arrays import address
from .cache import library
from .dense import c_source

# The states swap between two buffers, since outputs must not alias inputs.
DRIVER = r'''
#include <string.h>

typedef struct {
  long long n;
  const casadi_real *us, *p;
  casadi_real *ys, *x, *w;
  casadi_int *iw;
  int mem;
} mbse_scan;

CASADI_SYMBOL_EXPORT long long mbse_run(mbse_scan *s) {
  const casadi_real *arg[SZ_ARG];
  casadi_real *res[SZ_RES], *now = s->x, *next = s->x + NX, *swap;
  long long k;
  for (k = 0; k < s->n; ++k) {
    arg[0] = now;
    arg[1] = s->us + k * NU;
    arg[2] = s->p;
    res[0] = next;
    res[1] = s->ys + k * NY;
    if (mbse_step(arg, res, s->iw, s->w, s->mem)) return k + 1;
    swap = now; now = next; next = swap;
  }
  if (now != s->x) memcpy(s->x, now, NX * sizeof(casadi_real));
  return 0;
}
'''
LONG = 1000     # steps from which the interpreter lock is released: other threads need not wait for a whole log


class _Arguments(ctypes.Structure):
    """``mbse_scan`` of the driver."""

    _fields_ = [('n', ctypes.c_longlong), ('us', ctypes.c_void_p), ('p', ctypes.c_void_p), ('ys', ctypes.c_void_p),
                ('x', ctypes.c_void_p), ('w', ctypes.c_void_p), ('iw', ctypes.c_void_p), ('mem', ctypes.c_int)]


class ScanC:
    """Compiled loop over a dense step named ``mbse_step``. CompilationError or OSError when it cannot be had."""

    def __init__(self, name: str, step: ca.Function) -> None:
        path = str(library(name, _source(step)))
        nx = step.numel_in(0)
        self._x, self._p = np.zeros(2 * nx), np.zeros(step.numel_in(2))
        self._w, self._iw = np.zeros(step.sz_w()), np.zeros(step.sz_iw(), np.int64)
        self._state = self._x[:nx]
        short, long = ctypes.PyDLL(path), ctypes.CDLL(path)
        self._short, self._long = short.mbse_run, long.mbse_run
        self._short.restype = self._long.restype = ctypes.c_longlong
        self._arguments = _Arguments(0, 0, address(self._p), 0, address(self._x), address(self._w), address(self._iw),
                                     short.mbse_step_checkout())
        self._pointer = ctypes.byref(self._arguments)

    def run(self, x0: np.ndarray, us: np.ndarray, p: np.ndarray, x_out: np.ndarray, ys: np.ndarray) -> int:
        """0, or the number, from 1, of the step that failed; arrays as checked by Scan."""
        self._state[...] = x0
        self._p[...] = p
        arguments, n = self._arguments, len(us)
        arguments.n, arguments.us, arguments.ys = n, address(us), address(ys)
        failed = (self._short if n < LONG else self._long)(self._pointer)
        x_out[...] = self._state
        return failed


def _source(step: ca.Function) -> str:
    """C of the step with the loop behind it."""
    sizes = {'NX': step.numel_in(0), 'NU': step.numel_in(1), 'NY': step.numel_out(1),
             'SZ_ARG': step.sz_arg(), 'SZ_RES': step.sz_res()}
    return c_source(step) + ''.join(f'#define {name} {value}\n' for name, value in sizes.items()) + DRIVER
