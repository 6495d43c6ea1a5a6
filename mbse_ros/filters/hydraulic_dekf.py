# SPDX-License-Identifier: Apache-2.0
"""The filter of a machine's motion, pressures and payload: exponential DEKF (Pyrhönen et al., mass estimation, section
3.1), as one step over flat vectors with named parts.

``initial``, ``spreads``: what is known before anything is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from ..compiled.cache import built
from ..machine import Machine
from ..machine.equations import why_unweighed
from . import observer_step as steps
from .force_balance import SPREAD, spread_of_rate
from .hydraulic_error import nominal
from .hydraulic_model import NOISES, HydraulicModel, hydraulic_model, largest_pressure
from .mass_information import LARGEST_ACTIVITY, columns
from .observer_settings import ObserverSettings
from .parts.layout import SYMMETRIC, Layout
from .parts.step import DiscreteFilter
from .unweighed import OPENED, UNKNOWN_FLOW
from .weighing import frictions, mass_numbers

ERROR = 'hydraulic_errorEKF_FE'


@dataclass(frozen=True)
class HydraulicFilter(DiscreteFilter):
    """Of a machine and its model with nx entries of the state, m channels, a equations of the force balance (0 where it
    does not weigh) and k uncertain numbers and frictions near standstill that it follows.

    ``state``: ``x`` (nx,), SI; ``P`` (nx, nx), its covariance in the model's units; ``commands`` in force, V (a valve
    sees a command from its stamp on, so those of one step act during the next); ``activity`` of each coordinate;
    ``trend`` (m + a,) of each channel and of each equation; ``mass``: its activity, then its trend, see
    MassStep; ``moved`` (a,): in which equations the pistons move; ``empty``: for how long each pressure is below
    its tank's, s; ``T`` (k, nx): derivatives of the state by what is uncertain, for one deviation of each, in the
    model's units; ``near``: dependent coordinates near which Newton's method starts, where the model needs them.
    ``given``: ``o`` (m,), measurements, NaN where missing, and ``u``, commands. ``tuning``: ``dt``, s, the spectral
    densities by their names, the largest ``activity_range``, ``force_psd`` (a,) or (1,), density of the error of each
    equation, MPa^2 s, ``force_slow`` (as many), by what the mass takes it more than once,
    ``variance`` (m,) of the measurements, ``p``, the machine's parameters, ``nominal_payload``, kg, (0,) unless of
    errorEKF_FE. ``outputs``: ``x``, ``innovation`` (m,), ``innovation_variance`` (m,), ``weighing``, what the step
    measures of the mass, see MassInformation, ``balance`` (a,), residuals over their deviations, and ``shared`` (m +
    a,), how far from 0 what is uncertain makes innovations and residuals, in such deviations.
    ``order`` of the transition, its ``noise`` and the ``halvings`` of a step: see ``observer_step``.
    """

    machine: Machine
    model: HydraulicModel
    order: str
    noise: str
    halvings: int

    @property
    def predicted(self) -> Layout:
        """The state, and of one that weighs the variance of the mass before the prediction, in ranges of its limits."""
        return Layout({**self.state.parts, 'known': (int(self.model.weighs), 1)})

    def function(self) -> ca.Function:
        """The step."""
        return self._built(steps.ObserverStep.step)

    @cached_property
    def predict(self) -> ca.Function:
        """Its prediction alone; ``P`` then is the covariance without what the samples of the step say."""
        return self._built(steps.ObserverStep.predict)

    @cached_property
    def correct(self) -> ca.Function:
        """Its correction alone, by the samples and by the force balance."""
        return self._built(steps.ObserverStep.correct)

    def _built(self, part: Callable[[steps.ObserverStep], ca.Function]) -> ca.Function:
        """A part of the step, as it was built once before."""
        of = self.order, self.noise, self.halvings
        made_of = ['observer', part.__name__, self.machine.made_of, self.name, str(self.model.weighs),
                   *map(str, (*of, steps.LARGE))]
        return built(made_of, lambda: part(steps.observer_step(self, self.machine, self.model, *of)))

    @cached_property
    def slopes(self) -> np.ndarray:
        """Places (nx, k) in the flat state of its derivatives ``T``."""
        return np.ascontiguousarray(self.state.indices['T'].T)

    def start(self, mean: np.ndarray, stddev: np.ndarray, commands: np.ndarray) -> np.ndarray:
        """Flat state at a ``mean`` (nx,) with standard deviations (nx,), SI, and ``commands`` in force, V: as lively as
        the tuning says, the mass calm, without a trend. Raises PositionProblemError."""
        parts = self.state.arrays(np.zeros(self.state.size))
        parts['activity'][:], parts['mass'][:1] = 1.0, 1.0
        return self.state.flat(**{**parts, 'x': mean, 'P': np.diag((stddev / self.model.scale) ** 2),
                                  'commands': commands, 'near': self.dependent(mean[:len(self.machine.coordinates)])})

    def dependent(self, z: np.ndarray) -> np.ndarray:
        """Dependent coordinates at independent ones (g,), (0,) where the model needs none; of a filter that weighs
        within the machine's range. Raises PositionProblemError."""
        if not self.model.dependent.numel():
            return np.zeros(0)
        z = np.clip(z, *self.machine.range.T) if self.model.weighs else z
        return self.machine.position(z)[self.machine.system.dependent]

    def with_load(self, x: np.ndarray, before: np.ndarray, kept: float) -> np.ndarray:
        """A state with mass and moments of the one ``before``, of whose information a share is ``kept``, if that says
        more of the mass."""
        n, c, x = len(self.model.names), self.model.unknowns, x.copy()
        places, P = np.arange(n - c, n), self.state.indices['P'][n - c:, n - c:]
        numbers, held = np.split(self.slopes[n - c:], [len(self.model.consider(self.machine))], axis=1)
        covariance = (before[P] + before[held] @ before[held].T) / kept
        if c and covariance[-1, -1] < x[P[-1, -1]]:
            x[places], x[P], x[numbers] = before[places], covariance, before[numbers]
        return x

    def restarted(self, x: np.ndarray, samples: Mapping[int, float], variance: np.ndarray, settings: ObserverSettings
                  ) -> np.ndarray:
        """A state with coordinates at the ``samples``, SI, of the channels at these places that measure them, of
        ``variance`` (channels,), and with unknown motion, see ``opened``; the load may be another one. Raises
        PositionProblemError."""
        x, names, P = x.copy(), self.model.names, self.state.indices['P']
        for k, sample in samples.items():
            item = self.model.measured[k]
            if item.index is None:
                continue
            x[P[item.index]] = x[self.slopes[item.index]] = 0.0
            x[item.index] = (sample - item.offset) / item.gain + item.zero
            x[P[item.index, item.index]] = variance[k] / (item.gain * self.model.scale[item.index]) ** 2
            motion = [names.index(f'{kind}/{names[item.index].partition("/")[2]}')
                      for kind in ('velocity', 'acceleration')]
            x[motion] = 0.0
            x[self.slopes[motion]] = 0.0
        x[self.state.places['near']] = self.dependent(x[:len(self.machine.coordinates)])
        x[self.state.places['mass']][:1] = LARGEST_ACTIVITY
        return self.opened(x, settings)

    def opened(self, x: np.ndarray, settings: ObserverSettings) -> np.ndarray:
        """A state with speeds, accelerations and unknown flows, which the balance drew along, as uncertain as at a
        start in motion."""
        spread, x, P = spreads(self.machine, settings), x.copy(), self.state.indices['P']
        for i, name in enumerate(self.model.names):
            kind = name.partition('/')[0]
            if kind in ('velocity', 'acceleration', 'flow'):
                x[P[i]] = 0.0
                x[P[i, i]] = (OPENED * spread[kind] / self.model.scale[i]) ** 2
        return x


def hydraulic_dekf(machine: Machine, model: HydraulicModel | None = None, order: str = 'exact', noise: str = 'van_loan',
                   halvings: int = 2) -> HydraulicFilter:
    """Filter of a machine's model, which says whether it weighs; default: one that weighs where it can."""
    model = hydraulic_model(machine, not why_unweighed(machine)) if model is None else model
    n, m, uncertain = len(model.names), len(model.measured), len(model.consider(machine))
    equations = len(machine.weighing) * model.weighs
    state = {'x': (n, 1), 'P': (n, SYMMETRIC), 'commands': (model.U.numel(), 1),
             'activity': (len(machine.coordinates), 1), 'trend': (m + equations, 1),
             'mass': (mass_numbers(machine, model), 1), 'moved': (equations, 1), 'empty': (len(machine.volumes), 1),
             'T': (uncertain + frictions(machine, model), n), 'near': (model.dependent.numel(), 1)}
    tuning = {'dt': (1, 1), **{name: (1, 1) for name in NOISES}, 'activity_range': (1, 1),
              'force_psd': (max(1, equations), 1), 'force_slow': (max(1, equations), 1), 'variance': (m, 1),
              'p': (machine.parameters.symbol.numel(), 1),
              'nominal_payload': (len(nominal(machine)) * model.driven, 1)}
    outputs = {'x': (n, 1), 'innovation': (m, 1), 'innovation_variance': (m, 1),
               'weighing': (columns(uncertain) * model.weighs, 1), 'balance': (equations, 1),
               'shared': (m + equations, 1)}
    name, given = ERROR if model.driven else 'hydraulic', {'o': (m, 1), 'u': (model.U.numel(), 1)}
    return HydraulicFilter(name, Layout(state), Layout(given), Layout(tuning), Layout(outputs), machine, model, order,
                           noise, halvings)


def hydraulic_error_ekf_fe(machine: Machine, model: HydraulicModel | None = None, **options: Any) -> HydraulicFilter:
    """errorEKF_FE with pressures: see ``hydraulic_error``. It does not weigh. Options as of ``hydraulic_dekf``."""
    return hydraulic_dekf(machine, hydraulic_model(machine, driven=True) if model is None else model, **options)


def spreads(machine: Machine, settings: ObserverSettings) -> dict[str, float]:
    """Standard deviations, SI, at the start, of kinds of entries of the state that are near 0 then."""
    found = {'velocity': settings.start_velocity, 'acceleration': settings.start_acceleration, 'flow': UNKNOWN_FLOW,
             'inclination': 0.2, 'base_acceleration': 2.0}
    return found | ({'swing': SPREAD, 'swing_rate': spread_of_rate(machine)} if machine.swings else {})


def initial(machine: Machine, model: HydraulicModel, settings: ObserverSettings, commands: np.ndarray
            ) -> tuple[np.ndarray, np.ndarray]:
    """State and standard deviations (nx,), SI; ``commands`` (valves,), V."""
    supplies, spread = machine.hydraulics.supplies, spreads(machine, settings)
    ranges, spools, slow = iter(machine.range), iter(commands), iter(machine.measured_supplies)
    pressure, efforts = largest_pressure(machine) / 2, (drive.largest for drive in machine.description.drives.values())
    X, stddev = np.zeros(len(model.names)), np.zeros(len(model.names))
    for i, kind in enumerate(name.split('/')[0] for name in model.names):
        if kind == 'position':
            low, high = next(ranges)
            X[i], stddev[i] = (low + high) / 2, (high - low) / 2
        elif kind == 'pressure':
            X[i], stddev[i] = pressure, pressure
        elif kind == 'spool':
            X[i], stddev[i] = next(spools), 0.5
        elif kind == 'effort':
            stddev[i] = next(efforts)
        elif kind == 'supply':
            X[i] = stddev[i] = supplies[next(slow)].value
        elif kind == 'moment':
            stddev[i] = model.scale[i]
        elif kind == 'payload':
            low, high = machine.payload_data.limits
            X[i], stddev[i] = (low + high) / 2, high - low
        else:
            stddev[i] = spread[kind]
    return X, stddev
