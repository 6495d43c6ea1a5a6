# SPDX-License-Identifier: Apache-2.0
"""Which motion would determine a machine's numbers best: poses and sweeps, chosen one after the other (D-optimal).

Each candidate is what steady slow motion of one cylinder, out and in, would show at a place, with the errors of the
numbers as the prior or earlier bags leave them. What it adds is the logarithm of the determinant of their information
(V. V. Fedorov, Theory of optimal experiments, 1972).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from ..errors import DescriptionError
from .balance import EXACT, CalibrationBalance, Moments

SHARES = {1: (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9), 2: (0.15, 0.325, 0.5, 0.675, 0.85)}
COARSE = (0.15, 0.5, 0.85)      # of the range of each coordinate, where there are more than two
FEWEST, MOST = 6, 10            # poses
WORTH = 0.1                     # nats that a pose beyond the fewest must add
SLOW = 0.05                     # of the stroke in a second
FAST = 0.15
REST = 0.5e6                    # Pa, in the chamber that does not carry
NOISE = 6e3                     # Pa, of a mean of pressures
ITERATIONS = 4
ENDS = 0.03                     # of the stroke that poses keep clear of
AROUND = 0.06                   # of the stroke, from which a pose is approached
PAUSE = 2.0                     # s of rest after each move of a cylinder


@dataclass(frozen=True)
class CandidateMotion:
    """Motion of one ``cylinder``, or of each where it is '', slowly out and in at coordinates ``z`` (g,), where the
    pistons are at ``pistons`` (c,), m, with a ``load``, kg; ``rows`` (r, k): derivatives of the residuals by the errors
    of the numbers, in standard deviations; ``speeds`` (m, g): of the coordinates, by each cylinder that moves out."""

    cylinder: str
    z: np.ndarray
    pistons: np.ndarray
    load: float
    rows: np.ndarray
    speeds: np.ndarray

    def gain(self, covariance: np.ndarray) -> float:
        """Nats that it adds where the errors have this covariance (k, k)."""
        return 0.5 * float(np.linalg.slogdet(np.eye(len(self.rows)) + self.rows @ covariance @ self.rows.T)[1])

    def after(self, covariance: np.ndarray) -> np.ndarray:
        """The covariance with it."""
        column = covariance @ self.rows.T
        return covariance - column @ np.linalg.solve(np.eye(len(self.rows)) + self.rows @ column, column.T)


@dataclass(frozen=True)
class Plan:
    """``poses``, one candidate each; ``sweeps``, one a cylinder; ``loaded``: the same with the load ``load``, kg;
    ``before`` and ``after`` (k,): standard deviations of the numbers ``keys``, SI; ``factor`` (k, 2k): a root of the
    covariance after, without what is learnt of the load itself."""

    poses: tuple[CandidateMotion, ...]
    sweeps: tuple[CandidateMotion, ...]
    loaded: tuple[CandidateMotion, ...]
    load: float
    keys: tuple[str, ...]
    before: np.ndarray
    after: np.ndarray
    factor: np.ndarray

    def duration(self, stroke: np.ndarray) -> tuple[float, float]:
        """Time of the motion empty and with the load, s, of cylinders with strokes (c,), m, moved one after the other:
        to each pose at 15 % of the stroke a second, around it at 5 %, with rests."""
        here, times = self.poses[0].pistons, []
        for group in (self.poses + self.sweeps, self.loaded):
            total = 0.0
            for item in group:
                # in, out, in and to the pose again; or to one end, the other and back
                move = 2 / FAST + 3 * PAUSE if item.cylinder else 6 * AROUND / SLOW + 4 * PAUSE
                travel = np.abs(item.pistons - here) / stroke
                total += len(item.speeds) * move + float(travel.sum()) / FAST + PAUSE * int(np.count_nonzero(travel))
                here = item.pistons
            times.append(total)
        return times[0], times[1]


class Planner:
    """Candidates of one machine."""

    def __init__(self, balance: CalibrationBalance) -> None:
        self.balance, self.machine = balance, balance.machine
        self.factor = self.machine.parameters.factor()
        actuated = self.machine.actuated
        self._start = np.array(self.machine.model.start.q)[list(self.machine.model.z)]
        low, high = self.machine.range.T
        shares, self.grid = SHARES.get(len(actuated), COARSE), []
        for chosen in product(shares, repeat=len(actuated)):
            z = self._start.copy()
            z[actuated] = low[actuated] + np.array(chosen) * (high - low)[actuated]
            self.grid.append(z)
        near, reached = balance.solved(np.array(self.grid))
        self.near, self.grid = near, np.array(self.grid)[reached]

    def candidates(self, loads: Iterable[float] = (0.0,)) -> list[CandidateMotion]:
        """Each cylinder at each pose of a grid that can be reached, with each load."""
        return [found for load in loads for k in range(len(self.grid)) for found in self.at(k, load)]

    def at(self, k: int, load: float, share: float = SLOW) -> list[CandidateMotion]:
        """Of each cylinder at pose k of the grid, at a share of its stroke in a second."""
        balance, machine, found = self.balance, self.machine, []
        stroke = machine.stroke[:, 1] - machine.stroke[:, 0]
        for place, name in enumerate(machine.cylinders):
            speeds = np.zeros((2, len(stroke)))
            speeds[:, place] = share * stroke[place] * np.array([1.0, -1.0])
            moments, pistons = self._moments(k, speeds, load)
            if (np.abs(pistons / stroke - 0.5) > 0.5 - ENDS).any():
                return []
            _, J, _ = balance.terms(moments, machine.parameters.mean, np.full(2, load))
            rows = (J @ self.factor / np.sqrt(moments.variance)[:, :, None])[moments.counts]
            g = len(machine.coordinates)
            found.append(CandidateMotion(name, self.grid[k], pistons, load, rows, moments.X[:1, g:2 * g]))
        return found

    def _moments(self, k: int, speeds: np.ndarray, load: float) -> tuple[Moments, np.ndarray]:
        """Of steady motion at piston speeds (2, c): pressures balance the forces."""
        balance, g = self.balance, len(self.machine.coordinates)
        names, n = balance.names, len(speeds)
        pressures = [i for i, name in enumerate(names) if name.startswith('pressure/')]
        X = np.zeros((n, balance.X.numel()))
        X[:, :g], X[:, pressures] = self.grid[k], REST
        near, p = np.tile(self.near[k], (n, 1)), self.machine.parameters.mean
        for step in range(ITERATIONS):
            pistons, _, rates, slopes, levers = map(np.asarray, balance.motion(near.T, X.T, p, load))
            rates, slopes = (item.reshape(len(item), X.shape[1], n, order='F').transpose(2, 0, 1)
                             for item in (rates, slopes))
            if not step:
                X[:, g:2 * g] = [np.linalg.lstsq(rates[i][:, g:2 * g], speeds[i], rcond=None)[0] for i in range(n)]
                if X.shape[1] > len(names):     # the rates that uncertain delays go on with: steady motion
                    X[:, len(names):len(names) + g] = X[:, g:2 * g]
                continue
            missing, _, _ = balance.terms(Moments(near, X, *[np.zeros(0)] * 6), p, np.full(n, load))
            for i in range(n):
                X[i, pressures] += np.linalg.lstsq(slopes[i][:, pressures], -missing[i], rcond=None)[0]
                X[i, pressures] = np.maximum(X[i, pressures], REST)
        forces = np.abs(slopes[:, :, pressures]) @ np.abs(X[0, pressures])
        variance = (EXACT * forces) ** 2 + (np.abs(slopes[:, :, pressures]).sum(axis=2) * NOISE) ** 2
        moving = np.abs(speeds) > 0
        counts = np.array([moving[:, row].all(axis=1) for row in balance.found.concerns]).T
        return Moments(near, X, counts, variance, pistons.T, speeds, levers.T, np.zeros(n)), pistons[:, 0]


def choose(candidates: Sequence[Sequence[CandidateMotion]], covariance: np.ndarray, fewest: int, most: int
           ) -> tuple[list[Sequence[CandidateMotion]], np.ndarray]:
    """Groups of candidates that add most, one after the other, and the covariance of the errors after them."""
    chosen: list[Sequence[CandidateMotion]] = []
    left = [group for group in candidates if group]
    while left and len(chosen) < most:
        gains = [_whole(group).gain(covariance) for group in left]
        best = int(np.argmax(gains))
        if len(chosen) >= fewest and gains[best] < WORTH:
            break
        chosen.append(left.pop(best))
        covariance = _whole(chosen[-1]).after(covariance)
    return chosen, covariance


def _whole(group: Sequence[CandidateMotion]) -> CandidateMotion:
    """The motion of all cylinders at one pose."""
    first = group[0]
    rows, speeds = (np.concatenate([getattr(item, name) for item in group]) for name in ('rows', 'speeds'))
    return CandidateMotion('', first.z, first.pistons, first.load, rows, speeds)


def plan(balance: CalibrationBalance) -> Plan:
    """The procedure for a machine of which nothing but its file is known: poses, a sweep a joint, a load. Raises
    DescriptionError where the mechanism reaches none within the strokes."""
    machine = balance.machine
    if machine.description.drives:
        raise DescriptionError(machine.description.file, 'drives', list(machine.description.drives), 'cylinders alone, '
                               'or drives alone, to plan motions: record any motion of all joints and cylinders')
    planner = Planner(balance)
    prior = np.eye(len(machine.parameters.mean))
    poses, covariance = choose([planner.at(k, 0.0) for k in range(len(planner.grid))], prior, FEWEST, MOST)
    if not poses:
        raise DescriptionError(machine.description.file, 'cylinders', None,
                               'poses that the mechanism reaches within the strokes of all cylinders, to calibrate')
    sweeps = []
    for name in machine.cylinders:
        own = [[item] for k in range(len(planner.grid)) for item in planner.at(k, 0.0, FAST) if item.cylinder == name]
        best, covariance = choose(own, covariance, 1, 1)
        sweeps += [item for group in best for item in group]
    loaded: list[Sequence[CandidateMotion]] = []
    load = 0.0
    if machine.description.payload is not None:
        low, high = machine.payload_data.limits
        load = float(f'{low + 0.5 * (high - low):.2g}')
        loaded, covariance = choose([planner.at(k, load) for k in range(len(planner.grid))], covariance, 2, 2)
    F, names = planner.factor, machine.parameters.names
    before, after = (np.sqrt(np.einsum('ij,jk,ik->i', F, item, F)) for item in (prior, covariance))
    load_own = np.array([name.startswith('payload.') for name in names])     # of this load, not of the machine
    factor = F @ np.linalg.cholesky(covariance)
    factor = np.hstack([np.where(load_own[:, None], 0.0, factor), np.diag(before * load_own)])
    return Plan(tuple(map(_whole, poses)), tuple(sweeps), tuple(map(_whole, loaded)), load, names, before, after,
                factor)
