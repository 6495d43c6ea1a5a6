# SPDX-License-Identifier: Apache-2.0
"""Numbers of a machine's estimator that the exported C holds as constants."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, inf
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from ..errors import SettingError
from ..filters.hydraulic_dekf import initial
from ..filters.hydraulic_observer import LIVELIEST, HydraulicObserver
from ..filters.hydraulic_state import variances
from ..filters.observer_settings import ObserverSettings
from ..filters.unweighed import OPENED
from ..machine import Machine
from ..machine.equations import pressure_pairs
from ..monitor import steps
from ..monitor.bounds import DEEPEST, ROOM, StateBounds, machine_ends
from ..monitor.channels import GRAIN, MOVED, PERIODS
from ..monitor.faults import Fault
from ..monitor.steps import FINEST, NEAR, StepCheck
from ..payload.filter import gain_of, triangular_weights, window_of
from ..payload.gates import gate_numbers
from ..payload.mass import BEYOND, NORMAL, PayloadSettings
from ..streams.interpolation import LONGEST_STEP
from ..streams.machine_monitor import FALLS

if TYPE_CHECKING:
    from collections.abc import Iterable

STUDENT_DEGREE = 28         # of the polynomial for the quantile of Student's t: 4e-15 of its value
NIS_MEMORY = 0.02           # share of the mean NIS that a tick forgets
LARGEST_NIS = 4.0           # of that mean, from which model and samples contradict each other
LONGEST_TICK = 0.010        # s; rarer samples would be taken in parts, see filters/between_samples.py
ALMOST = 1e-6               # of a tick, by which times are rounded


@dataclass(frozen=True)
class EstimatorSetup:
    """A machine with its tuning and its clock: ``rate``, Hz, of the ticks, ``step``, s, of the observer in them."""

    machine: Machine
    observer: ObserverSettings
    payload: PayloadSettings
    rate: float = 100.0
    step: float = 1e-3

    def __post_init__(self) -> None:
        if not (np.isfinite(self.rate) and self.rate * (LONGEST_TICK + ALMOST) >= 1.0):
            raise SettingError('rate', self.rate, f'{1 / LONGEST_TICK:g} Hz or more: between rarer samples the '
                                                  'prediction is too long')
        if not (self.step > 0 and abs(self.substeps * self.step * self.rate - 1.0) < 1e-9):
            raise SettingError('dt', self.step, f'a whole number of times in a tick of {1.0 / self.rate:g} s')
        if self.joint and self.step > LONGEST_STEP + ALMOST * self.step:
            raise SettingError('dt', self.step, f'at most {LONGEST_STEP:g} s, or observer.weighing=apart')
        if not self.joint and self.guard < 1:
            raise SettingError('payload.guard_time', self.payload.guard_time, f'a step or more, {self.step:g} s')
        for channel in self.machine.all_channels:
            if channel.delay_ns:
                raise SettingError(f'sensors.{channel.sensor.name}.delay', 1e-9 * channel.delay_ns, '0 s: the samples '
                                   'of a tick are of one time; hold back the others in the controller by as much')
        for name, value, default in (('observer.estimator', self.observer.estimator, 'hydraulic'),
                                     ('observer.measurements', self.observer.measurements, 'samples'),
                                     ('payload.low_pass', self.payload.low_pass, 'information')):
            if value != default:
                raise SettingError(name, value, f'{default}: the other one is not in C')

    @property
    def joint(self) -> bool:
        """Whether the observer weighs; else the estimator is that of the papers, motion first, then the mass."""
        return self.observer.weighing == 'joint'

    @property
    def step_ns(self) -> int:
        """The step, ns."""
        return round(1e9 * self.step)

    @property
    def substeps(self) -> int:
        """Steps of the observer in a tick."""
        return max(1, round(1.0 / (self.rate * self.step)))

    @property
    def guard(self) -> int:
        """Samples of the guard time."""
        return round(self.payload.guard_time / self.step)

    @property
    def window(self) -> int:
        """Samples of the triangular window, odd."""
        samples = window_of(self.payload.window, self.step)
        return len(triangular_weights(samples + 1 - samples % 2))

    @property
    def batch(self) -> int:
        """Samples of a batch."""
        return max(1, round(self.payload.batch_time / self.step))

    def ticks(self, seconds: float, up: bool) -> int:
        """A time in ticks, rounded up or down."""
        ticks = seconds * self.rate
        return ceil(ticks - ALMOST) if up else floor(ticks + ALMOST)


def student_coefficients() -> np.ndarray:
    """Chebyshev coefficients, in ``2 / freedom - 1``, of the logarithm of Student's two-sided 95 % quantile."""
    from numpy.polynomial import chebyshev  # here: slow to import
    from scipy.special import stdtrit
    x = np.cos(np.pi * (np.arange(STUDENT_DEGREE + 1) + 0.5) / (STUDENT_DEGREE + 1))
    return chebyshev.chebfit(x, np.log(stdtrit(2.0 / (x + 1.0), 0.975)), STUDENT_DEGREE)


def number_macros(of: EstimatorSetup, observer: HydraulicObserver) -> dict[str, float]:
    """Single numbers by their macros."""
    gain, (low, high) = gain_of(of.payload.low_pass_gain, of.step), of.machine.payload_data.limits
    return {'THRESHOLD': min(observer.threshold, 1e30), 'LIVELIEST': LIVELIEST * of.observer.activity_range,
            'MOVED': MOVED, 'FINEST': FINEST, 'GRAIN': GRAIN, 'SUDDEN_STEP': steps.SUDDEN,
            'STEP_NOISES': steps.NOISES, 'CALM_STEP': steps.CALM, 'BACK': steps.BACK,
            'NIS_MEMORY': NIS_MEMORY, 'ROOM': ROOM, 'DEEPEST': DEEPEST,
            'OPENED': OPENED,
            'START_VELOCITY': of.observer.start_velocity, 'FALLS': FALLS, 'TICK': 1.0 / of.rate, 'DECAY': 1.0 - gain,
            'BATCH_DECAY': (1.0 - gain) ** (2 * of.batch), 'NORMAL': NORMAL, 'BEYOND': BEYOND, 'LIGHTEST': low,
            'HEAVIEST': high, 'WIDEST': of.payload.max_interval_share * (high - low)}


def lengths() -> dict[str, int]:
    """Lengths of what is kept of samples, by their macros."""
    return {'SIDE': steps.SIDE, 'WIDTH_STEPS': steps.WIDTH, 'SERIES': 2 * NEAR + 2,
            'PERIODS': PERIODS}


def clock_macros(of: EstimatorSetup) -> dict[str, float]:
    """Times, s, that are in double precision always: sums of ticks are compared with them."""
    return {'TICK_S': of.step_ns * 1e-9 * of.substeps, 'SETTLE_TIME': of.observer.settle_time}


def number_tables(of: EstimatorSetup, observer: HydraulicObserver) -> dict[str, Iterable[Any]]:
    """Arrays by name; rows of two numbers are pairs."""
    machine, model, p = of.machine, observer.model, of.machine.parameters
    measured, some = model.measured, np.flatnonzero(p.stddev)
    _, start, numbers = started(of, observer)
    bounds = StateBounds(machine, observer.names, of.observer)
    tables = {
        'OBSERVER_NUMBERS': numbers, 'SCALE': model.scale, 'START': start,
        'START_STDDEV': initial(machine, observer.model, of.observer, np.zeros(len(machine.commands)))[1],
        'STDDEV': np.sqrt(variances(machine)), 'RESOLUTION': [item.sensor.resolution for item in machine.all_channels],
        'ENDS': bounds.ends,
        'OFFSET': [item.offset for item in measured], 'GAIN': [item.gain for item in measured],
        'ZERO': [item.zero for item in measured], **_ends(machine, of.observer)}
    if not of.joint:
        tables |= {'GATES': [*gate_numbers(machine, of.payload), machine.payload_data.limits[0]],
                   'NUMBER_VARIANCE': [0.0, *p.stddev[some] ** 2], 'STUDENT': student_coefficients()}
    else:
        tables['RANGE'] = machine.range
    if not of.joint or machine.system.dependent:
        tables['NUMBERS'] = p.mean
    if machine.system.dependent:
        start = machine.model.start.q
        tables |= {'START_Z': start[machine.model.z], 'START_DEPENDENT': start[machine.system.dependent]}
    return tables


def place_tables(of: EstimatorSetup, observer: HydraulicObserver) -> dict[str, list[int]]:
    """Places by name: the entry of the state that a channel measures and of a valve's spool, -1: none."""
    names, channels = observer.names, of.machine.channels
    pairs = [(channels.index(own), channels.index(other)) for pair in pressure_pairs(of.machine).values()
             for own, other in (pair, pair[::-1])]
    return {'PARTNER': [place for pair in pairs for place in pair],
            'ENTRY': [-1 if item.index is None else item.index for item in observer.model.measured],
            'SPOOL': [names.index(f'spool/{v}') if f'spool/{v}' in names else -1 for v in of.machine.modelled_valves],
            'OPENS': [int(name.partition('/')[0] in ('velocity', 'acceleration', 'flow')) for name in names],
            'SHOWN': [int(f'position/{name}' in of.machine.channels) for name in of.machine.coordinates]}


def started(of: EstimatorSetup, observer: HydraulicObserver) -> tuple[ca.Function, np.ndarray, np.ndarray]:
    """Step of the observer, the packed state that starts where nothing is measured, and the numbers of a step."""
    observer.start(np.full(len(observer.channels), np.nan), np.zeros(observer.model.U.numel()))
    found = observer.step(of.step)
    observer.reset()
    return found


def _ends(machine: Machine, settings: ObserverSettings) -> dict[str, np.ndarray]:
    """Of each channel the samples beyond which it measures nothing, and how fast it may move; 0: it may jump."""
    limits, count = machine_ends(machine), len(machine.channels)
    found = {name: np.full(count, value) for name, value in (
        ('VACUUM', -inf), ('LOWEST', -inf), ('HIGHEST', inf), ('NEAREST', -inf), ('FARTHEST', inf), ('FASTEST', 0.0),
        ('NOISE', 0.0))}
    for fault, low, high in ((Fault.VACUUM, 'VACUUM', None), (Fault.SATURATED, 'LOWEST', 'HIGHEST'),
                             (Fault.FAR, 'NEAREST', 'FARTHEST')):
        for place, *ends in limits[fault]:
            found[low][place] = ends[0]
            if high:
                found[high][place] = ends[1]
    for place, speed, noise in StepCheck(machine).limits(settings):
        found['FASTEST'][place], found['NOISE'][place] = speed, noise
    return found
