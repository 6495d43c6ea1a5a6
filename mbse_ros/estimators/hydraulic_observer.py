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
from math import isfinite, nan

import casadi as ca
import numpy as np

from ..compiled import Scan
from ..machine import Machine
from ..transition.exponential import halvings_for
from .dekf import correct, predict
from .hydraulic_model import NOISES, HydraulicModel, fastest_rate, hydraulic_model
from .settings import ObserverSettings

NOMINAL_STEP = 1e-3         # s, compiled for at the start
LONGEST_PREDICTION = 10e-3  # s; of samples that are rarer n parts are interpolated, each with n times the variance
SURPRISE = 4.0              # mean square of a cylinder's pressure innovations over their deviations, no accident
RELAXATION = 0.05           # share by which the activity goes towards what the innovations show, at a sample
MOST_PLANS = 256            # kept
MISSING = -1e300    # a NaN compares as false with everything and loses against this in fmax


@dataclass(frozen=True)
class SegmentResult:
    """Observer over a segment, SI: ``mean`` (n, nx), ``covariance`` (nx, nx) at the last step.

    Between two samples ``mean`` is a line from the state at the one to the state at the other.
    ``innovation`` (ny,) and ``innovation_variance`` (ny,): the last samples against what was predicted for them one
    sample (or part of one) earlier; each channel after the ones before it. NaN: a channel without a sample here.
    ``finite`` is false when anything left the finite numbers."""

    mean: np.ndarray
    covariance: np.ndarray
    innovation: np.ndarray
    innovation_variance: np.ndarray
    finite: bool


def observer_step(machine: Machine, model: HydraulicModel, order: str, noise: str, halvings: int = 2) -> ca.Function:
    """One step ``(x, u, p) -> (x+, y)`` of the observer; SI outside, the model's units inside.

    ``x`` = state, lower triangle of its covariance in the model's units, commands in force (a valve sees a command from
    its stamp on, so those of one step act during the next), activity of each cylinder; ``u`` = measurements (NaN:
    missing), commands; ``p`` = dt, spectral densities, largest activity, variances of the measurements, uncertain
    parameters; ``y`` = state, innovations, their variances. ``halvings`` of the step make 'exact' exact (see
    halvings_for).
    """
    n, m, to_model = len(model.names), len(model.measured), 1.0 / model.scale
    X_si, lower, commands = ca.SX.sym('X', n), ca.SX.sym('P', n * (n + 1) // 2), ca.SX.sym('U_next', model.U.numel())
    measured, variance, dt = ca.SX.sym('y', m), ca.SX.sym('r', m), ca.SX.sym('dt')
    activity, largest = ca.SX.sym('activity', len(machine.cylinders)), ca.SX.sym('largest')
    P = ca.tril2symm(ca.SX(ca.Sparsity.lower(n), lower))
    X, f, A = (ca.substitute(item, model.X, X_si * to_model) for item in (model.X, model.f, model.A))
    factor = ca.SX.ones(n)
    factor[[i for i, name in enumerate(model.names) if name.startswith('acceleration/')]] = activity
    X, P = predict(X, P, f, A, ca.diag(factor * ca.diag(model.W)), dt, order, noise, halvings)
    innovations, variances, weights = [], [], []
    for k, index in enumerate(model.measured):
        weight, unit = measured[k] > MISSING, float(to_model[index])
        X, P, innovation, spread = correct(X, P, index, ca.fmax(measured[k], MISSING) * unit, variance[k] * unit ** 2,
                                           weight)
        weights.append(weight)
        innovations.append(innovation / unit)
        variances.append(spread / unit ** 2)
    X = X * ca.SX(model.scale)
    after = _activity(machine, activity, largest, innovations, variances, weights)
    x_next, y = ca.cse([ca.vertcat(X, ca.tril(P).nz[:], commands, after), ca.vertcat(X, *innovations, *variances)])
    return ca.Function('mbse_observer', [ca.vertcat(X_si, lower, model.U, activity), ca.vertcat(measured, commands),
                                         ca.vertcat(dt, model.psd, largest, variance, machine.parameters.symbol)],
                       [x_next, y], ['x', 'u', 'p'], ['x_next', 'y'])


def _activity(machine: Machine, activity: ca.SX, largest: ca.SX, innovations: list[ca.SX], variances: list[ca.SX],
              weights: list[ca.SX]) -> ca.SX:
    """Activity of each cylinder after a step: it jumps where its pressures surprise, else follows them slowly.

    Where the flows of its valve are unknown it stays: pressures then show the flows rather than the acceleration.
    """
    valves, after = machine.description.hydraulics.valves, []
    modelled = {volume for name in machine.valves_of('orifice') for volume in (valves[name].a, valves[name].b)}
    for i in range(len(machine.cylinders)):
        own = {machine.volumes[v] for v in np.flatnonzero(machine.circuit.T_Vcyl[:, 2 * i:2 * i + 2].any(axis=1))}
        which = [k for k, (kind, owner) in enumerate(channel.split('/') for channel in machine.channels)
                 if kind == 'pressure' and owner in own & modelled]
        count = sum((weights[k] for k in which), ca.SX(0))
        ratio = sum((innovations[k] ** 2 / variances[k] for k in which), ca.SX(0)) / ca.fmax(count, 1)
        rate = ca.if_else(ratio > SURPRISE, ratio, 1 + RELAXATION * (ratio - 1))
        after.append(ca.if_else(count > 0, ca.fmin(ca.fmax(activity[i] * rate, 1 / largest), largest), activity[i]))
    return ca.vertcat(*after)


class HydraulicObserver:
    """Observer of one machine: holds the state between segments."""

    def __init__(self, machine: Machine, settings: ObserverSettings, backend: str = 'auto') -> None:
        self.machine, self.backend = machine, backend
        self.model = hydraulic_model(machine)
        self.names, self.channels = self.model.names, machine.channels
        n = len(self.names)
        self._full = np.zeros((n, n), dtype=int)            # where each entry of P stands in the packed state
        columns, rows = np.triu_indices(n)                  # CasADi packs the lower triangle column by column
        self._full[rows, columns] = self._full[columns, rows] = n + np.arange(len(rows))
        self._to_si = np.outer(self.model.scale, self.model.scale)
        sensors = machine.description.sensors
        self._variance = np.array([{'position': sensors.position, 'pressure': sensors.pressure}[kind][owner]
                                   for kind, owner in (c.split('/') for c in self.channels)]) ** 2
        self.rate = fastest_rate(machine, self.model)
        self._plans: dict[tuple, tuple] = {}
        self._scans: dict[tuple[str, str, int], Scan] = {}
        self._prepared = NOMINAL_STEP
        self._x: np.ndarray | None = None
        self.configure(settings)

    @property
    def started(self) -> bool:
        """Whether there is a state to go on from."""
        return self._x is not None

    def configure(self, settings: ObserverSettings) -> None:
        """Take new tuning from the next segment on; the state stays."""
        self.settings = settings
        psd = [getattr(settings, name) for name in NOISES]
        self._p = np.concatenate([[0.0], psd, [settings.activity_range], self._variance, self.machine.parameters.mean])
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

        A position or pressure without a sample starts at mid stroke or mid pressure, with that range as its stddev.
        """
        X, stddev = self._initial(commands)
        for k, index in enumerate(self.model.measured):
            if np.isfinite(measured[k]):
                X[index], stddev[index] = measured[k], np.sqrt(self._variance[k])
        n = len(X)
        self._x = np.concatenate([X, np.zeros(n * (n + 1) // 2), commands, np.ones(len(self.machine.cylinders))])
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
        used, self._p[6:6 + m], self._due, (inside, left, right, share) = plan
        u = np.full((n, m + commands.shape[1]), nan)
        u[:, m:] = commands
        np.copyto(u[:, :m], values, where=used)
        first = self._x[:nx]
        self._x, y = self._scan(self._x, u, self._p)
        covariance = self._x[self._full]
        covariance *= self._to_si
        corrected = used & (values == values)
        innovation, variance = _last(y[:, nx:nx + m], y[:, nx + m:], corrected)
        mean, states = y[:, :nx].copy(), np.concatenate([first[None, :], y[:, :nx]])
        start = states[left]
        mean[inside] = start + share * (states[right] - start)
        return SegmentResult(mean, covariance, innovation, variance, isfinite(np.add.reduce(self._x)))

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
        s, supplies = self.settings, self.machine.description.hydraulics.supplies.values()
        strokes, spools = iter(self.machine.stroke), iter(commands)
        pressure = max((supply.value for supply in supplies), default=20e6) / 2
        spread = {'velocity': s.start_velocity, 'acceleration': s.start_acceleration, 'flow': 1e-4}
        X, stddev = np.zeros(len(self.names)), np.zeros(len(self.names))
        for i, kind in enumerate(name.split('/')[0] for name in self.names):
            if kind == 'position':
                low, high = next(strokes)
                X[i], stddev[i] = (low + high) / 2, (high - low) / 2
            elif kind == 'pressure':
                X[i], stddev[i] = pressure, pressure
            elif kind == 'spool':
                X[i], stddev[i] = next(spools), 0.5
            else:
                stddev[i] = spread[kind]
        return X, stddev


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
