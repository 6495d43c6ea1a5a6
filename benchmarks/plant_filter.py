# SPDX-License-Identifier: Apache-2.0
"""A Kalman filter that knows the simulated plant, and its covariance along the true motion: see velocity_bound.py.

Only what no model tells has process noise: a driven coordinate, changes of the load, flows of unknown valves.
"""

from __future__ import annotations

from itertools import product

import casadi as ca
import numpy as np
from machine_accuracy import machine_of
from scipy.linalg import expm

from mbse_ros.filters.hydraulic_state import direct
from mbse_ros.machine import Machine
from mbse_ros.simulation.crane import SensorFrame

MPA, LITRE, TONNE, STEPS = 1e6, 1e-3, 1e3, 5        # STEPS between two samples
START = 1e-2, 5e-2, 0.5, 1.0, 1e-3, 1.0             # deviations at the start, of what the state is made of
MASS = 1.25                                         # t, at the start


class Dynamics:
    """The plant as a state-space model: z, zd, accelerations of free coordinates, p (MPa), spools (V) or flows (l/s),
    mass (t); ``rates`` (near, X, U) -> f, A, dependent."""

    def __init__(self, machine: Machine) -> None:
        self.machine, g = machine, len(machine.coordinates)
        self.free = [k for k in range(g) if k not in machine.actuated]
        self.known = not machine.unknown_valves
        sizes = [g, g, len(self.free), len(machine.volumes), len(machine.valves) * (1 if self.known else 2), 1]
        self.ends = np.cumsum(sizes)
        self.n, system = int(self.ends[-1]), machine.system
        X, U = ca.SX.sym('X', self.n), ca.SX.sym('U', len(machine.valves))
        near = ca.SX.sym('near', len(system.dependent))
        z, zd, given, p, last, mass = ca.vertsplit(X, [0, *self.ends.tolist()])
        circuit, pressure, S = machine.circuit, p * MPA, machine.piston_rates
        names = machine.valves if self.known else ()
        flows = ca.vertcat(*(circuit.valve_flows(name, last[i], pressure) for i, name in enumerate(names)))
        flows = flows if self.known else last * LITRE
        force = circuit.hydraulic_forces(pressure) - circuit.friction_forces(S @ zd, pressure)
        moved, Mbar = machine.actuated, machine.reduced.Mbar
        rest = (machine.reduced.Qbar + S.T @ force)[moved] - (Mbar[moved, self.free] @ given if self.free else 0)
        entries = dict(zip(moved, ca.vertsplit(ca.solve(ca.densify(Mbar[moved, moved]), rest))))
        zdd = ca.vertcat(*(entries[k] if k in entries else given[self.free.index(k)] for k in range(g)))
        rates = circuit.pressure_rates(system.q[machine.pistons], S @ zd, flows) / MPA
        lag = [circuit.spool_rate(name, last[i], U[i]) for i, name in enumerate(names)] or [ca.SX.zeros(last.numel())]
        f = ca.vertcat(zd, zdd, ca.SX.zeros(given.numel()), rates, *lag, 0)
        f = ca.substitute(f, ca.vertcat(machine.reduced.zd, machine.payload), ca.vertcat(zd, mass * TONNE))
        A = ca.jacobian(f, X)
        A[:, :g] = A[:, :g] + ca.jacobian(f, system.q) @ machine.reduced.R
        q, numbers = machine.closed(near, z), machine.parameters.symbol
        place = ca.Function('place', [system.q, X, U, numbers], [f, ca.densify(A)], {'cse': True})
        self.rates = ca.Function('rates', [near, X, U, numbers], [*place(q, X, U, numbers), q[system.dependent]])

    def at(self, near: np.ndarray, X: np.ndarray, U: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rates (n,), their Jacobian (n, n) and the dependent coordinates."""
        return tuple(item.full().squeeze() for item in self.rates(near, X, U, self.machine.parameters.mean))


def truth_of(model: Dynamics, frames: list[SensorFrame]) -> tuple[np.ndarray, np.ndarray]:
    """States (k, n) at the frames and commands (k, valves)."""
    machine, valves = machine_of(model.machine.name), model.machine.valves
    U = np.array([[f.commands[f'command/{name}'] for name in valves] for f in frames])
    dt, last = 1e-9 * (frames[1].stamp_ns - frames[0].stamp_ns), np.zeros_like(U)
    lag = [np.exp(-dt / machine.description.hydraulics.valves[name].time_constant.value) for name in valves]
    for k in range(1, len(U)):
        last[k] = U[k - 1] + lag * (last[k - 1] - U[k - 1])
    position, velocity, acceleration, p = (np.array([getattr(f, kind) for f in frames]) for kind in (
        'position', 'velocity', 'acceleration', 'pressure'))
    if not model.known:
        s, pressure = ca.SX.sym('s', len(valves)), ca.SX.sym('p', p.shape[1])
        flows = ca.vertcat(*(machine.circuit.valve_flows(name, s[i], pressure) for i, name in enumerate(valves)))
        function = ca.Function('flows', [s, pressure, machine.parameters.symbol], [flows / LITRE])
        last = function.map(len(U))(last.T, p.T, machine.parameters.mean).full().T
    mass = np.array([[f.payload / TONNE] for f in frames])
    return np.hstack([position, velocity, acceleration[:, model.free], p / MPA, last, mass]), U


def along(model: Dynamics, truth: np.ndarray, U: np.ndarray, h: float) -> np.ndarray:
    """Transitions (STEPS, k - 1, n, n) linearised at the truth."""
    near = model.machine.position(truth[0, :len(model.machine.coordinates)])[model.machine.system.dependent]
    found = np.empty((STEPS, len(truth) - 1, model.n, model.n))
    for k, i in product(range(len(truth) - 1), range(STEPS)):
        _, found[i, k], near = model.at(near, truth[k] + (i + 0.5) / STEPS * (truth[k + 1] - truth[k]), U[k])
    return np.array([expm(h * A) for A in found])


def joined(F: np.ndarray, W: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
    """Transitions and noises (k - 1, n, n) from sample to sample."""
    whole, noise, half = np.eye(F.shape[-1]), 0.0, W[1:, :, None] * np.eye(F.shape[-1]) * h / 2
    for transition in F:
        whole, noise = transition @ whole, transition @ (noise + half) @ transition.swapaxes(1, 2) + half
    return whole, noise


class Filter:
    """Kalman filter of the plant over one log; ``quieter``: factors on the deviations of positions and pressures."""

    def __init__(self, model: Dynamics, frames: list[SensorFrame], quieter: tuple[float, float] = (1.0, 1.0)) -> None:
        machine, g, channels = model.machine, len(model.machine.coordinates), direct(model.machine)
        names = [*(f'position/{c}' for c in machine.coordinates), *(f'pressure/{v}' for v in machine.volumes)]
        self.H = np.r_[:g, model.ends[2]:model.ends[3]]
        each = g, len(self.H) - g
        unit = np.repeat([1.0, 1 / MPA], each)
        self.samples = np.array([[f.samples[channels[name].name] for name in names] for f in frames]) * unit
        deviations = np.array([channels[name].sensor.noise for name in names]) * unit
        self.R = np.diag((deviations * np.repeat(quieter, each)) ** 2)
        self.P = np.diag(np.repeat(START, np.diff(model.ends, prepend=0)) ** 2)

    def predict(self, F: np.ndarray, Q: np.ndarray) -> None:
        """One transition with its noise."""
        self.P = F @ self.P @ F.T + Q

    def correct(self) -> np.ndarray:
        """Gain (n, s)."""
        gain = np.linalg.solve(self.P[np.ix_(self.H, self.H)] + self.R, self.P[self.H]).T
        P = self.P - gain @ self.P[self.H]
        self.P = (P + P.T) / 2
        return gain


def bound(found: Filter, F: np.ndarray, W: np.ndarray, h: float, g: int) -> np.ndarray:
    """Variances (k, 2 g) of positions and velocities."""
    variances = np.zeros((len(W), 2 * g))
    for k, (transition, noise) in enumerate(zip(*joined(F, W, h)), 1):
        found.predict(transition, noise)
        found.correct()
        variances[k] = found.P.diagonal()[:2 * g]
    return variances


def ekf(model: Dynamics, found: Filter, truth: np.ndarray, U: np.ndarray, W: np.ndarray, h: float) -> np.ndarray:
    """Squared errors (k, 2 g) of positions and velocities of the filter that knows the plant."""
    g, X = len(model.machine.coordinates), np.zeros(model.n)
    squares = np.zeros((len(W), 2 * g))
    X[found.H], X[-1] = found.samples[0], MASS
    near = model.machine.position(X[:g])[model.machine.system.dependent]
    for k in range(1, len(W)):
        for _ in range(STEPS):
            f, A, near = model.at(near, X, U[k - 1])
            E = expm(h * np.block([[A, f[:, None]], [np.zeros((1, model.n + 1))]]))
            X = X + E[:-1, -1]
            found.predict(E[:-1, :-1], np.diag(h * W[k]))
        X = X + found.correct() @ (found.samples[k] - X[found.H])
        squares[k] = (X - truth[k])[:2 * g] ** 2
    return squares
