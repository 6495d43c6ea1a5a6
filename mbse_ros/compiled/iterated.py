# SPDX-License-Identifier: Apache-2.0
"""A step of a scan that repeats a function until it says that this is enough, in compiled code without leaving it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import casadi as ca
import numpy as np

from .dense import dense

# The iterated numbers are the first of the state, which is copied: outputs of a function must not alias its inputs.
STEP = r'''
#include <string.h>

CASADI_SYMBOL_EXPORT int mbse_step_checkout(void) { return 0; }
CASADI_SYMBOL_EXPORT void mbse_step_release(int mem) { (void)mem; }

static int mbse_step(const casadi_real **arg, casadi_real **res, casadi_int *iw, casadi_real *w, int mem) {
  const casadi_real *given[SZ_ARG];
  casadi_real *found[SZ_RES], *x = w, *v = w + NX;
  int k;
  memcpy(x, arg[0], NX * sizeof(casadi_real));
  for (k = 0; k < MOST; ++k) {
    given[0] = x; given[1] = arg[1]; given[2] = arg[2];
    found[0] = v;
    if (mbse_step_iterate(given, found, iw, v + NV, mem)) return 1;
    memcpy(x, v, NV * sizeof(casadi_real));
    if (!(x[NV - 1] > 0)) break;
  }
  given[0] = x; given[1] = arg[1]; given[2] = arg[2];
  found[0] = res[0]; found[1] = res[1];
  return mbse_step_finish(given, found, iw, v + NV, mem);
}
'''


@dataclass(frozen=True)
class Iterated:
    """Step ``(x (nx,), u (nu,), p (np,)) -> (x_next (nx,), y (ny,))`` for a ``Scan``.

    ``iterate (x, u, p) -> v (nv,)`` renews the first nv entries of x, again and again while the last of v is above
    zero, at most ``most`` times; ``finish (x, u, p) -> (x_next, y)`` makes the step of what it left. Both functions
    must need no memory of their own (CasADi's solvers do). ValueError where their shapes do not agree.
    """

    iterate: ca.Function
    finish: ca.Function
    most: int

    def __post_init__(self) -> None:
        inputs = [[f.size_in(i) for i in range(f.n_in())] for f in (self.iterate, self.finish)]
        if inputs[0] != inputs[1] or not 0 < self.iterate.numel_out(0) <= self.finish.numel_in(0):
            raise ValueError(f'{self.finish.name()}: got {inputs} and {self.iterate.size_out(0)}, expected functions'
                             ' of the same (x, u, p), the first of which gives the first entries of x')

    def dense(self, name: str) -> Iterated:
        """With dense inputs and outputs, under the names that the C code knows."""
        return replace(self, iterate=dense(self.iterate, f'{name}_iterate'),
                       finish=dense(self.finish, f'{name}_finish'))

    def sizes(self) -> tuple[int, int, int, int]:
        """Lengths of the pointers to arguments and results and of the working memories, doubles and integers."""
        arg, res, w, iw = (max(pair) for pair in zip(sizes_of(self.iterate), sizes_of(self.finish)))
        return arg, res, w + self.finish.numel_in(0) + self.iterate.numel_out(0), iw

    def c_step(self) -> str:
        """C of the loop round both functions."""
        sizes = {'NV': self.iterate.numel_out(0), 'MOST': self.most}
        return ''.join(f'#define {name} {value}\n' for name, value in sizes.items()) + STEP

    def in_vm(self) -> Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """The step in CasADi's virtual machine."""
        nv = self.iterate.numel_out(0)

        def step(x: np.ndarray, u: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            x = x.copy()
            for _ in range(self.most):
                x[:nv] = self.iterate(x, u, p).full().ravel()
                if not x[nv - 1] > 0:
                    break
            x_next, y = self.finish(x, u, p)
            return x_next.full().ravel(), y.full().ravel()
        return step


Step: TypeAlias = 'ca.Function | Iterated'


def shapes_of(step: Step) -> ca.Function:
    """A function that has the name and the shapes of a step."""
    return step.finish if isinstance(step, Iterated) else step


def sizes_of(step: Step) -> tuple[int, int, int, int]:
    """See ``Iterated.sizes``."""
    if isinstance(step, Iterated):
        return step.sizes()
    return step.sz_arg(), step.sz_res(), step.sz_w(), step.sz_iw()
