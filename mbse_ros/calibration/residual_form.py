# SPDX-License-Identifier: Apache-2.0
"""What a fit leaves of the missing forces: how much more than noise it is, of what shape, and which number that is not
free would take it away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from ..description.basics import Scalar, scalars
from .balance import EXACT, CalibrationBalance, Moments
from .fit import LEAST, CalibrationProblem
from .free import drive_forms, forms_of

MOST = 3            # numbers that are named
WORTH = 0.7         # of the RMS before, below which a number must bring it
WEAK = 1e-2         # of a usual deviation, the least that is known before of a number that is tried: nearly nothing
SHAPES = ('constant', 'speed_sign', 'speed', 'stroke', 'pressure')


@dataclass(frozen=True)
class ResidualForm:
    """What a fit leaves of one equation's missing force over ``count`` windows: ``rms``, N at the pistons; ``noise`` is
    what the noise of the samples makes of it, ``expected`` that with ``EXACT`` of the force, which no model knows.

    ``shares`` (0 to 1, by ``SHAPES``) of its squares: that of the mean, and what a line over the sign of the speed, the
    speed, the stroke (a cubic) and the load pressure explains besides; NaN of too few windows. Shapes overlap.
    """

    equation: str
    count: int
    rms: float
    noise: float
    expected: float
    shares: dict[str, float]


@dataclass(frozen=True)
class MissingNumber:
    """A number ``key`` of the file that is not free: ``value``, SI, at which RMS ``left``, N, would be left, together
    with those named before it; ``free``: what to give to calibrate it."""

    key: str
    value: float
    left: float
    free: str


class Residue:
    """What is left of the forces of a ``problem`` at errors ``u``, and what could be made of it."""

    def __init__(self, problem: CalibrationProblem, u: np.ndarray) -> None:
        self.problem, self.u, self.balance = problem, u, problem.balance
        parts = [problem.missing(log, u) for log in problem.logs]
        self._g, self._J = (np.concatenate(item) for item in zip(*parts))
        names = Moments.__dataclass_fields__
        self.moments = Moments(*(np.concatenate([getattr(log.moments, name) for log in problem.logs])
                                 for name in names))
        self.levers = np.maximum(self.moments.levers, 1e-12)

    @cached_property
    def expected(self) -> np.ndarray:
        """RMS (a, 2), N at the pistons, by the noise of the samples, and that with what no model knows; NaN where no
        window counts."""
        sizes, found = self._sizes(), []
        for k, own in enumerate(self.moments.counts.T):
            noise = self.moments.variance[own, k] / self.levers[own, k] ** 2
            force = (EXACT * sizes[own][:, self.balance.found.concerns[k]].sum(axis=1)) ** 2
            found.append([np.sqrt(item.mean()) if own.any() else np.nan for item in (noise, noise + force)])
        return np.array(found).reshape(-1, 2)

    @cached_property
    def forms(self) -> tuple[ResidualForm, ...]:
        """Of each equation that counts in any window."""
        found = []
        for k, name in enumerate(self.balance.equations):
            own = self.moments.counts[:, k]
            if own.any():
                r = self._g[own, k] / self.levers[own, k]
                noise, expected = self.expected[k].tolist()
                found.append(ResidualForm(name, int(own.sum()), float(np.sqrt(np.mean(r ** 2))), noise, expected,
                                          self._shares(k, own, r)))
        return tuple(found)

    def _shares(self, k: int, own: np.ndarray, r: np.ndarray) -> dict[str, float]:
        if len(r) < LEAST or not r.any():
            return dict.fromkeys(SHAPES, float('nan'))
        c = int(np.argmax(self.balance.found.concerns[k]))
        v, s, p = self.moments.speeds[own, c], self.moments.pistons[own, c], load_pressures(
            self.balance, self.moments)[own, c]
        mean, total = np.mean(r), float(r @ r)

        def more(*columns: np.ndarray) -> float:
            """Of the squares by these, besides the mean."""
            A = np.array([item - item.mean() for item in columns]).T
            A = A / np.maximum(np.abs(A).max(axis=0), 1e-300)
            left = (r - mean) - A @ np.linalg.lstsq(A, r - mean, rcond=1e-9)[0]
            return max(0.0, (float((r - mean) @ (r - mean)) - float(left @ left)) / total)
        parts = float(len(r) * mean ** 2 / total), more(np.sign(v)), more(v), more(s, (s - s.mean()) ** 3), more(p)
        return dict(zip(SHAPES, parts))

    @cached_property
    def candidates(self) -> tuple[MissingNumber, ...]:
        """Numbers that would take most of it away, one after the other, by linear least squares with all errors; ()
        where none would."""
        columns, known = self._columns(), scalars(self.balance.machine.description)
        chosen: list[str] = []
        found: list[MissingNumber] = []
        left, _ = self._left([])
        while len(chosen) < MOST:
            tried = {}
            for key in (key for key in columns if key not in chosen):
                rms, (*_, moved) = self._left([columns[name] for name in (*chosen, key)])
                usual = columns[key][1]
                value = known.get(key, usual).value + moved
                if usual.range[0] <= value <= usual.range[1]:
                    tried[key] = rms, value, key + f'={abs(moved):.1g}' * (abs(moved) > 2 * usual.stddev)
            best = min(tried, key=lambda key: tried[key][0], default='')
            if not best or tried[best][0] > WORTH * left:
                return tuple(found)
            left, value, free = tried[best]
            chosen.append(best)
            found.append(MissingNumber(best, value, left, free))
        return tuple(found)

    def _left(self, more: Sequence[tuple[np.ndarray, Scalar]]) -> tuple[float, list[float]]:
        """RMS, N, that is left with further numbers of these columns (n, a), and by how much they change, SI."""
        own = self.moments.counts
        sigma = (self.expected[:, 1] * self.levers)[own]
        A = np.column_stack([self._J[own], *(usual.stddev * column[own] for column, usual in more)]) / sigma[:, None]
        prior = np.concatenate([np.ones(self.problem.size), np.full(len(more), WEAK)])
        y = np.concatenate([self._g[own] / sigma, self.u, np.zeros(len(more))])
        x = np.linalg.lstsq(np.vstack([A, np.diag(prior)]), -y, rcond=None)[0]
        rest = (self._g[own] / sigma + A @ x) * self.expected[:, 1][np.nonzero(own)[1]]
        return float(np.sqrt(np.mean(rest ** 2))) if len(rest) else float('nan'), [
            float(step * usual.stddev) for step, (_, usual) in zip(x[self.problem.size:], more)]

    def _columns(self) -> dict[str, tuple[np.ndarray, Scalar]]:
        """Derivatives (n, a) of what is missing by numbers that are not free, and what is usual of these."""
        machine, m = self.balance.machine, self.moments
        found: dict[str, tuple[np.ndarray, Scalar]] = {}
        levers, friction = self._forces()
        for c, name in enumerate(machine.description.drives, len(machine.cylinders)):
            forward = m.speeds[:, c] > 0
            effort = pushes(self.balance, m)[:, machine.actuators.entries.index(f'effort/{name}')]
            parts = {'scale': friction[:, c], 'forward_scale': friction[:, c] * forward,
                     'backward_scale': friction[:, c] * ~forward, 'load': np.abs(effort) * np.sign(m.speeds[:, c])}
            found |= {key: (levers[:, :, c] * parts[key.rpartition('.')[2]][:, None], number)
                      for key, number in drive_forms(name).items() if key not in machine.parameters.names}
        for c, (name, cylinder) in enumerate(machine.description.cylinders.items()):
            v, out = m.speeds[:, c], m.speeds[:, c] > 0
            about = cylinder.stroke.value / 2 if cylinder.parallel is None else cylinder.parallel.about.value
            s, count = m.pistons[:, c] - about, cylinder.count
            forces = {'scale': friction[:, c], 'out_scale': friction[:, c] * out, 'in_scale': friction[:, c] * ~out,
                      'constant': count * np.ones_like(v), 'linear': count * s, 'cubic': count * s ** 3,
                      'damping': count * v}
            found |= {key: (levers[:, :, c] * forces[key.rpartition('.')[2]][:, None], number)
                      for key, number in forms_of(name, cylinder).items() if key not in machine.parameters.names}
        return found

    def _forces(self) -> tuple[np.ndarray, np.ndarray]:
        """Levers (n, a, c) of forces against the pistons' way out in what is missing, and friction (n, c), N."""
        b, m, machine = self.balance.found, self.moments, self.balance.machine
        speeds, p = (ca.SX.sym('speeds', len(machine.actuators)),
                     ca.SX.sym('p', len(machine.actuators.entries)))
        numbers = machine.parameters.symbol
        levers = ca.Function('mbse_levers', [b.near, b.X, numbers, self.balance.mass], [ca.densify(b.levers)])
        friction = ca.Function('mbse_frictions', [speeds, p, numbers], [machine.actuators.friction_forces(speeds, p)])
        at, n, (a, c) = self.problem.numbers(self.u), len(m.X), b.levers.shape
        found = np.asarray(levers(m.near.T, m.X.T, at, 0.0)).reshape(a, c, n, order='F').transpose(2, 0, 1)
        return found, np.asarray(friction(m.speeds.T, pushes(self.balance, m).T, at)).T

    def _sizes(self) -> np.ndarray:
        """Forces (n, c), N, of the pressures of both sides together, and efforts."""
        machine = self.balance.machine
        areas = np.array([[item.piston_area, item.rod_area] for item in machine.description.cylinders.values()]
                         ).reshape(-1, 2)
        found = pushes(self.balance, self.moments)
        chambers = found[:, :len(machine.volumes)] @ machine.circuit.T_Vcyl
        sums = (np.abs(chambers).reshape(len(chambers), *areas.shape) * areas).sum(axis=2)
        return np.hstack([sums, np.abs(found[:, len(machine.volumes):])])


def pushes(balance: CalibrationBalance, moments: Moments) -> np.ndarray:
    """Pressures of the volumes and efforts of the drives (n, pushes), Pa and N m, as measured."""
    return moments.X[:, [balance.names.index(name) for name in balance.machine.actuators.entries]]


def load_pressures(balance: CalibrationBalance, moments: Moments) -> np.ndarray:
    """By how much the pressure on each piston is above that on its rod side times the ratio of areas (n, c), Pa; the
    effort of a drive."""
    machine, found = balance.machine, pushes(balance, moments)
    cylinders, count = machine.description.cylinders.values(), len(machine.volumes)
    chambers = found[:, :count] @ machine.circuit.T_Vcyl
    over = chambers[:, ::2] - chambers[:, 1::2] * np.array([item.rod_area / item.piston_area for item in cylinders])
    return np.hstack([over, found[:, count:]])
