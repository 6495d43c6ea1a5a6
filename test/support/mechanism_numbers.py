# SPDX-License-Identifier: Apache-2.0
"""Numbers of a symbolic system by plain linear algebra: states on the constraints, poses, accelerations, derivatives.

All functions take complex arguments too, so that their derivatives follow without differentiation rules.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property

import casadi as ca
import numpy as np
from complex_step import RULES, STEP, instructions
from mechanism_samples import PLANAR
from spatial_samples import SPATIAL

from mbse_ros.dynamics.configurations import assemble, neighbours
from mbse_ros.dynamics.formulations.matrix_r import constraint_rates
from mbse_ros.dynamics.formulations.redundancy import independent_rows
from mbse_ros.dynamics.partition import choose_independent
from mbse_ros.mechanism.assembly import MechanismSystem, build_mechanism
from mbse_ros.mechanism.inertia import center_of_mass

SAMPLES = PLANAR | SPATIAL
CASES = [(name, kind) for name in SAMPLES
         for kind in (('natural',) if name in PLANAR else ()) + ('reference_point', 'relative')]
BATCH_RULES = RULES | {
    ca.OP_FABS: lambda a: np.where(np.real(a) >= 0, a, -a), ca.OP_NOT: lambda a: 1.0 * (np.real(a) == 0),
    ca.OP_FMAX: lambda a, b: np.where(np.real(a) >= np.real(b), a, b),
    ca.OP_FMIN: lambda a, b: np.where(np.real(a) >= np.real(b), b, a),
    ca.OP_LT: lambda a, b: 1.0 * (np.real(a) < np.real(b)), ca.OP_LE: lambda a, b: 1.0 * (np.real(a) <= np.real(b)),
    ca.OP_EQ: lambda a, b: 1.0 * (np.real(a) == np.real(b)), ca.OP_NE: lambda a, b: 1.0 * (np.real(a) != np.real(b)),
    ca.OP_AND: lambda a, b: 1.0 * ((np.real(a) != 0) & (np.real(b) != 0)),
    ca.OP_OR: lambda a, b: 1.0 * ((np.real(a) != 0) | (np.real(b) != 0)),
    ca.OP_ATAN2: lambda y, x: (np.arctan2(np.real(y), np.real(x)) + 1j * (
        np.real(x) * np.imag(y) - np.real(y) * np.imag(x)) / (np.real(x) ** 2 + np.real(y) ** 2)),
    ca.OP_COPYSIGN: lambda a, b: np.where((np.real(a) >= 0) != np.signbit(np.real(b)), a, -a),
    ca.OP_IF_ELSE_ZERO: lambda a, b: np.where(np.real(a) != 0, b, 0.0)}


def evaluate(function: ca.Function, *arguments: np.ndarray) -> list[np.ndarray]:
    """Outputs (k, rows, columns) of an SX function at k complex points at once; arguments (k, n) or (n,)."""
    arguments = [np.atleast_2d(np.asarray(a, dtype=complex)) for a in arguments]
    k = max(len(a) for a in arguments)
    columns = [np.broadcast_to(a, (k, a.shape[1])).T for a in arguments]
    work: list = [0.0] * function.sz_w()
    found = [np.zeros((k, function.nnz_out(i)), dtype=complex) for i in range(function.n_out())]
    for operation, into, out_of, constant in instructions(function):
        if operation == ca.OP_CONST:
            work[into[0]] = complex(constant)
        elif operation == ca.OP_INPUT:
            work[into[0]] = columns[out_of[0]][out_of[1]]
        elif operation == ca.OP_OUTPUT:
            found[into[0]][:, into[1]] = work[out_of[0]]
        else:
            work[into[0]] = BATCH_RULES[operation](*(work[j] for j in out_of))
    return [_full(function.sparsity_out(i), values) for i, values in enumerate(found)]


def _full(sparsity: ca.Sparsity, values: np.ndarray) -> np.ndarray:
    rows, columns = sparsity.get_triplet()
    full = np.zeros((len(values), *sparsity.shape), dtype=complex)
    full[:, rows, columns] = values
    return full


@dataclass(frozen=True)
class State:
    """Coordinates and velocities (n,), inputs (k,), time, s, parameters (p,)."""

    q: np.ndarray
    qd: np.ndarray
    u: np.ndarray
    t: float
    p: np.ndarray

    def all(self) -> tuple:
        """Arguments of the functions of ``Numbers``."""
        return self.q, self.qd, self.u, [self.t], self.p


class Numbers:
    """A system with its functions; ``rows`` are those without the redundant ones, ``z`` well-placed coordinates."""

    def __init__(self, system: MechanismSystem) -> None:
        self.full = system
        given, guess = system.description.initial.position, system.start.copy()
        guess[system.indices(given)] = [scalar.value for scalar in given.values()]
        self.start = assemble(self.residual, guess, system.indices(given))
        jacobians = np.array([self.residual(q)[1] for q in neighbours(self.residual, self.start)])
        self.rows = independent_rows(jacobians)
        self.z = choose_independent(jacobians[0][self.rows])
        self.dependent = [i for i in range(system.n) if i not in self.z]
        self.system = replace(system, independent=self.z, Phi=system.Phi[self.rows],
                              rows=tuple(system.rows[i] for i in self.rows))

    @cached_property
    def _arguments(self) -> list[ca.SX]:
        system = self.full
        return [system.q, system.qd, system.u, system.t, system.values.symbol]

    @cached_property
    def constraints(self) -> ca.Function:
        """(q, t, p) -> Phi, J, all rows."""
        system = self.full
        return ca.Function('constraints', [system.q, system.t, system.values.symbol],
                           [system.Phi, ca.jacobian(system.Phi, system.q)])

    @cached_property
    def dynamics(self) -> ca.Function:
        """Arguments -> M, Q, J, b, c, without the redundant rows."""
        return ca.Function('dynamics', self._arguments, [self.system.M, self.system.Q, *constraint_rates(self.system)])

    @cached_property
    def energies(self) -> ca.Function:
        """Arguments -> [kinetic, potential], forces that change their sum."""
        system = self.full
        return ca.Function('energies', self._arguments, [ca.vertcat(system.kinetic, system.potential),
                                                         system.other_forces])

    @cached_property
    def poses(self) -> ca.Function:
        """Arguments -> origins (d, bodies), rotations (d, d bodies), omega (1 or 3, bodies), centres of mass."""
        frames = [self.full.frames[name] for name in self.full.description.bodies]
        centres = [frame.at(center_of_mass(body, self.full.values))
                   for frame, body in zip(frames, self.full.description.bodies.values())]
        return ca.Function('poses', self._arguments, [ca.densify(ca.horzcat(*parts)) for parts in (
            [f.origin for f in frames], [f.rotation for f in frames], [f.omega for f in frames], centres)])

    def residual(self, q: np.ndarray, t: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Phi (m,) and J (m, n), all rows."""
        phi, J = self.constraints(q, t, self.full.values.mean)
        return phi.full().ravel(), J.full()

    def state(self, seed: int, t: float = 0.0, steps: int = 3) -> State:
        """A random state on the constraints, some steps of 0.2 away from the start along the motion."""
        rng = np.random.default_rng(seed)
        n, p = self.full.n, self.full.values.mean
        q = assemble(lambda q: self.residual(q, t), self.start, iterations=200)
        way = rng.uniform(-1, 1, n)
        for _ in range(steps):
            J = self.residual(q, t)[1][self.rows]
            step = way - np.linalg.lstsq(J, J @ way, rcond=None)[0]
            q = assemble(lambda q: self.residual(q, t), q + 0.2 * step / max(1e-9, np.abs(step).max()))
            way = step
        u = rng.uniform(-3, 3, self.full.u.numel())
        _, _, J, b, _ = (x.full() for x in self.dynamics(q, np.zeros(n), u, t, p))
        wish = rng.uniform(-2, 2, n)
        return State(q, wish - np.linalg.lstsq(J, J @ wish - b.ravel(), rcond=None)[0], u, t, p)

    def matched(self, origins: np.ndarray, rotations: np.ndarray, state: State, other: Numbers) -> State:
        """The physical state of another choice of coordinates in this one."""
        shared = [(i, other.full.names.index(name)) for i, name in enumerate(self.full.names)
                  if name in self.full.description.coordinates]

        def residual(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            phi, J = self.residual(q, state.t)
            here = self._placed(q, 0 * q, state.u, state.t, state.p)
            there = np.concatenate([origins.ravel(order='F'), rotations.ravel(order='F')])
            named = np.array([q[i] - state.q[j] for i, j in shared])
            return (np.concatenate([phi, here[0].full().ravel() - there, named]),
                    np.vstack([J, here[1].full(), np.eye(self.full.n)[[i for i, _ in shared]]]))
        q = assemble(residual, self.start, iterations=200)
        rates = evaluate(other.pose_rates, *state.all())[0][0].real.ravel()
        J, b = self.residual(q, state.t)[1], self._b(q, state)
        slope = self._placed(q, 0 * q, state.u, state.t, state.p)[1].full()
        qd, _, _, _ = np.linalg.lstsq(np.vstack([J, slope]), np.concatenate([b, rates]), rcond=1e-12)
        return State(q, qd, state.u, state.t, state.p)

    def _b(self, q: np.ndarray, state: State) -> np.ndarray:
        """``-Phi_t`` of all rows, by a complex step."""
        return -evaluate(self.constraints, q, [state.t + 1j * STEP], state.p)[0][0, :, 0].imag / STEP

    @cached_property
    def _placed(self) -> ca.Function:
        """Arguments -> origins and rotations in one column, and its derivative by q."""
        column = self._column()
        return ca.Function('placed', self._arguments, [column, ca.jacobian(column, self.full.q)])

    @cached_property
    def pose_rates(self) -> ca.Function:
        """Arguments -> the column's rate."""
        return ca.Function('rates', self._arguments, [ca.jtimes(self._column(), self.full.q, self.full.qd)])

    def _column(self) -> ca.SX:
        frames = [self.full.frames[name] for name in self.full.description.bodies]
        return ca.vertcat(*(frame.origin for frame in frames), *(ca.vec(frame.rotation) for frame in frames))

    def accelerations(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """``qdd`` (n,) and multipliers (of the kept rows) by the full system of equations."""
        M, Q, J, _, c = (x.full() for x in self.dynamics(*state.all()))
        return saddle(M, J, Q.ravel(), c.ravel())

    def body_motion(self, state: State, qdd: np.ndarray) -> tuple[np.ndarray, ...]:
        """By body (columns): velocities of the centres of mass, omega, their rates; by complex steps along the motion.

        omega and its rate as the frames give them: along the body's axes in space.
        """
        step = 1j * STEP
        *_, centres = evaluate(self.poses, state.q + step * state.qd, state.qd, state.u, [state.t], state.p)
        velocity = centres[0].imag / STEP
        slope = ca_velocity(self)
        moved = (state.q + step * state.qd, state.qd + step * qdd, state.u, [state.t], state.p)
        acceleration = evaluate(slope, *moved)[0][0].imag / STEP
        omega = evaluate(self.poses, *moved)[2][0]
        return velocity, omega.real, acceleration, omega.imag / STEP


@cache
def ca_velocity(numbers: Numbers) -> ca.Function:
    """Arguments -> velocities of the centres of mass."""
    centres = numbers.poses(*numbers._arguments)[3]
    full = numbers.full
    rate = ca.reshape(ca.jtimes(ca.vec(centres), full.q, full.qd), centres.shape)
    return ca.Function('velocity', numbers._arguments, [ca.densify(rate)])


def saddle(M: np.ndarray, J: np.ndarray, Q: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``qdd`` and ``lam`` of ``M qdd + J' lam = Q``, ``J qdd = c``; real or complex."""
    n, m = M.shape[-1], J.shape[-2]
    matrix = np.zeros((*M.shape[:-2], n + m, n + m), dtype=np.result_type(M, J))
    matrix[..., :n, :n], matrix[..., :n, n:], matrix[..., n:, :n] = M, np.swapaxes(J, -1, -2), J
    found = np.linalg.solve(matrix, np.concatenate([Q, c], axis=-1)[..., None])[..., 0]
    return found[..., :n], found[..., n:]


@cache
def numbers(name: str, kind: str) -> Numbers:
    """A sample in some coordinates, built once."""
    return Numbers(build_mechanism(SAMPLES[name](), kind))
