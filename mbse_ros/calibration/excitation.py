# SPDX-License-Identifier: Apache-2.0
"""Motions of all joints of an arm at once that determine its numbers best.

Each joint follows a sum of harmonics of one period, with random phases (J. Swevers, C. Ganseman, D. B. Tükel,
J. De Schutter and H. Van Brussel, Optimal robot excitation and identification, IEEE Trans. Robotics and Automation 13,
1997), from rest and to rest. Of many such motions those are taken, one after the other, that add most to the logarithm
of the determinant of the information on the numbers (D-optimal), as ``plan`` does with poses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..description.sections.load_payload import MASS
from ..errors import DescriptionError
from .balance import EXACT, OF_ARMS, STEADY, CalibrationBalance, Moments
from .plan import CandidateMotion, choose

PERIOD, HARMONICS = 20.0, 5     # s of a motion, and how many
RAMP = 2.0                      # s from rest to the motion, and back
TRIED, FEWEST, MOST = 24, 2, 3          # motions
REACH = {'rad': 1.0, 'm': 0.3}          # from the middle of a motion, as far as the limits allow
CLEAR = 0.05                    # of the range of a joint, which motions keep clear of its limits
FASTEST = {'rad': 0.8, 'm': 0.2}        # rad/s, m/s
LARGEST = 0.8                   # of a drive's largest effort
NOISE = 0.002                   # of that: a mean of efforts over a window
SHRINKS = 0.8                   # of a motion that needs a larger effort
SEED = 1                        # the same file has the same plan


@dataclass(frozen=True)
class JointMotion:
    """Of coordinates (g,): ``middle`` (g,), and ``sine`` and ``cosine`` (g, HARMONICS), rad or m, of the harmonics."""

    middle: np.ndarray
    sine: np.ndarray
    cosine: np.ndarray

    def at(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Positions, speeds and accelerations (n, g) at times (n,), s, from 0 to ``duration``."""
        x, y = np.clip(t / RAMP, 0, 1), np.clip((self.duration - t) / RAMP, 0, 1)

        def ramp(u: np.ndarray) -> tuple[np.ndarray, ...]:
            """Integral of a smooth step of one unit, the step, and its slope."""
            return (u ** 6 - 3 * u ** 5 + 2.5 * u ** 4, 6 * u ** 5 - 15 * u ** 4 + 10 * u ** 3,
                    30 * u ** 4 - 60 * u ** 3 + 30 * u ** 2)
        (begin, rate, change), (end, slower, against) = ramp(x), ramp(y)
        phase = np.where(t < RAMP, RAMP * begin, np.where(y < 1, PERIOD - RAMP * end, t - RAMP / 2))
        speed = rate * slower
        w = 2 * np.pi / PERIOD * np.arange(1, HARMONICS + 1)
        angle = phase[:, None] * w
        s, c = np.sin(angle), np.cos(angle)
        q = self.middle + s @ self.sine.T + c @ self.cosine.T
        by = (c * w) @ self.sine.T - (s * w) @ self.cosine.T
        bend = -(s * w ** 2) @ self.sine.T - (c * w ** 2) @ self.cosine.T
        return q, by * speed[:, None], bend * speed[:, None] ** 2 + by * ((change - against) / RAMP)[:, None]

    @property
    def duration(self) -> float:
        """With both ramps, s."""
        return PERIOD + RAMP

    def scaled(self, share: np.ndarray | float) -> JointMotion:
        """A share (g,) of the way from the middle."""
        sizes = np.ones(len(self.middle)) * share
        return JointMotion(self.middle, self.sine * sizes[:, None], self.cosine * sizes[:, None])


@dataclass(frozen=True)
class MotionPlan:
    """``motions`` of the empty arm, and ``loaded``, with the load ``load``, kg, none without a payload; ``before`` and
    ``after`` (k,): standard deviations of the numbers ``keys``, SI."""

    motions: tuple[JointMotion, ...]
    loaded: tuple[JointMotion, ...]
    load: float
    keys: tuple[str, ...]
    before: np.ndarray
    after: np.ndarray


class Exciter:
    """Candidates of one arm."""

    def __init__(self, balance: CalibrationBalance) -> None:
        self.balance, machine = balance, balance.machine
        self.machine, self.factor = machine, machine.parameters.factor()
        drives = {drive.coordinate: drive for drive in machine.description.drives.values()}
        start = np.array(machine.model.start.q)[list(machine.model.z)]
        low, high = machine.range.T
        room = (1 - 2 * CLEAR) * (high - low) / 2
        units = [drives[name].unit if name in drives else '' for name in machine.coordinates]
        self._reach = np.minimum([REACH.get(unit, 0.0) for unit in units], room)
        self._fastest = np.array([FASTEST.get(unit, 0.0) for unit in units])
        self._middle = np.clip(start, (low + high) / 2 - room + self._reach, (low + high) / 2 + room - self._reach)
        self._largest = np.array([drive.largest for drive in machine.description.drives.values()])
        self._least = STEADY * np.array(machine.actuators.transitions)

    def motion(self, rng: np.random.Generator) -> JointMotion:
        """A random one, within reach and speed."""
        g = len(self._middle)
        sine, cosine = rng.normal(size=(2, g, HARMONICS)) / np.sqrt(np.arange(1, HARMONICS + 1))
        found = JointMotion(self._middle, sine, cosine)
        q, qd, _ = found.at(np.arange(0.0, found.duration, 0.05))
        share = np.minimum(self._reach / np.abs(q - self._middle).max(axis=0), self._fastest / np.abs(qd).max(axis=0))
        return found.scaled(share)

    def candidate(self, motion: JointMotion, load: float) -> tuple[JointMotion, CandidateMotion]:
        """What a motion shows of the numbers, made smaller until the drives can give it. Raises DescriptionError where
        they cannot even hold the arm."""
        for _ in range(20):
            moments, efforts = self._moments(motion, load)
            if (np.abs(efforts) <= LARGEST * self._largest).all():
                break
            motion = motion.scaled(SHRINKS)
        else:
            raise DescriptionError(self.machine.description.file, 'drives', list(self.machine.description.drives),
                                   f'larger efforts: the arm cannot be held at its start with {load:g} kg')
        _, J, _ = self.balance.terms(moments, self.machine.parameters.mean, np.full(len(moments.X), load))
        rows = (J @ self.factor / np.sqrt(moments.variance)[:, :, None])[moments.counts]
        return motion, CandidateMotion('', self._middle, np.zeros(0), load, rows, np.zeros((0, 0)))

    def _moments(self, motion: JointMotion, load: float) -> tuple[Moments, np.ndarray]:
        """Of windows of a motion, and the efforts (n, drives) that it takes."""
        balance, machine, names = self.balance, self.machine, self.balance.names
        t = np.arange(OF_ARMS / 2, motion.duration, OF_ARMS)
        g, n, k, p = len(machine.coordinates), len(t), len(names), machine.parameters.mean
        X, parts = np.zeros((n, balance.X.numel())), motion.at(t)
        X[:, :3 * g] = np.hstack(parts)
        if X.shape[1] > k:      # the rates of the state, where delays are uncertain
            X[:, k:k + 2 * g] = np.hstack(parts[1:])
        near, reached = balance.solved(parts[0])
        if not reached.all():
            raise DescriptionError(machine.description.file, 'joints', None, 'an arm that reaches all angles within '
                                   'its limits, to plan motions')
        pushes = [i for i, name in enumerate(names) if name.startswith('effort/')]
        pistons, speeds, _, slopes, _ = map(np.asarray, balance.motion(near.T, X.T, p, load))
        a = len(balance.equations)
        slopes = slopes.reshape(a, X.shape[1], n, order='F').transpose(2, 0, 1)[:, :, pushes]
        for _ in range(2):      # friction may grow with the effort
            missing = np.asarray(balance.unbalanced(near.T, X.T, p, load)).T
            X[:, pushes] -= np.array([np.linalg.lstsq(A, b, rcond=None)[0] for A, b in zip(slopes, missing)])
        efforts = X[:, pushes]
        share = np.abs(slopes) @ self._largest
        variance = (EXACT * (np.abs(slopes) @ np.abs(efforts[:, :, None]))[:, :, 0]) ** 2 + (NOISE * share) ** 2
        moving = np.abs(speeds.T) > self._least
        counts = np.array([moving[:, row].all(axis=1) for row in balance.found.concerns]).T
        return Moments(near, X, counts, variance, pistons.T, speeds.T, np.ones_like(variance), t), efforts


def motion_plan(balance: CalibrationBalance) -> MotionPlan:
    """The motions for an arm of which nothing but its file is known. Raises DescriptionError where its drives cannot
    move it."""
    machine, exciter, rng = balance.machine, Exciter(balance), np.random.default_rng(SEED)

    def best(motions: Sequence[JointMotion], load: float, covariance: np.ndarray, fewest: int, most: int
             ) -> tuple[tuple[JointMotion, ...], np.ndarray]:
        found = [exciter.candidate(motion, load) for motion in motions]
        of = {id(candidate): motion for motion, candidate in found}
        chosen, covariance = choose([[candidate] for _, candidate in found], covariance, fewest, most)
        return tuple(of[id(group[0])] for group in chosen), covariance
    prior = np.eye(len(machine.parameters.mean))
    motions, covariance = best([exciter.motion(rng) for _ in range(TRIED)], 0.0, prior, FEWEST, MOST)
    loaded: tuple[JointMotion, ...] = ()
    load = 0.0
    if machine.description.payload is not None and MASS in machine.parameters.states:
        low, high = machine.payload_data.limits
        load = float(f'{low + 0.5 * (high - low):.2g}')
        loaded, covariance = best(motions, load, covariance, 1, 1)
    F = exciter.factor
    before, after = (np.sqrt(np.einsum('ij,jk,ik->i', F, item, F)) for item in (prior, covariance))
    return MotionPlan(motions, loaded, load, machine.parameters.names, before, after)
