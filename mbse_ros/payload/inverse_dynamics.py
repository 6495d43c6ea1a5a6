# SPDX-License-Identifier: Apache-2.0
"""Payload mass by inverse dynamics: the residual of the equations of motion is affine in the mass.

Pyrhönen et al., mass estimation, Eqs. 50-57. ``g(m) = Mbar(z, m) zdd - Qbar(z, zd, m) - S' F_act = g0 + G1 m`` in any
independent coordinates, S being the pistons' speeds by theirs; least squares over the equations with a cylinder,
weighted by the covariance of g that follows from the observer's, gives the mass and its information 1/variance.

Gates belong to equations, see ``gates``. The friction of a cylinder at rest is anything between two bounds, for as
long as it rests: a mean does not remove it. So a cylinder that rests, is at an end of its stroke or accelerates too
much takes its equation out of the least squares, and the others weigh on; a sample is rejected where none is left, or
just where the set of them changes, for what stopped or started there was not steady.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite

import casadi as ca
import numpy as np

from ..compiled import Scan
from ..compiled.cache import built
from ..errors import PositionProblemError
from ..filters.force_balance import force_balance
from ..filters.hydraulic_state import state_names, state_parts
from ..machine import Machine
from ..machine.machine import NEWTON
from .gates import GATE_NUMBERS, closed_gate, gate_numbers, passed_gates
from .payload_settings import PayloadSettings

LARGEST_WRITTEN = 12_000     # scalar operations that are written out; calls of functions compile faster beyond
LEADING = GATE_NUMBERS + 1      # numbers after the covariance in the parameters of a sample's step: the reference mass


@dataclass(frozen=True)
class Residual:
    """``g0 + G1 m`` (a,), N or N m, one equation for each coordinate that cylinders move, and m (k,) the unknowns.

    Where there are as many cylinders as such coordinates it is one for each cylinder: the force, N, that is missing
    along it, or that times a lever where each coordinate moves one.

    Expressions in the dependent coordinates nearby (n - g,), the observer's state X (SI) and the parameters;
    ``pistons``, ``speeds`` (cylinders,), ``rates`` (cylinders, nx), the derivatives of the speeds by X. ``share`` (a,)
    is the part of G1 that comes from motion, relative to its static part: 0 at rest, 1 in free fall; ``slopes`` (a, nx)
    its derivatives by X, except for their signs. ``concerns`` (a, cylinders): whose friction is in an equation.
    """

    near: ca.SX
    X: ca.SX
    g0: ca.SX
    G1: ca.SX
    share: ca.SX
    slopes: ca.SX
    pistons: ca.SX
    speeds: ca.SX
    rates: ca.SX
    concerns: np.ndarray


def residual(machine: Machine) -> Residual:
    """Residual of the equations of motion (Pyrhönen et al., mass estimation, Eq. 55) at coordinates solved for the
    independent ones.

    The sensors' offsets and gains appear in it as errors of what the observer found, so that their uncertainty reaches
    the mass as that of every other parameter.
    """
    names, _ = state_names(machine)
    balance = force_balance(machine, names)
    X, g, concerns, part = balance.X, balance.g, balance.concerns, state_parts(names, balance.X)
    unknowns, moving = machine.payload, ca.vertcat(part['velocity'], part['acceleration'])
    G1 = ca.jacobian(g, unknowns)
    motion = [i for i, name in enumerate(names) if name.startswith(('velocity/', 'acceleration/'))]
    static = ca.jacobian(ca.substitute(g, X[motion], ca.SX.zeros(moving.numel())), unknowns)
    share = ca.sqrt(ca.sum2((G1 - static) ** 2) / ca.sum2(static ** 2))
    slopes = ca.SX(len(concerns), X.numel())
    slopes[:, motion] = ca.jacobian(G1, X[motion]) / ca.repmat(ca.sqrt(ca.sum2(static ** 2)), 1, len(motion))
    g0 = ca.substitute(g, unknowns, ca.SX.zeros(unknowns.numel()))
    return Residual(balance.near, X, g0, G1, share, slopes, balance.pistons, balance.speeds, balance.rates, concerns)


def sample_step(machine: Machine) -> ca.Function:
    """One sample ``(x, X, p) -> (x+, y)``.

    ``x`` = dependent coordinates, start of the position problem; equations trusted in the sample before, 1 or 0; clean
    samples so far. ``p`` = covariance of X (column by column), gates (speed m/s and in standard deviations, share of
    acceleration, information 1/kg2, margin m), reference mass, kg, uncertain parameters. The weights are taken at the
    reference mass: at a sample's own they would depend on its error, and a mean weighed so is too low. ``y`` =
    information, 1/kg2; information times mass, 1/kg; information times the derivative of the mass with respect to each
    parameter; gate that is closed (0: none). Nothing is divided by G1, which crosses zero in free fall.
    """
    r, parameters = residual(machine), machine.parameters.symbol
    n, k, count, unknowns = r.X.numel(), parameters.numel(), len(machine.coordinates), ca.SX.sym('m')
    g, seed, a = r.g0 + r.G1 @ unknowns, ca.SX.sym('seed', r.g0.numel()), r.g0.numel()
    arguments = [r.near, r.X, parameters]
    terms = ca.Function('terms', arguments, [r.g0, r.G1, r.share, ca.densify(r.slopes), r.pistons, r.speeds,
                                              ca.densify(r.rates)], {'cse': True})
    slopes = ca.Function('slopes', [*arguments, unknowns, seed],
                         [ca.jtimes(g, r.X, seed, True), ca.jtimes(g, parameters, seed, True)], {'cse': True})
    close = ca.Function('close', arguments, [machine.closed(r.near, r.X[:count])[machine.system.dependent]])
    kind = ca.SX if terms.n_instructions() + 4 * slopes.n_instructions() < LARGEST_WRITTEN else ca.MX
    x, X, p = kind.sym('x', r.near.numel() + a + 1), kind.sym('X', n), kind.sym('p', n * n + LEADING + k)
    P, gates, values = ca.reshape(p[:n * n], n, n), p[n * n:n * n + GATE_NUMBERS], p[n * n + LEADING:]
    solved, before = close(x[:r.near.numel()], X, values), x[r.near.numel():-1]
    g0, G1, share, steep, pistons, speeds, rates = terms(solved, X, values)
    rows = ca.horzcat(*(slopes(solved, X, values, p[n * n + GATE_NUMBERS], unit)[0] for unit in np.eye(a)))
    passed = passed_gates(machine, r.concerns, n)(pistons, speeds, rates, share, steep, P, gates)
    information, weighted, row, first = weighing(machine, n, a)(g0, G1, rows, P, passed)
    sensitivity = -slopes(solved, X, values, first, row)[1]
    closed, trusted = closed_gate(a)(passed, before, information, gates)
    x_next = ca.vertcat(solved, trusted, x[-1] + (closed == 0))
    return ca.Function('mbse_payload', [x, X, p], [x_next, ca.vertcat(information, weighted, sensitivity, closed)],
                       ['x', 'u', 'p'], ['x_next', 'y'], {'cse': True})


def weighing(machine: Machine, n: int, a: int) -> ca.Function:
    """``(g0, G1, J_X', P, passed) -> (information, information times mass, G1' weight, mass within reason)``.

    Over the equations that pass all gates, or over all where none does.
    """
    g0, G1, rows, P = ca.SX.sym('g0', a), ca.SX.sym('G1', a), ca.SX.sym('rows', n, a), ca.SX.sym('P', n, n)
    passed = ca.SX.sym('passed', a, 3)
    trusted = passed[:, 2] if a > 1 else ca.SX(1)
    trusted = ca.if_else(ca.sum1(trusted) > 0, trusted, ca.SX.ones(a)) if a > 1 else ca.SX.ones(1)
    low, high = machine.payload_data.limits
    margin, some, kept = high - low, trusted * G1, ca.diag(trusted)
    first = ca.fmin(ca.fmax(-ca.dot(some, g0) / ca.fmax(ca.sumsqr(some), 1e-12), low - margin), high + margin)
    spread = kept @ (rows.T @ P @ rows) @ kept + ca.diag(1 - trusted)
    row = ca.inv(spread) @ some
    return ca.Function('weighing', [g0, G1, rows, P, passed], [ca.dot(row, some), -ca.dot(row, g0), row, first],
                       {'cse': True})


@dataclass(frozen=True)
class MassSamples:
    """Samples (n,) of a segment: ``rows`` (n, 2 + parameters) = information w, 1/kg2, w times mass, w times the
    derivatives of the mass; ``closed`` (n,) number of the gate that is closed; ``clean`` how many have none closed."""

    rows: np.ndarray
    closed: np.ndarray
    clean: int


class InverseDynamics:
    """Mass samples of one machine; keeps the coordinates between segments as the start of the position problem."""

    def __init__(self, machine: Machine, backend: str = 'auto') -> None:
        self.machine = machine
        self._backend = backend
        self._scan: Scan | None = None      # an observer that weighs needs none
        self._count = len(state_names(machine)[0])
        self._size = self._count ** 2
        self._p = np.concatenate([np.zeros(self._size + LEADING), machine.parameters.mean])
        p = machine.parameters
        self._mixed = p.factor() / p.stddev if p.correlated else None
        self.reset()

    def configure(self, settings: PayloadSettings) -> None:
        """Set the gates."""
        self._p[self._size:self._size + GATE_NUMBERS] = gate_numbers(self.machine, settings)

    def reset(self) -> None:
        """Forget the coordinates."""
        self._x: np.ndarray | None = None

    def process(self, mean: np.ndarray, covariance: np.ndarray, reference: float | None = None) -> MassSamples:
        """Samples for states (n, nx), SI, with the covariance (nx, nx) of the last; ``reference``: mass, kg, at
        which they are weighed; None: the lower limit of the payload.

        Raises PositionProblemError where the cylinders cannot reach.
        """
        if self._scan is None:
            step = built(('sample', self.machine.made_of), lambda: sample_step(self.machine))
            self._scan = Scan(step, self._backend)
        if self._x is None:
            q = self.machine.position(mean[0, :len(self.machine.coordinates)])
            self._x = np.concatenate([q[self.machine.system.dependent], np.zeros(len(self.machine.weighing) + 1)])
        mean, covariance = mean[:, :self._count], covariance[:self._count, :self._count]
        self._p[:self._size] = covariance.ravel()
        least = self.machine.payload_data.limits[0]
        self._p[self._size + GATE_NUMBERS] = least if reference is None else reference
        self._x[-1] = 0.0
        self._x, y = self._scan(self._x, mean, self._p)
        if not isfinite(y[-1, 0]):
            self._x = None
            raise PositionProblemError(float('nan'), NEWTON, mean[-1, :len(self.machine.coordinates)])
        if self._mixed is not None:     # what errors that depend on each other have in common counts once
            y[:, 2:-1] = y[:, 2:-1] @ self._mixed
        return MassSamples(y[:, :-1], y[:, -1], int(self._x[-1]))


def newton_mass(g: Callable[[float], float], start: float, epsilon: float = 1e-2, iterations: int = 20,
                tolerance: float = 1e-10) -> float:
    """Mass, kg, that makes a scalar residual zero, by the paper's iteration with forward differences (Eqs. 56, 57).

    Kept as the reference of the closed form; NaN when the residual does not depend on the mass.
    """
    mass = start
    for _ in range(iterations):
        value = g(mass)
        slope = (g(mass + epsilon) - value) / epsilon
        if slope == 0.0:
            return float('nan')
        step = value / slope
        mass -= step
        if abs(step) <= tolerance * max(1.0, abs(mass)):
            break
    return mass
