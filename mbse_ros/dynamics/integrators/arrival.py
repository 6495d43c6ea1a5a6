# SPDX-License-Identifier: Apache-2.0
"""Position problem and state equations in one compiled call: what a step of independent coordinates costs."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import casadi as ca
import numpy as np

from ...compiled import Kernel
from ..partitioned import Partitioned, newton_function
from ..state_equations import is_small

TOLERANCE = 1e-13       # of Phi after both Newton steps; beyond it the position problem goes on by itself

_kernels: WeakKeyDictionary[Partitioned, Kernel] = WeakKeyDictionary()


class Arrival:
    """State equations at the position that belongs to z, near a guess: two Newton steps, always taken, then the rates.

    ``run()`` reads ``guess`` (n,) (with z in it), ``zd`` (g,), ``u``, ``t`` (1,) and writes ``q``, ``residual`` (1,),
    ``zdd``, ``A`` (2g, 2g), ``qdd``, ``lam``, ``qd``.
    """

    def __init__(self, partition: Partitioned, backend: str) -> None:
        system = partition.system
        n, m, g = system.n, system.m, len(partition.independent)
        kernel = _kernels.get(partition)
        if kernel is None:
            kernel = _kernels[partition] = Kernel(arrival_function(partition), backend)
        self.guess, self.zd, self.u, self.t = np.zeros(n), np.zeros(g), np.zeros(system.u.numel()), np.zeros(1)
        self.q, self.residual, self.zdd, self.A = np.zeros(n), np.zeros(1), np.zeros(g), np.zeros((2 * g, 2 * g))
        self.qdd, self.lam, self.qd = np.zeros(n), np.zeros(m), np.zeros(n)
        parameters = np.array(partition.parameters, dtype=float)
        self.run = kernel.bind([self.guess, self.zd, self.u, self.t, parameters],
                               [self.q, self.residual, self.zdd, self.A, self.qdd, self.lam, self.qd])

    @property
    def arrived(self) -> bool:
        """Whether the last run solved the position problem and all its numbers are finite."""
        scale = max(1.0, float(np.abs(self.q).max()))
        return bool(self.residual[0] <= TOLERANCE * scale and np.isfinite(self.qdd).all() and np.isfinite(self.A).all())


def arrival_function(partition: Partitioned) -> ca.Function:
    """Function ``(guess, zd, u, t, p) -> (q, max |Phi|, zdd, A, qdd, lam, qd)``."""
    system, p_ = partition.system, partition.system.values.symbol
    kind = ca.SX if is_small(system) else ca.MX
    guess, zd, u, t, p = (kind.sym(name, size) for name, size in (
        ('guess', system.n), ('zd', len(partition.independent)), ('u', system.u.numel()), ('t', 1), ('p', p_.numel())))
    newton = newton_function(system)
    residual = ca.Function('residual', [system.q, system.t, p_], [system.Phi])
    q = newton(newton(guess, t, p)[0], t, p)[0]
    size = ca.norm_inf(residual(q, t, p)) if system.m else kind(0)
    zdd, A, _, qdd, lam, qd = partition.function(q, zd, u, t, p)
    return ca.Function('mbse_arrival', [guess, zd, u, t, p], [q, size, zdd, A, qdd, lam, qd], {'cse': True})
