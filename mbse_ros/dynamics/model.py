# SPDX-License-Identifier: Apache-2.0
"""``Model``: the numbers of one mechanism; every function of it compiled once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import casadi as ca
import numpy as np

from ..compiled import Kernel
from ..description.basics import PointRef
from ..description.load import load_mechanism
from ..description.model import MechanismDescription
from ..errors import DescriptionError, PositionProblemError
from ..mechanism.assembly import MechanismSystem, build_mechanism
from .configurations import assemble_towards, nearest, neighbours, slowest
from .formulations.matrix_r import constraint_rates
from .formulations.redundancy import independent_rows
from .formulations.terms_arrays import JointWork, Terms
from .partition import choose_independent
from .partitioned import Partitioned, affordable

APART = 1e-9        # m, below which two points are at one place
SHARED = 1e-6       # share of the force of a joint that redundant constraints may take
CLOSED = 1e-6        # residual, below which loops close


@dataclass(frozen=True)
class State:
    """A configuration (n,) and its velocities (n,), SI, at a time, s."""

    q: np.ndarray
    qd: np.ndarray
    t: float = 0.0


@dataclass(frozen=True)
class Energy:
    """Kinetic and potential energy, J, and the power of dampers, loads and inputs, W (drivers not included)."""

    kinetic: float
    potential: float
    power: float

    @property
    def total(self) -> float:
        """Kinetic and potential energy, J."""
        return self.kinetic + self.potential


class Model:
    """A mechanism with numbers in it.

    ``names`` (n,) of the coordinates of a ``coordinate_type``, ``rows`` (m,) of the constraints, ``inputs`` (k,);
    ``independent`` the chosen coordinates' names; ``degrees_of_freedom`` g of the position; ``active`` the places of
    the rows of positions that count, ``moving`` of those of velocities: the same and the non-holonomic ones;
    ``redundant`` names the constraints that others imply (they stay in ``Phi`` but not in the equations);
    ``parameters`` (p,) the values of uncertain and free numbers, may be changed.
    ``row_scale`` (m,): the largest norms of the rows of ``Phi_q`` near the start, and with these ``regularity``: the
    smallest singular value of those that count, where it is largest: at ``neighbour`` (n,).
    Raises DescriptionError, SettingError, PositionProblemError, SingularConfigurationError.
    """

    def __init__(self, description: MechanismDescription, coordinates: str | None = None,
                 independent: Sequence[str] | None = None, free: Collection[str] = (), backend: str = 'auto') -> None:
        self.description, self.backend = description, backend
        self.coordinate_type = coordinates or description.coordinate_type
        self.system: MechanismSystem = build_mechanism(description, coordinates, independent, free)
        self.names, self.inputs = self.system.names, self.system.inputs
        self.rows = (*self.system.rows, *self.system.rate_rows)
        self.parameters = self.system.values.mean
        self._partitions: dict[tuple[int, ...], Partitioned] = {}
        self._origin: Model | None = None
        self._assembled = self._assemble()
        self._check_apart()
        near = neighbours(self.residual, self._assembled)
        samples = np.array([self.residual(q)[1] for q in near])
        self.active = independent_rows(samples)
        self.row_scale = np.linalg.norm(samples, axis=2).max(axis=0)
        self.regularity, self.neighbour = self._most_regular(samples[:, self.active], near)
        self.moving = self.active if not self.system.rate_rows else independent_rows(np.array(
            [self._rest(q, self.parameters)[1].reshape(-1, len(self.names)) for q in near]))
        self.redundant = tuple(name for i, name in enumerate(self.rows) if i not in self.moving)
        self._check_friction()
        self.degrees_of_freedom = len(self.names) - len(self.active)
        self.default = self._choose(self.residual(self._assembled)[1][self.active])

    @property
    def independent(self) -> tuple[str, ...]:
        """Names of the independent coordinates."""
        return tuple(self.names[i] for i in self.default)

    @property
    def z(self) -> list[int]:
        """Places of the independent coordinates in q."""
        return list(self.default)

    @property
    def assembled(self) -> State:
        """The position of the start, at rest: also where the velocities of the file contradict the constraints."""
        return State(self._assembled.copy(), np.zeros(len(self.names)))

    @cached_property
    def start(self) -> State:
        """The assembled start.

        Velocities of the independent coordinates that the file names but gives no velocity are zero; where it names
        none ('auto') the motion with the smallest kinetic energy is taken, which is the same in all coordinates.
        """
        given = self.description.initial.velocity
        M, J, rate = self._rest(self._assembled, self.parameters)
        n, quasi = len(self.names), self._quasi()
        named = [np.eye(n)[self.system.indices([name])[0]] if name not in quasi else quasi[name] for name in given]
        rows = np.vstack([J.reshape(-1, n), *named])
        values = np.concatenate([-rate, [scalar.value for scalar in given.values()]])
        if self.system.independent:
            metric = np.diag([float(i in self.default and self.names[i] not in given) for i in range(n)])
        else:
            metric = M.reshape(n, n)
        qd = slowest(rows, values, metric)
        worst = float(np.max(np.abs(rows @ qd - values), initial=0.0))
        if worst > 1e-9 * max(1.0, float(np.max(np.abs(values), initial=0.0))):
            raise DescriptionError(self.description.file, 'initial.velocity', list(given),
                                   'velocities that the constraints allow together at this start: at a dead point a '
                                   'coordinate cannot move, and wheels do not slip')
        return State(self._assembled.copy(), qd)

    def _quasi(self) -> dict[str, np.ndarray]:
        """By quasi-velocity its derivative by qd (n,) at the start."""
        system = self.system
        function = ca.Function('quasi', [system.q, system.values.symbol], [ca.densify(ca.jacobian(
            ca.vertcat(ca.SX(0, 1), *system.quasi.values()), system.qd))])
        return dict(zip(system.quasi, function(self._assembled, self.parameters).full()))

    def with_parameters(self, parameters: np.ndarray) -> Model:
        """The same functions, compiled once, with other parameters (p,); ``start`` stays that of the origin."""
        other = copy(self)
        other.__dict__['start'] = self.start
        other.parameters, other._partitions, other._origin = parameters, {}, self._origin or self
        return other

    def with_forces(self, coordinates: Sequence[str]) -> Model:
        """The same mechanism with a force on each of these coordinates (N, of an angle N m) as a further input.

        The inputs have the names of the coordinates. Raises SettingError for an unknown one.
        """
        other, system, w = copy(self), self.system, ca.SX.sym('w', len(coordinates))
        push = ca.SX.zeros(system.n)
        push[system.indices(coordinates)] = w
        other.system = replace(system, u=ca.vertcat(system.u, w), Q=system.Q + push, applied=system.applied + push,
                               other_forces=system.other_forces + push, inputs=(*self.inputs, *coordinates))
        other.__dict__['start'] = self.start
        other.__dict__.pop('_terms', None)
        other.inputs, other._partitions, other._origin = other.system.inputs, {}, None
        return other

    def partition(self, independent: Sequence[int] | None = None) -> Partitioned:
        """State equations in the independent coordinates at these places of q (default: the model's own).

        Raises DescriptionError as ``check_reducible``.
        """
        self.check_reducible()
        chosen = tuple(self.default if independent is None else independent)
        if chosen not in self._partitions:
            if self._origin is None:
                made = Partitioned(self.system, chosen, list(self.active), self.parameters, self.backend)
            else:
                made = self._origin.partition(chosen).with_parameters(self.parameters)
            self._partitions[chosen] = made
        return self._partitions[chosen]

    @property
    def unreduced(self) -> dict[str, tuple[str, ...]]:
        """What has a motion in all coordinates alone, by section: non-holonomic constraints, whose velocities are fewer
        than independent coordinates, and friction of joints, which depends on constraint forces; mostly nothing."""
        sections = {name: tuple(getattr(self.description, name)) for name in ('nonholonomic', 'friction')}
        return {section: names for section, names in sections.items() if names}

    def why_unreduced(self, formulation: str) -> str:
        """The end of a message, ' because of nonholonomic.blade': why matrix-R has all coordinates here; else ''."""
        names = [f'{section}.{name}' for section, found in self.unreduced.items() for name in found]
        return f' because of {", ".join(names)}' if names and formulation == 'matrix_r' else ''

    def check_reducible(self) -> None:
        """Raise DescriptionError where independent coordinates and their velocities are not the whole state, or the
        forces along them depend on constraint forces (``unreduced``)."""
        for section, names in self.unreduced.items():
            raise DescriptionError(
                self.description.file, section, list(names),
                'no such section for filters, graphs, inverse dynamics, C code, many runs, and formulations in '
                'independent coordinates, which take these with their velocities as the state; `simulate` works with '
                'formulations in all coordinates')

    def residual(self, q: np.ndarray, t: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """``Phi`` and its derivative by q (m, n), all rows but those of velocities."""
        phi, J = self._position(q, [t], self.parameters)
        return phi, J.reshape(self.system.m, len(self.names))

    def terms(self, q: np.ndarray, qd: np.ndarray, u: np.ndarray | None = None, t: float = 0.0) -> Terms:
        """Mass matrix, forces and constraints of all coordinates, redundant rows included."""
        M, Q, J, c, Phi, rate, _ = self._terms(q, qd, self._inputs(u), [t], self.parameters)
        n, m = len(self.names), len(self.rows)
        work = self._work(q, qd) if self.description.friction else None
        return Terms(M.reshape(n, n), Q, J.reshape(m, n), c, Phi, rate, self.names, self.rows, work)

    def energy(self, q: np.ndarray, qd: np.ndarray, u: np.ndarray | None = None, t: float = 0.0) -> Energy:
        """Energies and power at a state."""
        values = self._terms(q, qd, self._inputs(u), [t], self.parameters)[6]
        return Energy(*(float(value) for value in values))

    def position(self, z: np.ndarray, guess: np.ndarray, t: float = 0.0) -> np.ndarray:
        """Coordinates (n,) at independent ones (g,), near a guess (n,); raises PositionProblemError."""
        return self.partition().position(z, guess, t)

    def accelerations(self, q: np.ndarray, qd: np.ndarray, u: np.ndarray | None = None, t: float = 0.0,
                      formulation: str = 'matrix_r', **options: object) -> np.ndarray:
        """Accelerations (n,) by a formulation (``dynamics.formulations.by_name.FORMULATIONS``)."""
        from .formulations.by_name import accelerations  # here, because only this method needs all of them
        if formulation == 'matrix_r':
            options.setdefault('independent', self.z)
        return accelerations(formulation, self.terms(q, qd, u, t), **options).qdd

    def _inputs(self, u: np.ndarray | None) -> np.ndarray:
        return np.zeros(len(self.inputs)) if u is None else np.asarray(u, dtype=float)

    def _assemble(self) -> np.ndarray:
        """Start from the guess; the coordinates that the file gives are kept."""
        given = self.description.initial.position
        fixed, values = self.system.indices(given), np.array([scalar.value for scalar in given.values()])
        expected = 'a start at which all loops close'
        try:
            q = assemble_towards(self.residual, self.system.start, fixed, values)
            if self.right_side(q):
                return q
            problem = 'a start on the other of two branches'
            expected = 'points, or positions of bodies, nearer to the start that is meant'
        except PositionProblemError as error:
            q = nearest(self.residual, self.system.start, fixed, values)
            size = float(np.max(np.abs(self.residual(q)[0])))
            if not size > CLOSED:      # or not a number; it closes on a way that is not taken
                q, size = np.array(error.coordinates), error.residual
            problem = f'a loop that does not close: residual {size:.3g}'
            expected = f'{expected}; worst: {self._worst(q)}'
        where = 'initial.position' if given else 'points' if self.description.dimension == 2 else 'bodies'
        raise DescriptionError(self.description.file, where, problem, expected)

    def _check_apart(self) -> None:
        """Refuse forces and sensors along a line between points that are at one place at the start."""
        found: dict[str, tuple[PointRef, ...]] = {
            f'springs.{name}': spring.points for name, spring in self.description.springs.items()
            if spring.points and (spring.damping.value or spring.stiffness.value and spring.free.value)}
        found |= {f'sensors.{name}': sensor.points for name, sensor in self.description.sensors.items()
                  if sensor.kind == 'distance'}
        points = self.system.points
        squares = [ca.sumsqr(points[str(two)] - points[str(one)]) for one, two in found.values()]
        apart = ca.Function('apart', [self.system.q, self.system.values.symbol], [ca.vertcat(*squares)])
        for (key, pair), square in zip(found.items(), apart(self._assembled, self.parameters).full()[:, 0]):
            if not square > APART ** 2:
                raise DescriptionError(self.description.file, f'{key}.points', list(map(str, pair)), 'two points that '
                                       'are apart at the start: the line between them gives the direction')

    def right_side(self, q: np.ndarray) -> bool:
        """Whether angles and directions are those that are meant, not those turned by 180 degrees."""
        sides = ca.Function('sides', [self.system.q, self.system.values.symbol], [self.system.sides])
        return bool((sides(q, self.parameters).full() > 0).all())

    def _most_regular(self, samples: np.ndarray, near: list[np.ndarray]) -> tuple[float, np.ndarray]:
        """Largest of the smallest singular values of samples (k, m, n), and the configuration (n,) that has it."""
        scale = self.row_scale[self.active]
        weakest = [float(np.linalg.svd(J / scale[:, None], compute_uv=False)[-1]) if J.size else 1.0 for J in samples]
        best = int(np.argmax(weakest))
        return weakest[best], near[best]

    def _worst(self, q: np.ndarray) -> str:
        phi = np.abs(self.residual(q)[0])
        return self.rows[int(np.argmax(np.where(np.isfinite(phi), phi, np.inf)))]

    def _choose(self, J: np.ndarray) -> tuple[int, ...]:
        """The file's independent coordinates, or the best conditioned ones."""
        wanted, g = self.system.independent, self.degrees_of_freedom
        if wanted and len(wanted) != g:
            raise DescriptionError(self.description.file, 'independent', [self.names[i] for i in wanted],
                                   f'{g} independent coordinates, the degrees of freedom of the mechanism')
        return tuple(wanted) if wanted else tuple(choose_independent(J, self._measured()))

    def _measured(self) -> list[int]:
        """Places in q of what the encoders of a machine measure: its observer's coordinates, where they suffice."""
        sensors = self.description.sensors.values() if self.description.is_machine else ()
        return self.system.indices([sensor.coordinate for sensor in sensors if sensor.kind == 'encoder'])

    @cached_property
    def _position(self) -> Kernel:
        system = self.system
        J = ca.jacobian(system.Phi, system.q)
        inputs = [system.q, system.t, system.values.symbol]
        return Kernel(ca.Function('mbse_constraints', inputs, [system.Phi, J]), 'vm')

    def _work(self, q: np.ndarray, qd: np.ndarray) -> JointWork:
        """Friction of joints at a state."""
        directions, forces, *others = self._friction(q, qd, self.parameters)
        k, m = len(self.description.friction), len(self.rows)
        return JointWork(directions.reshape(-1, k), forces.reshape(k, -1, m), *others)

    def _check_friction(self) -> None:
        """Raise DescriptionError for friction by a force that redundant constraints share in any way."""
        if not (self.description.friction and self.redundant):
            return
        at = self.neighbour
        J, forces = self._rest(at, self.parameters)[1].reshape(len(self.rows), -1), self._work(at, 0.0 * at).forces
        others = [i for i in range(len(self.rows)) if i not in self.moving]
        shares = np.linalg.lstsq(J[self.moving].T, J[others].T, rcond=None)[0]
        free = np.abs(forces[:, :, others] - forces[:, :, self.moving] @ shares).max(axis=(1, 2))
        for item, loose, size in zip(self.description.friction.values(), free, np.abs(forces).max(axis=(1, 2))):
            if loose > SHARED * size:
                raise DescriptionError(self.description.file, f'friction.{item.name}', item.joint,
                                       f'a joint whose force the motion determines; {", ".join(self.redundant)}, which '
                                       'other constraints imply, take any share of it')

    @cached_property
    def _friction(self) -> Kernel:
        s, f = self.system, self.system.friction
        return Kernel(ca.Function('mbse_friction', [s.q, s.qd, s.values.symbol], [
            f.directions, f.forces, f.sliding, f.speeds, f.coefficients]), 'vm')

    @cached_property
    def _rest(self) -> Kernel:
        """``(q, p) -> (M, Phi_q, Phi')`` at rest and time zero: evaluated once, which no compilation is worth."""
        system = self.system
        J, b, _ = constraint_rates(system)
        values = ca.substitute([system.M, J, J @ system.qd - b], [system.qd, system.t],
                               [ca.SX.zeros(system.n), ca.SX(0)])
        return Kernel(ca.Function('mbse_rest', [system.q, system.values.symbol], values), 'vm')

    @cached_property
    def _terms(self) -> Kernel:
        system = self.system
        J, b, c = constraint_rates(system)
        energies = ca.vertcat(system.kinetic, system.potential, ca.dot(system.qd, system.other_forces))
        function = ca.Function(
            'mbse_terms', [system.q, system.qd, system.u, system.t, system.values.symbol],
            [system.M, system.Q, J, c, ca.vertcat(system.Phi, ca.SX.zeros(len(system.rate_rows))), J @ system.qd - b,
             energies], {'cse': True})
        outputs = sum(function.numel_out(i) for i in range(function.n_out()))      # mostly zeros to store
        return Kernel(function, affordable(self.backend, function.n_instructions() + 3 * outputs), rare=True)


def load_model(mechanism: str | Path | MechanismDescription, coordinates: str | None = None,
               independent: Sequence[str] | None = None, free: Collection[str] = (), backend: str = 'auto') -> Model:
    """Model of a mechanism: name of a file in ``config/mechanisms``, path, or description; see ``Model``."""
    description = mechanism if isinstance(mechanism, MechanismDescription) else load_mechanism(mechanism)
    return Model(description, coordinates, independent, free, backend)
