# SPDX-License-Identifier: Apache-2.0
"""The kinematic and hydraulic observer: exponential DEKF over a whole segment in one compiled call.

Paper 003, section 3.1. What goes into the compiled step besides the model: the sensor noise and the tuning, so that
a change of tuning needs no new compilation.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..compiled import Scan
from ..machine import Machine
from .dekf import correct, predict
from .hydraulic_model import MPA, NOISES, HydraulicModel, hydraulic_model
from .settings import ObserverSettings

HALVINGS = 2        # exact to 1e-12 while the fastest mode stays below one step; checked by `stiffness`


@dataclass(frozen=True)
class SegmentResult:
    """Observer over a segment, SI: ``mean`` (n, nx), ``covariance`` (nx, nx) at the last step,
    ``innovation`` (n, ny) and ``prior_variance`` (n, ny) of the predicted measurements, before each correction."""

    mean: np.ndarray
    covariance: np.ndarray
    innovation: np.ndarray
    prior_variance: np.ndarray


def observer_step(machine: Machine, model: HydraulicModel, order: str, noise: str) -> ca.Function:
    """One step ``(x, u, p) -> (x+, y)`` of the observer.

    ``x`` = state and the lower triangle of its covariance; ``u`` = measurements, their weights (0: missing), commands;
    ``p`` = dt, spectral densities, variances of the measurements, uncertain parameters;
    ``y`` = state, innovations, variances of the predicted measurements.
    """
    n, m = len(model.names), len(model.measured)
    lower = ca.SX.sym('P', n * (n + 1) // 2)
    P = ca.tril2symm(ca.SX(ca.Sparsity.lower(n), lower))
    measured, weight, variance = (ca.SX.sym(s, m) for s in ('y', 'w', 'r'))
    dt = ca.SX.sym('dt')
    X, P = predict(model.X, P, model.f, model.A, model.W, dt, order, noise, HALVINGS)
    innovations, priors = [], []
    for k, index in enumerate(model.measured):
        X, P, innovation, prior = correct(X, P, index, measured[k], variance[k], weight[k])
        innovations.append(innovation)
        priors.append(prior)
    y = ca.vertcat(X, *innovations, *priors)
    x_next, y = ca.cse([ca.vertcat(X, ca.tril(P).nz[:]), y])
    return ca.Function(
        'mbse_observer',
        [ca.vertcat(model.X, lower), ca.vertcat(measured, weight, model.U),
         ca.vertcat(dt, model.psd, variance, machine.parameters.symbol)],
        [x_next, y], ['x', 'u', 'p'], ['x_next', 'y'])


class HydraulicObserver:
    """Observer of one machine: holds the state between segments."""

    def __init__(self, machine: Machine, settings: ObserverSettings, backend: str = 'auto') -> None:
        self.machine, self.backend = machine, backend
        self.model = hydraulic_model(machine)
        self.names, self.channels = self.model.names, machine.channels
        n = len(self.names)
        self._columns, self._rows = np.triu_indices(n)      # CasADi packs the lower triangle column by column
        self._to_si = self.model.scale
        self._channel_scale = self._to_si[list(self.model.measured)]
        self._covariance_to_si = np.outer(self._to_si, self._to_si)
        sensors = machine.description.sensors
        self._variance = np.array([{'position': sensors.position, 'pressure': sensors.pressure}[kind][owner]
                                   for kind, owner in (c.split('/') for c in self.channels)]) ** 2
        self._scans: dict[tuple[str, str], Scan] = {}
        self._x: np.ndarray | None = None
        self.configure(settings)

    @property
    def started(self) -> bool:
        """Whether there is a state to go on from."""
        return self._x is not None

    @property
    def sample_variance(self) -> np.ndarray:
        """Variance of each channel's samples (channels,), SI."""
        return self._variance

    def configure(self, settings: ObserverSettings) -> None:
        """Take new tuning from the next segment on; the state stays."""
        key = (settings.transition, settings.noise)
        if key not in self._scans:
            self._scans[key] = Scan(observer_step(self.machine, self.model, *key), self.backend)
        self.settings, self._scan = settings, self._scans[key]
        psd = [getattr(settings, name) for name in NOISES]
        self._p = np.concatenate([[0.0], psd, self._variance / self._channel_scale ** 2, self.machine.parameters.mean])

    def reset(self) -> None:
        """Forget the state."""
        self._x = None

    def start(self, measured: np.ndarray, commands: np.ndarray) -> None:
        """State from the first samples (channels,), SI, NaN where missing: at rest, as uncertain as the settings say.

        A position or pressure without a sample starts at mid stroke or mid pressure, with that range as its stddev.
        """
        kinds = [name.split('/')[0] for name in self.names]
        strokes = iter(self.machine.stroke)
        high = max(self.machine.description.hydraulics.supplies.values(), key=lambda q: q.value).value / MPA \
            if self.machine.description.hydraulics.supplies else 20.0
        spools = iter(commands)
        s = self.settings
        X, stddev = np.zeros(len(kinds)), np.zeros(len(kinds))
        for i, kind in enumerate(kinds):
            if kind == 'position':
                low, top = next(strokes)
                X[i], stddev[i] = (low + top) / 2, (top - low) / 2
            elif kind == 'pressure':
                X[i], stddev[i] = high / 2, high / 2
            elif kind == 'spool':
                X[i], stddev[i] = next(spools), 0.5
            else:
                stddev[i] = {'velocity': s.start_velocity, 'acceleration': s.start_acceleration, 'flow': 0.1}[kind]
        for k, index in enumerate(self.model.measured):
            if np.isfinite(measured[k]):
                X[index] = measured[k] / self._channel_scale[k]
                stddev[index] = np.sqrt(self._variance[k]) / self._channel_scale[k]
        self._x = np.concatenate([X, np.diag(stddev ** 2)[self._rows, self._columns]])

    def process(self, values: np.ndarray, commands: np.ndarray, repeats: np.ndarray, dt: float) -> SegmentResult:
        """Run over a segment: measurements (n, channels), SI, NaN where missing; commands (n, valves), V, in force
        during each step; ``repeats`` (channels,): steps that share one sample, so that its information counts once.
        """
        n, m, nx = len(values), len(self.channels), len(self.names)
        present = np.isfinite(values)
        u = np.empty((n, 2 * m + commands.shape[1]))
        np.divide(values, self._channel_scale, out=u[:, :m])
        u[:, m:2 * m] = present
        if not present.all():
            u[:, :m][~present] = 0.0
        u[:, 2 * m:] = commands
        self._p[0] = dt
        self._p[5:5 + m] = self._variance * repeats / self._channel_scale ** 2
        self._x, y = self._scan(self._x, u, self._p)
        return SegmentResult(y[:, :nx] * self._to_si, self._covariance(), y[:, nx:nx + m] * self._channel_scale,
                             y[:, nx + m:] * self._channel_scale ** 2)

    def _covariance(self) -> np.ndarray:
        """Covariance of the last step (nx, nx), SI."""
        n = len(self.names)
        P = np.empty((n, n))
        P[self._rows, self._columns] = P[self._columns, self._rows] = self._x[n:]
        return P * self._covariance_to_si
