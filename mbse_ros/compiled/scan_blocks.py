# SPDX-License-Identifier: Apache-2.0
"""Blocks of a scan: a fixed number of steps, in the virtual machine, or as C with a loop round the step (ctypes)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from .cache import library
from .dense import c_source, made_of
from .iterated import Iterated, Step, shapes_of, sizes_of

LONG = 32       # steps of a block during which other threads may run
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

CASADI_SYMBOL_EXPORT int mbse_run(const mbse_scan *s) {
  const casadi_real *arg[SZ_ARG];
  casadi_real *res[SZ_RES], *now = s->x, *next = s->x + NX, *swap;
  long long k;
  for (k = 0; k < s->n; ++k) {
    arg[0] = now;
    arg[1] = s->us + k * NU;
    arg[2] = s->p;
    res[0] = next;
    res[1] = s->ys + k * NY;
    if (mbse_step(arg, res, s->iw, s->w, s->mem)) return (int)(k + 1);
    swap = now; now = next; next = swap;
  }
  if (now != s->x) memcpy(s->x, now, NX * sizeof(casadi_real));
  return 0;
}

CASADI_SYMBOL_EXPORT long long mbse_run_while(const mbse_scan *s, long long every, long long first, long long nkept,
                                              casadi_real *kept) {
  const casadi_real *arg[SZ_ARG];
  casadi_real *res[SZ_RES], *now = s->x, *next = s->x + NX, *swap;
  long long k;
  for (k = 0; k < s->n; ++k) {
    arg[0] = now;
    arg[1] = s->us + k * NU;
    arg[2] = s->p;
    res[0] = next;
    res[1] = s->ys;
    if (mbse_step(arg, res, s->iw, s->w, s->mem) || !(s->ys[NY - 1] > 0)) break;
    swap = now; now = next; next = swap;
    if ((first + k) % every == 0) memcpy(kept + (first + k) / every * nkept, s->ys, nkept * sizeof(casadi_real));
  }
  if (now != s->x) memcpy(s->x, now, NX * sizeof(casadi_real));
  return k;
}
'''


@dataclass(frozen=True)
class StepBlock:
    """``n`` steps: fill ``x`` (nx,), ``us`` (n, nu) and ``p`` (any shape (np,) can be written to), then ``run()``.

    ``run`` gives 0, or the number from 1 of the step that failed, and leaves ``x_end`` (nx,) and ``ys`` (n, ny). To
    copy in and out costs less than to take the address of an array.
    """

    x: np.ndarray
    us: np.ndarray
    p: np.ndarray
    x_end: np.ndarray
    ys: np.ndarray
    run: Callable[[], int]


class Arguments(ctypes.Structure):
    """``mbse_scan`` of the driver."""

    _fields_ = [('n', ctypes.c_longlong), ('us', ctypes.c_void_p), ('p', ctypes.c_void_p), ('ys', ctypes.c_void_p),
                ('x', ctypes.c_void_p), ('w', ctypes.c_void_p), ('iw', ctypes.c_void_p), ('mem', ctypes.c_int)]


class BlocksC(dict[int, StepBlock]):
    """Block of each length up to ``longest``, made when first asked for; all share their buffers.

    The interpreter lock is kept during a short block, which takes less than to give it away, and given to other threads
    during a long one.
    Raises CompilationError or OSError when the compiled loop over the dense step ``mbse_step`` cannot be had.
    """

    longest = 256

    def __init__(self, name: str, step: Step, in_lanes: bool = True) -> None:
        super().__init__()
        path, shapes, (_, _, w, iw) = library_of(name, step, in_lanes), shapes_of(step), sizes_of(step)
        loaded = ctypes.PyDLL(path)
        self._run, self._memory = loaded.mbse_run, loaded.mbse_step_checkout()
        self._run_freely = ctypes.CDLL(path).mbse_run
        self._nx = shapes.numel_in(0)
        self._us, self._ys = (np.zeros((self.longest, size)) for size in (shapes.numel_in(1), shapes.numel_out(1)))
        self._x, self._p, self._w = (np.zeros(size) for size in (2 * self._nx, shapes.numel_in(2), w))
        self._iw = np.zeros(iw, np.int64)

    def __missing__(self, n: int) -> StepBlock:
        addresses = (a.ctypes.data for a in (self._us, self._p, self._ys, self._x, self._w, self._iw))
        call = self._run if n < LONG else self._run_freely
        run = partial(call, ctypes.byref(Arguments(n, *addresses, self._memory)))
        x = self._x[:self._nx]
        self[n] = StepBlock(x, self._us[:n], self._p, x, self._ys[:n], run)
        return self[n]


def library_of(name: str, step: Step, in_lanes: bool) -> str:
    """Path of the compiled loops round a dense step ``mbse_step``; raises CompilationError."""
    inner = step.c_step() if isinstance(step, Iterated) else ''
    functions = [step.iterate, step.finish] if isinstance(step, Iterated) else [step]
    made = ' '.join(made_of(function, in_lanes) for function in functions)
    return str(library(name, lambda: c_source(*functions, in_lanes=in_lanes) + _sizes(step) + inner + DRIVER,
                       made + inner + DRIVER))


def _sizes(step: Step) -> str:
    """Sizes that the loops need."""
    shapes, (arg, res, _, _) = shapes_of(step), sizes_of(step)
    sizes = {'NX': shapes.numel_in(0), 'NU': shapes.numel_in(1), 'NY': shapes.numel_out(1), 'SZ_ARG': arg,
             'SZ_RES': res}
    return ''.join(f'#define {name} {value}\n' for name, value in sizes.items())


class BlocksVm(dict[int, StepBlock]):
    """Block of each length up to ``longest``, made when first asked for: a function of so many steps, or a loop."""

    longest = 64

    def __init__(self, step: Step) -> None:
        super().__init__()
        self._step = step

    def __missing__(self, n: int) -> StepBlock:
        shapes = shapes_of(self._step)
        x, us, p = (np.zeros((rows, shapes.numel_in(i))) for i, rows in enumerate((1, n, n)))
        xs, ys = (np.zeros((n, shapes.numel_out(i))) for i in range(2))
        make = self._looped if isinstance(self._step, Iterated) else self._mapped
        self[n] = StepBlock(x[0], us, p, xs[-1], ys, make(n, x, us, p, xs, ys))
        return self[n]

    def _mapped(self, n: int, *arrays: np.ndarray) -> Callable[[], int]:
        """All steps as one function; CasADi's columns side by side are the rows of C-ordered arrays."""
        buffer, trigger = shapes_of(self._step).mapaccum(f'mbse_scan{n}', n).buffer()
        for i, array in enumerate(arrays[:3]):
            buffer.set_arg(i, array.data)
        for i, array in enumerate(arrays[3:]):
            buffer.set_res(i, array.data)

        def run() -> int:
            trigger()
            return int(buffer.ret())
        return run

    def _looped(self, n: int, x: np.ndarray, us: np.ndarray, p: np.ndarray, xs: np.ndarray, ys: np.ndarray
                ) -> Callable[[], int]:
        """One step after the other."""
        step = self._step.in_vm()

        def run() -> int:
            for k in range(n):
                xs[k], ys[k] = step(xs[k - 1] if k else x[0], us[k], p[k])
            return 0
        return run
