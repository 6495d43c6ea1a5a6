# SPDX-License-Identifier: Apache-2.0
"""What every filter needs of a mechanism, as functions to build its step from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from ...dynamics.formulations.expressions import Formulated
from ...dynamics.model import Model
from ...dynamics.partitioned import newton_function
from ...dynamics.sensor_equations import sensor_partials, state_sensors
from ...dynamics.singular import check_regular
from ...dynamics.state_equations import Pieces, is_small, state_function
from ...errors import check_choice
from ...mechanism.assembly import MechanismSystem


@dataclass(frozen=True)
class Problem:
    """Functions of one mechanism and its sensors, for the filters in independent coordinates.

    The inputs ``u`` of the functions are those of the mechanism (k,), then forces along the independent coordinates
    (g,), by which a filter corrects the model. ``rates (q, zd, u, t, p) -> (zdd, A, B, qdd, lam, qd)``;
    ``sensors (q, zd, zdd, u, t, p) -> (h, H_z, H_zd, H_zdd)``;
    ``newton (q, t, p) -> (q, max |Phi| before)``. ``channels`` (s,) of the sensors, ``stddev`` (s,) of their samples,
    ``angular`` (s,) whether they wrap at +-pi. Symbols made by ``symbol`` are of the functions' kind. ``formulated``:
    functions in all coordinates, where the model has another formulation than matrix R; ``rates`` are then its own.
    """

    model: Model
    system: MechanismSystem
    rates: ca.Function
    sensors: ca.Function
    newton: ca.Function
    channels: tuple[str, ...]
    stddev: np.ndarray
    angular: tuple[bool, ...]
    formulated: Formulated | None = None

    @property
    def n(self) -> int:
        """Number of coordinates."""
        return self.system.n

    @property
    def g(self) -> int:
        """Number of independent coordinates."""
        return len(self.system.independent)

    @property
    def z(self) -> list[int]:
        """Places of the independent coordinates in q."""
        return self.system.independent

    @property
    def scalar(self) -> bool:
        """Whether the functions are of scalar operations."""
        return self.rates.is_a('SXFunction')

    @property
    def kind(self) -> type[ca.SX]:
        """Kind of the functions' expressions."""
        return ca.SX if self.scalar else ca.MX

    def symbol(self, name: str, rows: int, columns: int = 1) -> ca.SX:
        """Symbol of the functions' kind."""
        return self.kind.sym(name, rows, columns)

    def symbols(self, names: str, kind: type[ca.SX] | None = None) -> tuple[ca.SX, ...]:
        """Symbols of the functions' kind, or another, with blanks between their names: q, qd, zd, zdd, force, X = [z,
        zd], x = [q, qd], inputs u (of the mechanism alone), samples o and their variance, t, dt, p."""
        n, g, s = self.n, self.g, len(self.channels)
        sizes = {'q': n, 'qd': n, 'x': 2 * n, 'zd': g, 'zdd': g, 'force': g, 'X': 2 * g,
                 'u': self.system.u.numel() - g, 'o': s, 'variance': s, 'p': self.system.values.symbol.numel()}
        return tuple((kind or self.kind).sym(name, sizes.get(name, 1)) for name in names.split())

    def zeros(self, rows: int, columns: int = 1) -> ca.SX:
        """Zeros of the functions' kind."""
        return self.kind.zeros(rows, columns)

    def independent(self, vector: ca.SX) -> ca.SX:
        """Entries (g,) of a vector (n,) of all coordinates that belong to the independent ones."""
        return ca.vertcat(*(vector[i] for i in self.z))

    def close(self, q: ca.SX, z: ca.SX, t: ca.SX, p: ca.SX, iterations: int = 2) -> ca.SX:
        """Coordinates (n,) at independent ones (g,): Newton's method from q, a fixed number of iterations."""
        q = self.replaced(q, z)
        for _ in range(iterations):
            q, _ = self.newton(q, t, p)
        return q

    def replaced(self, q: ca.SX, z: ca.SX) -> ca.SX:
        """``q`` with the independent coordinates replaced."""
        entries = ca.vertsplit(q)
        for k, place in enumerate(self.z):
            entries[place] = z[k]
        return ca.vertcat(*entries)


def problem(model: Model, sensors: Sequence[str]) -> Problem:
    """Problem of a model with some of its sensors, in this order, made once: a smoother, its filter and their plant
    have one. Raises SettingError for a sensor it has not, DescriptionError for a start at a singular position."""
    made: dict[tuple[str, ...], Problem] = model.__dict__.setdefault('_problems', {})
    found = made.get(tuple(sensors))
    if found is None or found.model is not model:       # of the model that this one is a copy of
        found = made[tuple(sensors)] = _made(model, sensors)
    return found


def _made(model: Model, sensors: Sequence[str]) -> Problem:
    known = model.description.mechanical_sensors
    for name in sensors:
        check_choice('sensors', name, known)
    check_regular(model, model.assembled)
    partition = model.partition()
    chosen = replace(model.description, sensors={name: known[name] for name in sensors})
    system = _with_forces(replace(partition.system, description=chosen))
    p, scalar = system.values.symbol, is_small(system)
    outputs, pieces = state_sensors(system), Pieces(system, p)
    return Problem(model, system, state_function(system, p, scalar, pieces=pieces),
                   sensor_partials(system, p, scalar, pieces), newton_function(system), outputs.channels,
                   outputs.stddev, outputs.angular)


def _with_forces(system: MechanismSystem) -> MechanismSystem:
    """The system with one more input along each independent coordinate."""
    w = ca.SX.sym('w', len(system.independent))
    along = ca.SX.eye(system.n)[:, system.independent]
    push = along @ w
    return replace(system, u=ca.vertcat(system.u, w), Q=system.Q + push, applied=system.applied + push)
