# SPDX-License-Identifier: Apache-2.0
"""Payload mass by inverse dynamics: the residual of the equations of motion is affine in the mass.

Paper 003 Eqs. 50-57. ``g(m) = Mbar(z, m) zdd - Qbar(z, zd, m) - S' F_act = g0 + G1 m`` in any independent coordinates,
S being the pistons' speeds by theirs; least squares over the equations that a cylinder stands in, weighted by the
covariance of g that follows from the observer's, gives the mass and its information 1/variance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite

import casadi as ca
import numpy as np

from ..compiled import Scan
from ..dynamics.inertial_forces import inertial_forces
from ..errors import PositionProblemError
from ..estimators.hydraulic_model import state_names, state_parts
from ..estimators.hydraulic_sensors import direct
from ..machine import Machine
from ..machine.machine import NEWTON
from .settings import PayloadSettings

LARGEST_WRITTEN = 12_000     # scalar operations that are written out; calls of functions compile faster beyond
GATES = ('open', 'outside the stroke', 'not observable', 'too slow', 'accelerating')


@dataclass(frozen=True)
class Residual:
    """``g0 + G1 m`` (a,), N or N m, one equation for each coordinate that cylinders move, and m (k,) the unknowns.

    Expressions in the dependent coordinates nearby (n - g,), the observer's state X (SI) and the parameters;
    ``pistons`` and ``speeds`` (cylinders,). ``share`` is the part of G1 that comes from motion, relative to its static
    part: 0 at rest, -1 in free fall.
    """

    near: ca.SX
    X: ca.SX
    g0: ca.SX
    G1: ca.SX
    share: ca.SX
    pistons: ca.SX
    speeds: ca.SX


def residual(machine: Machine) -> Residual:
    """Residual of the equations of motion (paper 003 Eq. 55) at coordinates solved for the independent ones.

    The sensors' offsets and gains stand in it as errors of what the observer found, so that their uncertainty reaches
    the mass as that of every other parameter.
    """
    names, _ = state_names(machine)
    X, near = ca.SX.sym('X', len(names)), ca.SX.sym('near', len(machine.system.dependent))
    true, system, reduced = without_sensor_errors(machine, names, X), machine.system, machine.reduced
    part = state_parts(names, true)
    z, zd, zdd, p = (part[kind] for kind in ('position', 'velocity', 'acceleration', 'pressure'))
    speeds = machine.piston_rates @ zd
    force = machine.circuit.hydraulic_forces(p) - machine.circuit.friction_forces(speeds, p)
    needed = ca.substitute(inertial_forces(system, reduced.R @ zdd + reduced.S @ reduced.c), system.qd, reduced.qd)
    g = (reduced.R.T @ needed - machine.piston_rates.T @ force)[machine.actuated]      # Mbar zdd - Qbar - S' F
    states = machine.parameters.states
    inclined = [states[f'base.{axis}'] for axis in machine.inclinations]
    g, pistons, speeds = ca.substitute(
        [g, system.q[machine.pistons], speeds], [system.q, reduced.zd, ca.vertcat(*inclined)],
        [machine.closed(near, z, 1), zd, part['inclination']])
    unknowns, moving = machine.payload, ca.vertcat(zd, zdd)
    G1 = ca.jacobian(g, unknowns)
    static = ca.jacobian(ca.substitute(g, ca.vertcat(X[[i for i, name in enumerate(names) if name.startswith((
        'velocity/', 'acceleration/'))]]), ca.SX.zeros(moving.numel())), unknowns)
    share = ca.sqrt(ca.sumsqr(G1 - static) / ca.sumsqr(static))
    g0 = ca.substitute(g, unknowns, ca.SX.zeros(unknowns.numel()))
    return Residual(near, X, g0, G1, share, pistons, speeds)


def without_sensor_errors(machine: Machine, names: tuple[str, ...], X: ca.SX) -> ca.SX:
    """The state (nx,) that the same samples would have given with offsets and gains that differ from the file's.

    It is X itself at the file's numbers.
    """
    entries = ca.vertsplit(X)
    for name, channel in direct(machine).items():
        i, values = names.index(name), machine.system.values
        gain, offset, zero = channel.nominal
        sensor = channel.sensor
        slope = gain if sensor.gain is None else values(sensor.gain)
        shift = values(sensor.bias[channel.index]) if sensor.bias else offset
        if isinstance(slope, ca.SX) or isinstance(shift, ca.SX):
            entries[i] = (gain * (entries[i] - zero) + offset - shift) / slope + zero
    return ca.vertcat(*entries)


def sample_step(machine: Machine) -> ca.Function:
    """One sample ``(x, X, p) -> (x+, y)``.

    ``x`` = dependent coordinates, start of the position problem; clean samples so far. ``p`` = covariance of X (column
    by column), gates (speed m/s, share of acceleration, information 1/kg2, margin m), reference mass, kg, uncertain
    parameters. The weights are taken at the reference mass: at a sample's own they would depend on its error, and a
    mean weighed so is too low. ``y`` = information, 1/kg2; information times mass, 1/kg; information times the
    derivative of the mass with respect to each parameter; gate that is closed (0: none). Nothing is divided by G1,
    which crosses zero in free fall.
    """
    r, parameters = residual(machine), machine.parameters.symbol
    n, k, count, unknowns = r.X.numel(), parameters.numel(), len(machine.coordinates), ca.SX.sym('m')
    g, seed = r.g0 + r.G1 @ unknowns, ca.SX.sym('seed', r.g0.numel())
    arguments = [r.near, r.X, parameters]
    terms = ca.Function('terms', arguments, [r.g0, r.G1, r.share, r.pistons, r.speeds], {'cse': True})
    slopes = ca.Function('slopes', [*arguments, unknowns, seed],
                         [ca.jtimes(g, r.X, seed, True), ca.jtimes(g, parameters, seed, True)], {'cse': True})
    close = ca.Function('close', arguments, [machine.closed(r.near, r.X[:count])[machine.system.dependent]])
    kind = ca.SX if terms.n_instructions() + 4 * slopes.n_instructions() < LARGEST_WRITTEN else ca.MX
    x, X, p = kind.sym('x', r.near.numel() + 1), kind.sym('X', n), kind.sym('p', n * n + 5 + k)
    P, gates, reference, values = ca.reshape(p[:n * n], n, n), p[n * n:n * n + 4], p[n * n + 4], p[n * n + 5:]
    solved = close(x[:-1], X, values)
    g0, G1, share, pistons, speeds = terms(solved, X, values)
    rows = ca.horzcat(*(slopes(solved, X, values, reference, unit)[0] for unit in np.eye(seed.numel())))
    information, weighted, row, first = _weighing(machine, n)(g0, G1, rows, P)
    sensitivity = -slopes(solved, X, values, first, row)[1]
    closed = _closed_gate(machine)(pistons, speeds, share, information, gates)
    x_next = ca.vertcat(solved, x[-1] + (closed == 0))
    return ca.Function('mbse_payload', [x, X, p], [x_next, ca.vertcat(information, weighted, sensitivity, closed)],
                       ['x', 'u', 'p'], ['x_next', 'y'], {'cse': True})


def _weighing(machine: Machine, n: int) -> ca.Function:
    """``(g0, G1, J_X', P) -> (information, information times mass, G1' weight, mass within reason)``."""
    a = len(machine.actuated)
    g0, G1, rows, P = ca.SX.sym('g0', a), ca.SX.sym('G1', a), ca.SX.sym('rows', n, a), ca.SX.sym('P', n, n)
    low, high = machine.description.payload.limits
    margin = high - low
    first = ca.fmin(ca.fmax(-ca.dot(G1, g0) / ca.fmax(ca.sumsqr(G1), 1e-12), low - margin), high + margin)
    row = ca.inv(rows.T @ P @ rows) @ G1
    return ca.Function('weighing', [g0, G1, rows, P], [ca.dot(row, G1), -ca.dot(row, g0), row, first], {'cse': True})


def _closed_gate(machine: Machine) -> ca.Function:
    """``(pistons, speeds, share, information, gates)`` -> number of the first closed gate, as in ``GATES``; 0: none."""
    count, stroke = len(machine.cylinders), ca.DM(machine.stroke)
    pistons, speeds, gates = ca.SX.sym('s', count), ca.SX.sym('sd', count), ca.SX.sym('gates', 4)
    share, information = ca.SX.sym('share'), ca.SX.sym('information')
    inside = ca.logic_and(ca.mmin(pistons - stroke[:, 0]) > gates[3], ca.mmin(stroke[:, 1] - pistons) > gates[3])
    tests = (inside, information >= gates[2], ca.mmin(ca.fabs(speeds)) >= gates[0], share <= gates[1])
    closed = ca.SX(0)
    for number, passed in reversed(list(enumerate(tests, 1))):
        closed = ca.if_else(passed, closed, number)
    return ca.Function('gate', [pistons, speeds, share, information, gates], [closed])


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
        self._scan = Scan(sample_step(machine), backend)
        self._size = len(state_names(machine)[0]) ** 2
        self._p = np.concatenate([np.zeros(self._size + 5), machine.parameters.mean])
        self.reset()

    def configure(self, settings: PayloadSettings) -> None:
        """Set the gates."""
        s = settings
        self._p[self._size:self._size + 4] = [s.min_speed, s.max_acceleration_share, s.max_sample_stddev ** -2,
                                              s.stroke_margin]

    def reset(self) -> None:
        """Forget the coordinates."""
        self._x: np.ndarray | None = None

    def process(self, mean: np.ndarray, covariance: np.ndarray, reference: float | None = None) -> MassSamples:
        """Samples for states (n, nx), SI, with the covariance (nx, nx) of the last; ``reference``: mass, kg, at
        which they are weighed; None: the lower limit of the payload.

        Raises PositionProblemError where the cylinders cannot reach.
        """
        if self._x is None:
            q = self.machine.position(mean[0, :len(self.machine.coordinates)])
            self._x = np.append(q[self.machine.system.dependent], 0.0)
        self._p[:self._size] = covariance.ravel()
        self._p[self._size + 4] = self.machine.description.payload.limits[0] if reference is None else reference
        self._x[-1] = 0.0
        self._x, y = self._scan(self._x, mean, self._p)
        if not isfinite(y[-1, 0]):
            self._x = None
            raise PositionProblemError(float('nan'), NEWTON, mean[-1, :len(self.machine.coordinates)])
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
