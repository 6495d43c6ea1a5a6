# SPDX-License-Identifier: Apache-2.0
"""Many steps of ``x, y = step(x, u, p)`` in one call: from one state (``Scan``), or by many threads (``Runs``).

Both take blocks of a fixed number of steps, in the virtual machine, or as C with a loop round the step (ctypes).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any

import casadi as ca
import numpy as np

from ..errors import DivergenceError
from .cache import library
from .compiler import build
from .dense import DOUBLE, c_source, checked, dense, fitted, made_of
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
NAME = 'mbse_step'


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


class Scan:
    """Runs ``step``: (x (nx,), u (nu,), p (np,)) -> (x_next (nx,), y (ny,)) over a series of u; may be ``Iterated``.

    ``backend`` and the attributes ``name``, ``backend``, ``note`` as in Kernel. A long series runs in blocks, so that
    memory is bounded; to split it over several calls changes no bit of the result. Safe with threads.
    ``in_lanes``: long functions of scalar operations compute four at a time, which is faster where they repeat.
    Raises ValueError when the function has other inputs or outputs.
    """

    _blocks: BlocksC | BlocksVm

    def __init__(self, step: Step, backend: str = 'auto', in_lanes: bool = True) -> None:
        shapes = shapes_of(step)
        self.name = shapes.name()
        check_signature(shapes)
        made = step.dense(NAME) if isinstance(step, Iterated) else dense(step, NAME)
        self._x_shape, self._u_shape, self._p_shape = ((shapes.numel_in(i),) for i in range(3))
        self._ny = shapes.numel_out(1)
        self._blocks, self.backend, self.note = build(
            backend, self.name, lambda: BlocksC(self.name, made, in_lanes), lambda: BlocksVm(made))
        self._longest = self._blocks.longest
        self._lock = Lock()

    def __call__(self, x0: Any, us: Any, p: Any) -> tuple[np.ndarray, np.ndarray]:
        """State after the last row of ``us`` (n, nu), and the outputs (n, ny) of all steps, both fresh.

        Raises ValueError (shape or kind of an array), DivergenceError (the step reports a failure; with its number,
        in the VM that of the first step of its block).
        """
        us = self._series(us)
        n = len(us)
        if 0 < n <= self._longest:
            with self._lock:
                block = self._step(x0, us, p, 0)
                return block.x_end.copy(), block.ys.copy()
        x, ys = np.empty(self._x_shape), np.empty((n, self._ny))
        self._steps(x0, us, p, x, ys)
        return x, ys

    def run(self, x0: np.ndarray, us: np.ndarray, p: np.ndarray, x_out: np.ndarray, ys: np.ndarray) -> None:
        """As ``__call__``, into the C-contiguous float64 arrays ``x_out`` (nx,) and ``ys`` (n, ny).

        ``x_out`` may be ``x0``; ``ys`` of a series of several blocks must be apart from ``us``, else ValueError. After
        an error ``x_out`` is as before, ``ys`` may be filled in part.
        """
        us = self._series(us)
        checked(x_out, self._x_shape, 'x_out', writable=True)
        checked(ys, (len(us), self._ny), 'ys', writable=True)
        if 0 < len(us) <= self._longest:
            with self._lock:
                block = self._step(x0, us, p, 0)
                x_out[...] = block.x_end
                ys[...] = block.ys
        elif np.may_share_memory(us, ys):
            raise ValueError('ys: must not share memory with us')
        else:
            self._steps(x0, us, p, x_out, ys)

    def _steps(self, x0: Any, us: np.ndarray, p: Any, x_out: np.ndarray, ys: np.ndarray) -> None:
        """All steps, block after block."""
        with self._lock:
            x, p = fitted(x0, self._x_shape, 'x0'), fitted(p, self._p_shape, 'p')
            for start in range(0, len(us), self._longest):
                stop = start + self._longest
                block = self._step(x, us[start:stop], p, start)
                ys[start:stop] = block.ys
                x = block.x_end
            x_out[...] = x

    def _step(self, x: Any, us: np.ndarray, p: Any, start: int) -> StepBlock:
        """The block of the length of ``us``, after it ran; ``start`` is the number of its first step."""
        block = self._blocks[len(us)]
        block.x[...] = fitted(x, self._x_shape, 'x0')
        block.us[...] = us
        block.p[...] = fitted(p, self._p_shape, 'p')
        failed = block.run()
        if failed:
            raise DivergenceError(self.name, start + failed - 1, 'the function reports a failure')
        return block

    def _series(self, us: Any) -> np.ndarray:
        """``us`` as float64 (n, nu)."""
        if type(us) is np.ndarray and us.shape[1:] == self._u_shape and us.dtype is DOUBLE:
            return us
        shape = np.shape(us)
        if len(shape) != 2 or shape[1:] != self._u_shape:
            raise ValueError(f'us: got shape {shape}, expected (n, {self._u_shape[0]})')
        return fitted(us, shape, 'us')


def check_signature(step: ca.Function) -> None:
    """ValueError unless the function is (x, u, p) -> (x, y) of columns."""
    shapes = [step.size_in(i) for i in range(step.n_in())], [step.size_out(i) for i in range(step.n_out())]
    columns = all(rows == 0 or n == 1 for group in shapes for rows, n in group)
    if len(shapes[0]) != 3 or len(shapes[1]) != 2 or not columns or step.numel_in(0) != step.numel_out(0):
        raise ValueError(f'{step.name()}: got {shapes[0]} -> {shapes[1]}, expected columns (x, u, p) -> (x, y)')


class Runs:
    """Runs ``step``: (x (nx,), u (nu,), p (np,)) -> (x_next (nx,), y (ny,)) while the last entry of y is above zero.

    The same step, compiled once, as of ``Scan``; always C. A run has memory of its own and lets other threads run, so
    any number of them go on at once. Raises ValueError when the function has other inputs or outputs,
    CompilationError, OSError.
    """

    def __init__(self, step: ca.Function, in_lanes: bool = True) -> None:
        check_signature(step)
        self.name, function = step.name(), dense(step, NAME)
        self._sizes = [function.numel_in(i) for i in range(3)] + [function.numel_out(1)]
        self._work = function.sz_w(), function.sz_iw()
        loaded = ctypes.CDLL(library_of(self.name, function, in_lanes))
        self._run, self._checkout, self._release = (loaded.mbse_run_while, loaded.mbse_step_checkout,
                                                    loaded.mbse_step_release)
        self._run.restype = ctypes.c_longlong
        self._run.argtypes = [ctypes.c_void_p, *[ctypes.c_longlong] * 3, ctypes.c_void_p]

    def __call__(self, x: np.ndarray, us: np.ndarray, p: np.ndarray, kept: np.ndarray, every: int = 1,
                 first: int = 0) -> int:
        """Number of the steps with inputs ``us`` (n, nu) that held, one after the other; ``x`` (nx,) is the state after
        the last of them.

        The first entries of y after each step whose number, counted from ``first``, is a multiple of ``every``, go
        into the row ``number // every`` of ``kept`` (rows, at most ny). Arrays: C-contiguous float64; else, or with
        too few rows, ValueError.
        """
        nx, nu, np_, ny = self._sizes
        if kept.ndim != 2 or kept.shape[1] > ny or len(us) and (first + len(us) - 1) // every >= len(kept):
            raise ValueError(f'{self.name}: got {kept.shape} kept numbers for {first + len(us)} steps')
        for array, shape, what in ((x, (nx,), 'x'), (us, (len(us), nu), 'us'), (p, (np_,), 'p'),
                                   (kept, kept.shape, 'kept')):
            checked(array, shape, f'{self.name}: {what}', writable=what in ('x', 'kept'))
        own = np.zeros(2 * nx + ny + self._work[0])
        own[:nx] = x
        iw, states, ys, w = np.zeros(self._work[1], np.int64), own, own[2 * nx:], own[2 * nx + ny:]
        memory = self._checkout()
        addresses = (array.ctypes.data for array in (us, p, ys, states, w, iw))
        arguments = Arguments(len(us), *addresses, memory)
        steps = self._run(ctypes.addressof(arguments), every, first, kept.shape[1], kept.ctypes.data)
        self._release(memory)
        x[...] = own[:nx]
        return steps
