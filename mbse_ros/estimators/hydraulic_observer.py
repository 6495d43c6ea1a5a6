# SPDX-License-Identifier: Apache-2.0
"""The kinematic and hydraulic observer: exponential DEKF over a whole segment in one compiled call.

Paper 003, section 3.1. What goes into the compiled step besides the model: the sensor noise and the tuning, so that
a change of tuning needs no new compilation.

Samples. The interpolated values between two samples repeat these samples' noise: taken as measurements of their own
they count it several times, at whatever variance. So each sample corrects once, with its own variance, at its stamp;
in between the model predicts, and once the next sample is there the states between the two are put on a line. Where
samples are rare the prediction gets too long for a stiff fluid linearised: a sample is then taken in parts.

Activity. A machine's acceleration wanders little in steady motion and much when a valve steps. The density of its
random walk follows what the cylinder's pressures show: a factor per cylinder, in the state beside the covariance.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, nan, sqrt

import casadi as ca
import numpy as np
from scipy.special import chdtri

from ..compiled import Scan
from ..errors import DescriptionError
from ..machine import Machine
from ..machine.channels import Channel
from ..transition.exponential import halvings_for
from .activity import activity_factors, next_activity
from .dekf import correct, predict
from .filters.update import wrapped
from .hydraulic_model import NOISES, HydraulicModel, fastest_rate, hydraulic_model
from .hydraulic_sensors import variances
from .settings import ObserverSettings

NOMINAL_STEP = 1e-3         # s, compiled for at the start
LONGEST_PREDICTION = 10e-3  # s; of samples that are rarer n parts are interpolated, each with n times the variance
MOST_PLANS = 256            # kept
NEVER = 1e300       # a gate that nothing is beyond
MISSING = -1e300    # a NaN compares as false with everything and loses against this in fmax


@dataclass(frozen=True)
class SegmentResult:
    """Observer over a segment, SI: ``mean`` (n, nx), ``covariance`` (nx, nx) at the last step.

    Between two samples ``mean`` is a line from the state at the one to the state at the other.
    ``innovation`` (ny,) and ``innovation_variance`` (ny,): the last samples against what was predicted for them one
    sample (or part of one) earlier; each channel after the ones before it. NaN: a channel without a sample here.
    ``rejected`` (ny,): those beyond the gate, which were left out; ``finite`` is false when anything left the finite
    numbers."""

    mean: np.ndarray
    covariance: np.ndarray
    innovation: np.ndarray
    innovation_variance: np.ndarray
    rejected: np.ndarray
    finite: bool


def observer_step(machine: Machine, model: HydraulicModel, order: str, noise: str, halvings: int = 2) -> ca.Function:
    """One step ``(x, u, p) -> (x+, y)`` of the observer; SI outside, the model's units inside.

    ``x`` = state, lower triangle of its covariance in the model's units, commands in force (a valve sees a command from
    its stamp on, so those of one step act during the next), activity of each cylinder, dependent coordinates where the
    model needs them, near which Newton's method starts; ``u`` = measurements (NaN: missing), commands; ``p`` = dt,
    spectral densities, largest activity, gate (of a normalised innovation squared), variances of the measurements,
    uncertain parameters; ``y`` = state, innovations, their variances. ``halvings`` of the step make 'exact' exact (see
    halvings_for).
    """
    n, m, to_model, g = len(model.names), len(model.measured), 1.0 / model.scale, len(machine.coordinates)
    X_si, lower, commands = ca.SX.sym('X', n), ca.SX.sym('P', n * (n + 1) // 2), ca.SX.sym('U_next', model.U.numel())
    measured, variance, dt = ca.SX.sym('y', m), ca.SX.sym('r', m), ca.SX.sym('dt')
    activity, largest, gate = ca.SX.sym('activity', len(machine.cylinders)), ca.SX.sym('largest'), ca.SX.sym('gate')
    near = ca.SX.sym('near', model.dependent.numel())
    P = ca.tril2symm(ca.SX(ca.Sparsity.lower(n), lower))
    X = X_si * to_model
    solved = _closed(machine, model, near, X[:g])
    f, A = ca.substitute([model.f, model.A], [model.X, model.dependent], [X, solved])
    W = ca.diag(activity_factors(machine, model.names, activity) * ca.diag(model.W))
    X, P = predict(X, P, f, A, W, dt, order, noise, halvings)
    X, P, *seen = _corrected(machine, model, X, P, solved, measured, variance, gate)
    X = X * ca.SX(model.scale)
    after = next_activity(machine, activity, largest, *seen)
    x_next, y = ca.cse([ca.vertcat(X, ca.tril(P).nz[:], commands, after, solved), ca.vertcat(X, *seen[0], *seen[1])])
    return ca.Function('mbse_observer', [ca.vertcat(X_si, lower, model.U, activity, near), ca.vertcat(measured, commands),
                                         ca.vertcat(dt, model.psd, largest, gate, variance, machine.parameters.symbol)],
                       [x_next, y], ['x', 'u', 'p'], ['x_next', 'y'])


def _closed(machine: Machine, model: HydraulicModel, near: ca.SX, z: ca.SX) -> ca.SX:
    """Dependent coordinates at z, from those nearby; (0,) where the model needs none."""
    return machine.closed(near, z)[machine.system.dependent] if model.dependent.numel() else near


def _corrected(machine: Machine, model: HydraulicModel, X: ca.SX, P: ca.SX, solved: ca.SX, measured: ca.SX,
               variance: ca.SX, gate: ca.SX) -> tuple[ca.SX, ca.SX, list[ca.SX], list[ca.SX], list[ca.SX]]:
    """State and covariance after one measurement after the other; innovations and variances, SI, and what was used.

    What is not an entry of the state is linearised at the prediction. An innovation beyond the gate is left out.
    """
    predicted, g, to_model = X, len(machine.coordinates), 1.0 / model.scale
    if model.indirect:
        solved = _closed(machine, model, solved, X[:g])
    innovations, spreads, weights = [], [], []
    for k, item in enumerate(model.measured):
        present, sample, unit = measured[k] > MISSING, ca.fmax(measured[k], MISSING), 1.0
        if item.index is None:
            h, H = ca.substitute([item.h, item.H], [model.X, model.dependent], [predicted, solved])
            error = sample - h - H @ (X - predicted)
            row = H
        else:
            unit = float(to_model[item.index]) / item.gain
            shift = float(to_model[item.index]) * (item.zero - item.offset / item.gain)
            error = sample * unit + shift - X[item.index] if shift else sample * unit - X[item.index]
            row = item.index
        if item.wraps:
            error = wrapped(ca.if_else(present, error, 0.0))
        X, P, innovation, spread, weight = correct(X, P, row, error, variance[k] * unit ** 2, present, gate)
        innovations.append(innovation / unit)
        spreads.append(spread / unit ** 2)
        weights.append(weight)
    return X, P, innovations, spreads, weights


class HydraulicObserver:
    """Observer of one machine: holds the state between segments.

    ``threshold``: standard deviations beyond which the innovation of a sample is rejected.
    """

    def __init__(self, machine: Machine, settings: ObserverSettings, backend: str = 'auto') -> None:
        self.machine, self.backend = machine, backend
        self.model = hydraulic_model(machine)
        self.names, self.channels = self.model.names, machine.channels
        n = len(self.names)
        self._full = np.zeros((n, n), dtype=int)            # where each entry of P stands in the packed state
        columns, rows = np.triu_indices(n)                  # CasADi packs the lower triangle column by column
        self._full[rows, columns] = self._full[columns, rows] = n + np.arange(len(rows))
        self._to_si = np.outer(self.model.scale, self.model.scale)
        self._plans: dict[tuple, tuple] = {}
        self._first = 3 + len(NOISES)       # place of the first variance among the parameters of the step
        self._variance = variances(machine)
        if not self._variance.all():
            raise DescriptionError(machine.description.file, f'sensors.{self._exact().sensor.name}.stddev', 0.0,
                                   'a standard deviation or a resolution above 0')
        self.rate = fastest_rate(machine)
        self._scans: dict[tuple[str, str, int], Scan] = {}
        self._prepared = NOMINAL_STEP
        self.reset()
        self.configure(settings)

    @property
    def started(self) -> bool:
        """Whether there is a state to go on from."""
        return self._x is not None

    def configure(self, settings: ObserverSettings) -> None:
        """Take new tuning from the next segment on; the state stays."""
        self.settings = settings
        psd = [getattr(settings, name) for name in NOISES]
        self.threshold = inf if settings.gate >= 1 else sqrt(chdtri(1, 1 - settings.gate))
        self._p = np.concatenate([[0.0], psd, [settings.activity_range, min(self.threshold ** 2, NEVER)],
                                  self._variance, self.machine.parameters.mean])
        self.prepare(self._prepared)

    def prepare(self, dt: float) -> None:
        """Choose, and compile where it is new, the step for ``dt``, s."""
        halvings = max(2, halvings_for(self.rate * dt / 2))
        key = (self.settings.transition, self.settings.noise, halvings)
        if key not in self._scans:
            self._scans[key] = Scan(observer_step(self.machine, self.model, *key), self.backend)
        self._scan, self._prepared = self._scans[key], dt

    @property
    def note(self) -> str:
        """What is wrong with the tuning in force; '' when nothing is."""
        stiffness = self.rate * self._prepared
        if self.settings.transition == 'exact' or stiffness <= 1.0:
            return ''
        return (f'transition {self.settings.transition}: the fastest mode of {self.machine.name} times the step is '
                f'{stiffness:.2g}, above 1, where a truncated series is wrong; use exact')

    def reset(self) -> None:
        """Forget the state."""
        self._x = None

    def start(self, measured: np.ndarray, commands: np.ndarray) -> None:
        """State from the first samples (channels,), SI, NaN where missing: at rest, as uncertain as the settings say.

        A coordinate or pressure without a sample starts in the middle of its range, with that range as its stddev.
        Raises PositionProblemError where the mechanism cannot be so.
        """
        X, stddev = self._initial(commands)
        for k, item in enumerate(self.model.measured):
            if np.isfinite(measured[k]) and item.index is not None:
                X[item.index] = (measured[k] - item.offset) / item.gain + item.zero
                stddev[item.index] = np.sqrt(self._variance[k]) / item.gain
        n, dependent = len(X), np.zeros(0)
        if self.model.dependent.numel():
            dependent = self.machine.position(X[:len(self.machine.coordinates)])[self.machine.system.dependent]
        self._x = np.concatenate([X, np.zeros(n * (n + 1) // 2), commands, np.ones(len(self.machine.cylinders)),
                                  dependent])
        self._x[np.diag(self._full)] = (stddev / self.model.scale) ** 2
        self._due = np.zeros(len(self.channels))

    def process(self, values: np.ndarray, commands: np.ndarray, repeats: np.ndarray, dt: float) -> SegmentResult:
        """Run over a segment: measurements (n, channels), SI, NaN where missing; commands (n, valves), V, given at
        each step; ``repeats`` (channels,): steps from sample to sample, the last step being at a sample.
        """
        n, m, nx = len(values), len(self.channels), len(self.names)
        if dt != self._prepared:
            self.prepare(dt)
        self._p[0] = dt
        key = n, dt, repeats.tobytes(), self._due.tobytes()
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= MOST_PLANS:
                self._plans.clear()
            plan = self._plans[key] = self._plan(n, repeats, dt)
        used, self._p[self._first:self._first + m], self._due, (inside, left, right, share) = plan
        u = np.full((n, m + commands.shape[1]), nan)
        u[:, m:] = commands
        np.copyto(u[:, :m], values, where=used)
        first = self._x[:nx]
        self._x, y = self._scan(self._x, u, self._p)
        covariance = self._x[self._full]
        covariance *= self._to_si
        corrected = used & (values == values)
        innovation, variance = _last(y[:, nx:nx + m], y[:, nx + m:], corrected)
        rejected = np.abs(innovation) > self.threshold * np.sqrt(variance)
        mean, states = y[:, :nx].copy(), np.concatenate([first[None, :], y[:, :nx]])
        start = states[left]
        mean[inside] = start + share * (states[right] - start)
        return SegmentResult(mean, covariance, innovation, variance, rejected, isfinite(np.add.reduce(self._x)))

    def _plan(self, n: int, repeats: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple]:
        """Values to take (n, channels), their variances, what is due afterwards, how the states in between are made."""
        parts = np.maximum(np.rint(repeats * (dt / LONGEST_PREDICTION)), 1.0)
        used, due = self._samples(n, repeats / parts)
        return used, self._variance * parts, due, _lines(np.flatnonzero(used.any(axis=1)))

    def _samples(self, n: int, intervals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which of the values (n, channels) of a segment are taken: one in ``intervals``, back from the last; due then.

        What is due beyond whole samples is carried on, so that in the long run each sample counts once, also where
        sensors of several rates, or unsteady ones, share a segment that does not end at a sample of each.
        """
        used, after = np.zeros((n, len(intervals)), dtype=bool), np.empty(len(intervals))
        for k, interval in enumerate(intervals.tolist()):
            due = self._due[k] + n / interval
            count = int(due + 0.5 + 1e-9)
            after[k] = due - count
            for j in range(count):
                used[max(0, n - 1 - round(j * interval)), k] = True
        return used, after

    def _initial(self, commands: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """State and standard deviations (nx,), SI, before anything is measured."""
        s, supplies = self.settings, self.machine.description.hydraulics.supplies
        ranges, spools, slow = iter(self.machine.range), iter(commands), iter(self.machine.measured_supplies)
        pressure = max((supply.value for supply in supplies.values()), default=20e6) / 2
        spread = {'velocity': s.start_velocity, 'acceleration': s.start_acceleration, 'flow': 1e-4, 'inclination': 0.2}
        X, stddev = np.zeros(len(self.names)), np.zeros(len(self.names))
        for i, kind in enumerate(name.split('/')[0] for name in self.names):
            if kind == 'position':
                low, high = next(ranges)
                X[i], stddev[i] = (low + high) / 2, (high - low) / 2
            elif kind == 'pressure':
                X[i], stddev[i] = pressure, pressure
            elif kind == 'spool':
                X[i], stddev[i] = next(spools), 0.5
            elif kind == 'supply':
                X[i] = stddev[i] = supplies[next(slow)].value
            else:
                stddev[i] = spread[kind]
        return X, stddev

    def _exact(self) -> Channel:
        """The first channel whose samples would have no noise."""
        return next(channel for channel in self.machine.all_channels if channel.sensor.noise == 0.0)


def _last(innovations: np.ndarray, variances: np.ndarray, corrected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Innovation and variance of the last sample of each channel (channels,); NaN where a segment has none."""
    if corrected[-1].all():
        return innovations[-1], variances[-1]
    step = len(corrected) - 1 - np.argmax(corrected[::-1], axis=0)
    columns = np.arange(len(step))
    there = corrected[step, columns]
    return np.where(there, innovations[step, columns], nan), np.where(there, variances[step, columns], variances[-1])


def _lines(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """For the steps that lie between samples, which stand at the steps ``samples``: the steps, and, counted from the
    state before the first step, those at both ends of their lines; shares of the way (steps, 1)."""
    ends = np.concatenate([[-1], samples])
    steps = np.setdiff1d(np.arange(ends[-1] + 1), samples)
    k = np.searchsorted(ends, steps)
    left, right = ends[k - 1], ends[k]
    return steps, left + 1, right + 1, ((steps - left) / (right - left))[:, None]
