# SPDX-License-Identifier: Apache-2.0
"""Energies, power and constraint violation along a motion."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np

from ..compiled import Kernel, Scan
from .formulations.matrix_r import constraint_rates
from .model import Model

OBSERVED = ('kinetic', 'potential', 'power', 'violation', 'violation_rate')


def observe(model: Model, t: np.ndarray, q: np.ndarray, qd: np.ndarray, lam: np.ndarray,
            u: np.ndarray) -> dict[str, np.ndarray]:
    """Each of ``OBSERVED`` (k,) at the states of a motion (k, ...).

    Energies, J; ``power``, W, of dampers, loads, inputs, drivers and friction: what changes the sum of the energies;
    ``violation`` max |Phi|, ``violation_rate`` max |Phi_q qd + Phi_t|.
    """
    q_, qd_, lam_, u_, t_, p_ = arguments = _arguments(model)
    row = ca.SX.sym('row', sum(symbol.numel() for symbol in arguments[:-1]))
    parts = ca.vertsplit(row, np.cumsum([0] + [symbol.numel() for symbol in arguments[:-1]]).tolist())
    y = ca.Function('observed', arguments, [_observed(model, *arguments)])(*parts, p_)
    nothing = ca.SX.sym('x', 1)
    step = ca.Function('mbse_observed', [nothing, row, p_], [nothing, y], {'cse': True})
    rows = np.hstack([q, qd, lam, u, t[:, None]])
    found = Scan(step, model.backend)(np.zeros(1), rows, model.parameters)[1]
    return dict(zip(OBSERVED, found.T))


def power(model: Model) -> Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float], float]:
    """Function ``(q, qd, lam, u, t) -> power``, W, of all that changes the sum of the energies."""
    arguments = _arguments(model)
    found = _observed(model, *arguments)[OBSERVED.index('power')]
    if ca.simplify(found).is_zero():
        return lambda q, qd, lam, u, t: 0.0
    kernel = Kernel(ca.Function('mbse_power', arguments, [found], {'cse': True}), model.backend)
    return lambda q, qd, lam, u, t: float(kernel(q, qd, lam, u, [t], model.parameters)[0][0])


def _arguments(model: Model) -> list[ca.SX]:
    system = model.system
    return [system.q, system.qd, ca.SX.sym('lam', len(model.rows)), system.u, system.t, system.values.symbol]


def _observed(model: Model, q: ca.SX, qd: ca.SX, lam: ca.SX, *_: ca.SX) -> ca.SX:
    """Column of ``OBSERVED``; a driver's power is ``-lam' J qd`` with ``J qd = b``, zero without drivers."""
    system = model.system
    J, b, _ = constraint_rates(system)
    driven = -ca.dot(lam, b) if lam.numel() else ca.SX(0)
    phi = ca.substitute(system.phi, system.multipliers, lam)
    power_ = ca.dot(qd, system.other_forces + phi) + driven
    violation, rate = (ca.norm_inf(x) if x.numel() else ca.SX(0) for x in (system.Phi, J @ qd - b))
    return ca.vertcat(system.kinetic, system.potential, power_, violation, rate)
