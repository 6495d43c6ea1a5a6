# SPDX-License-Identifier: Apache-2.0
"""The joint filter's step over a simulated log with the model that it linearises there, and errors that move by it.

Used by ``own_model_nees.py``.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
from drawn_errors import Errors
from machine_accuracy import machine_of

from mbse_ros.compiled import Kernel, Scan
from mbse_ros.filters.activity import activity_of
from mbse_ros.filters.hydraulic_observer import HydraulicObserver
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.filters.observer_step import predict
from mbse_ros.filters.weighing import (
    CONSTANT,
    HELD,
    KNOWN,
    STILL_KNOWN,
    _terms,
    consider_jacobian,
    forgotten,
    frictions,
    within,
)
from mbse_ros.simulation.crane import SensorFrame

SUB, DT = 10, 1e-3      # steps between two samples, s


class Linearised:
    """The filter's step over a log, with the model that it linearised at each instant."""

    def __init__(self, name: str, valve: str) -> None:
        self.machine = machine_of(name, valve)
        self.observer = HydraulicObserver(self.machine, ObserverSettings())
        self.model = model = self.observer.model
        self.n, self.g, self.m = len(model.names), len(self.machine.coordinates), len(model.measured)
        self.c = frictions(self.machine, model)
        n, g, a, k = self.n, self.g, len(self.machine.actuated), len(model.consider(self.machine)) + self.c
        columns, rows = np.triu_indices(n)
        self.full = np.zeros((n, n), dtype=int)
        self.full[rows, columns] = self.full[columns, rows] = n + np.arange(len(rows))
        sizes = [n, len(rows), model.U.numel(), g, self.m + a, 2, a, len(self.machine.volumes), n * k,
                 model.dependent.numel()]
        self.parts = [slice(end - size, end) for size, end in zip(sizes, np.cumsum(sizes))]
        names = [self.machine.parameters.names[place] for place in model.consider(self.machine)]
        self.differ = [i for i, name in enumerate(names) if not name.startswith('base.')]
        self.index = [item.index for item in model.measured]
        x, variance = ca.SX.sym('x', sum(sizes)), ca.SX.sym('r', self.m)
        X_si, lower, U, activity, _, mass, _, _, doubt, near = (x[part] for part in self.parts)
        dt, largest, force = (ca.SX.sym(name) for name in ('dt', 'largest', 'force'))
        self.p = ca.vertcat(dt, model.psd, largest, force, variance, self.machine.parameters.symbol)
        P, X = ca.tril2symm(ca.SX(ca.Sparsity.lower(n), lower)), X_si / ca.SX(model.scale)
        solved = self.closed(near, X[:g], 2)
        f, A, slopes = ca.substitute([model.f, model.A, consider_jacobian(self.machine, model, model.f, model.X[:g])],
                                     [model.X, model.dependent, model.U], [X, solved, U])
        factors = activity_of(self.machine, model).factors(activity, n)
        factors[-1] = mass[0]
        W, T = ca.diag(factors * ca.diag(model.W)), ca.reshape(doubt, k, n).T
        X, P, F = predict(X, P, f, A, W, dt, *self.observer._key(DT))
        after, T = forgotten(self.machine, model, P, F @ T + slopes * dt, dt)
        outputs = [X, P, F, after, T, solved]
        self.predicted = Kernel(ca.Function('own_predict', [x, self.p], [ca.densify(item) for item in outputs]))
        self.balance = Kernel(self._balance(force, dt))

    def closed(self, near: ca.SX, z: ca.SX, steps: int) -> ca.SX:
        """Dependent coordinates at z."""
        if not self.model.dependent.numel():
            return near
        return self.machine.closed(near, within(self.machine, z), steps)[self.machine.system.dependent]

    def _balance(self, force: ca.SX, dt: ca.SX) -> ca.Function:
        """What ``weighed`` linearises."""
        model, machine, n = self.model, self.machine, self.n
        X, P, near = ca.SX.sym('X', n), ca.SX.sym('P', n, n), ca.SX.sym('near', model.dependent.numel())
        low, high = (limit / model.scale[-1] for limit in machine.description.payload.limits)
        start = ca.vertcat(within(machine, X[:self.g]), X[self.g:-1], ca.fmin(ca.fmax(X[-1], low), high))
        scale = ca.SX(model.scale)
        g, H, R, sure, grip, slopes = _terms(machine, model, start * scale, P * (scale @ scale.T),
                                             self.closed(near, X[:self.g], 1), force, dt)
        H = H @ ca.diag(scale)
        outputs = [g + H @ (X - start), H, R, sure, grip, slopes]
        return ca.Function('own_balance', [X, P, near, self.p], [ca.densify(item) for item in outputs])

    def log(self, frames: list[SensorFrame]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """State of the step (k, nx) before each step and after the last, inputs (k, nu), parameters of a step."""
        commands = np.array([[f.commands[c] for c in self.machine.commands] for f in frames])
        samples = np.array([[f.samples[c] for c in self.machine.channels] for f in frames])
        u = np.full(((len(frames) - 1) * SUB, self.m + commands.shape[1]), np.nan)
        u[:, self.m:] = np.repeat(commands[:-1], SUB, axis=0)
        u[SUB - 1::SUB] = np.hstack([samples, commands])[1:]
        self.observer.start(samples[0], commands[0])
        step, x, p = self.observer.step(DT)
        xs, us, ps = (ca.SX.sym(name, step.numel_in(i)) for i, name in enumerate('xup'))
        after, _ = step(xs, us, ps)
        _, states = Scan(ca.Function('own_step', [xs, us, ps], [after, after]))(x, u, p)
        return np.vstack([x, states]), u, p


def stepped(own: Linearised, errors: Errors, x: np.ndarray, u: np.ndarray, p: np.ndarray) -> tuple:
    """State after a step and its covariance, without and with frictions near standstill; the errors move with it."""
    n, free = own.n, np.zeros(own.c)
    X, moved, F, P, T, near = own.predicted(x, p)
    before = X[-1], P[-1, -1], T[-1].copy()
    errors.predict(F, moved - F @ x[own.full] @ F.T, np.exp(-DT / HELD))
    for k, i in enumerate(own.index):
        if np.isfinite(u[k]):
            unit = 1.0 / (own.model.scale[i] * own.model.measured[k].gain)
            r, item = own.observer._variance[k] * unit ** 2, own.model.measured[k]
            gain = P[:, i] / (P[i, i] + r)
            errors.correct(np.append(free, np.eye(n)[i]), np.append(free, gain), r)
            X = X + gain * ((u[k] - item.offset) * unit + item.zero / own.model.scale[i] - X[i])
            P, T = P - np.outer(gain, P[i]), T - np.outer(gain, T[i])
    return weigh(own, errors, X, P, T, near, x, p, before)


def weigh(own: Linearised, errors: Errors, X: np.ndarray, P: np.ndarray, T: np.ndarray, near: np.ndarray, x: np.ndarray,
          p: np.ndarray, before: tuple) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """State and covariances after the force balance, as in ``weighing.weighed``."""
    residual, H, R, sure, grip, slopes = own.balance(X, P, near, p)
    known = (sure > KNOWN) | ((x[own.parts[6]] > 0.5) & (sure > STILL_KNOWN))
    start, says = residual - H @ X, False       # the residual at X, linear from there
    for i, row in enumerate(H):
        column = P @ row
        variance, error = row @ column + R[i], -(start[i] + row @ X)
        hidden = not known[i] and row[-1] ** 2 * P[-1, -1] >= grip[i]
        rough = hidden * column[-1] / (variance + grip[i])
        seen = row @ T + slopes[i]
        doubt = np.sum((seen - row[-1] * T[-1])[own.differ] ** 2) * CONSTANT / DT
        gain, share = (not hidden) * column / variance, known[i] * variance / (variance + doubt)
        mass = P[-1, -1] - share * (2 - share) * gain[-1] * column[-1] - rough * column[-1]
        whole = np.append(gain[:-1], gain[-1] + rough)
        P, gain[-1] = P - np.outer(whole, column), share * gain[-1] + rough
        P = np.tril(P) + np.tril(P, -1).T
        P[-1, -1] = mass
        errors.correct(np.append((not hidden) * slopes[i][-own.c:], row), np.append(np.zeros(own.c), gain),
                       R[i] + hidden * grip[i])
        X, T, says = X + gain * error, T - np.outer(gain, seen), says or known[i] or hidden
        T[-1, -own.c:] += rough * seen[-own.c:]
    if not says:
        X[-1], P[-1, -1], T[-1] = before
        errors.hold()
    return X, P, P + T[:, -own.c:] @ T[:, -own.c:].T
