# SPDX-License-Identifier: Apache-2.0
"""``simulate``: the true motion of a mechanism or a machine, and what its sensors say of it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..bags.channels import UNITS
from ..description.coordinate_units import measured_unit
from ..dynamics.model import Model
from ..errors import SettingError, check_positive, did_you_mean, refuse_options
from ..machine import Machine
from ..offline.motion_estimate import channel_units
from ..progress import lengthy
from ..report.result import Written
from ..simulation.truth import KINDS
from .checked import checked
from .load import Loadable, loaded
from .results.simulations import MachineSimulation, MotionSimulation
from .samples import Samples

if TYPE_CHECKING:
    from ..dynamics.motion import Motion
    from ..simulation.crane import SensorFrame

OWN = 'machine', 'seed', 'rate', 'duration'     # arguments of working_machine that simulate itself has
LONGEST = 10_000_000        # steps
Inputs = Callable[[float, np.ndarray, np.ndarray], np.ndarray]


@checked
def simulate(model: Loadable, duration: float | None = None, dt: float = 1e-3, scheme: str | None = None, *,
             formulation: str = 'matrix_r', sensors: Sequence[str] | None = None, rate: float | None = None,
             noise: float = 1.0, seed: int = 1, inputs: Inputs | None = None, options: dict[str, Any] | None = None,
             stop: bool = True, **work: Any) -> MotionSimulation | MachineSimulation:
    """Simulate; the same arguments give the same numbers.

    A mechanism: over ``duration``, s (default 5), in steps of ``dt``, s, by a ``scheme`` of
    ``dynamics.integrators.INTEGRATORS`` (default 'exponential', in all coordinates 'rk4') and a ``formulation`` of
    ``dynamics.formulations.by_name.FORMULATIONS`` or 'semi_recursive', with their ``options``; ``inputs``: function
    (t, q, qd) -> u (k,), default zero, or what holds the start where its file says ``held``. Its
    ``sensors`` (names; default all of the file, of a plain motion ``[]``) are sampled at ``rate``, Hz (default 200),
    from 1/rate on, with ``noise`` times the noise of the file. ``stop=False``: a motion that fails on the way is given
    up to there, with its ``motion.failure``.

    A machine: ``payload`` kg, of several {name: kg}, ``cycle`` ('lift_hold_lower', 'boom', 'random', 'dig'),
    ``ramp`` s, ``base_roll``, ``base_pitch`` deg, ``soil`` N, ``swing`` deg, ``physics`` by name, as of
    ``simulation.work.working_machine``; ``rate`` (default 100); ``duration``, s: the cycle again and again for so
    long, or its beginning (default: the cycle once).

    Raises SettingError, and what the integrator raises: SingularConfigurationError, DivergenceError.

    >>> simulate('four_bar', 2.0, sensors=['encoder'], rate=100.0).samples.values.shape
    (200, 1)
    >>> float(simulate('patu655_lift', payload=200.0, duration=8.0).payload[-1])
    200.0
    """
    item = loaded(model)
    _check_known(work)
    if seed < 0:
        raise SettingError('seed', seed, 'a whole number from 0')
    if noise < 0:
        raise SettingError('noise', noise, 'a number from 0 up, of standard deviations')
    if rate is not None:
        check_positive(rate=rate)
    if isinstance(item, Machine):
        refuse_options('a mechanism', {
            'dt': None if dt == 1e-3 else dt, 'scheme': scheme,
            'formulation': None if formulation == 'matrix_r' else formulation, 'sensors': sensors, 'inputs': inputs,
            'options': options, 'noise': None if noise == 1.0 else noise,
            'stop': None if stop else stop})
        return _machine(item, duration, rate or 100.0, seed, work)
    refuse_options('a machine', work)
    return simulate_motion(item, duration, dt, scheme, formulation, sensors, rate, noise, seed, inputs, options, stop)


@lengthy('simulating')
def simulate_motion(model: Model, duration: float | None = None, dt: float = 1e-3, scheme: str | None = None,
                    formulation: str = 'matrix_r', sensors: Sequence[str] | None = None, rate: float | None = None,
                    noise: float = 1.0, seed: int = 1, inputs: Inputs | None = None,
                    options: dict[str, Any] | None = None, stop: bool = True) -> MotionSimulation:
    """Of a mechanism."""
    from ..dynamics.motion import default_scheme  # here, because they take their time to import
    from ..dynamics.motion import simulate as integrate
    from ..dynamics.singular import check_start
    from ..simulation.linkage import holding_inputs
    length, options, begin = 5.0 if duration is None else duration, options or {}, time.perf_counter()
    check_steps(length, dt)
    check_start(model)
    scheme = scheme or default_scheme(model, formulation)
    if inputs is None and model.description.initial.held:
        u = holding_inputs(model)
        inputs = lambda t, q, qd: u     # noqa: E731
    motion = integrate(model, length, dt, scheme, inputs=inputs, formulation=formulation, stop=stop, **options)
    seconds = time.perf_counter() - begin
    chosen = tuple(model.description.mechanical_sensors) if sensors is None else tuple(sensors)
    samples = _sampled(model, motion, chosen, rate or 200.0, noise, seed) if chosen else None
    if samples is not None and inputs is not None:
        samples = _with_inputs(model, motion, samples)
    asked = {'scheme': scheme, 'formulation': formulation, 'order': options.get('order'), 'dt_s': dt,
             'duration_s': length}
    return MotionSimulation(model, motion, samples, asked, seconds)


def check_steps(duration: float, dt: float) -> None:
    """Raise SettingError for what are no steps, or too many."""
    for name, value in (('dt', dt), ('duration', duration)):
        if not (math.isfinite(value) and value > 0):
            raise SettingError(name, value, 'a number of seconds above 0')
    if dt > duration:
        raise SettingError('dt', dt, f'a step within the duration, {duration:g} s')
    if duration / dt > LONGEST:
        raise SettingError('dt', dt, f'at most {LONGEST} steps over the duration: a longer step')


def _sampled(model: Model, motion: Motion, sensors: tuple[str, ...], rate: float, noise: float, seed: int) -> Samples:
    """Samples at multiples of the period."""
    from ..dynamics.sensor_equations import chosen_sensors
    from ..simulation.three_simulations import noisy, sensor_outputs
    every = sample_steps(motion.t, rate)
    rows = np.arange(every, len(motion.t), every)
    if not rows.size:
        raise SettingError('rate', rate, f'a rate that gives a sample within {motion.t[-1]:g} s')
    of = chosen_sensors(model, sensors)
    values = noisy(sensor_outputs(model, sensors, motion, rows), noise * of.stddev, seed)
    values = np.where(of.angular, (values + np.pi) % (2 * np.pi) - np.pi, values)
    return Samples(motion.t[rows], of.channels, values, channel_units(model, of.channels))


def _with_inputs(model: Model, motion: Motion, samples: Samples) -> Samples:
    """The samples and the mean of each input over the step before."""
    every = int(np.searchsorted(motion.t, samples.t[0] * (1 - 1e-9)))
    held = motion.inputs[:every * len(samples.t)].reshape(len(samples.t), every, -1).mean(axis=1)
    names = (*samples.names, *(f'input/{name}' for name in model.inputs))
    return Samples(samples.t, names, np.hstack([samples.values, held]), channel_units(model, names))


def sample_steps(t: np.ndarray, rate: float) -> int:
    """Steps of a motion in one period of the sensors; raises SettingError where they do not fit."""
    dt = float(t[1] - t[0]) if len(t) > 1 else np.nan
    steps = round(1.0 / (rate * dt)) if rate > 0 and np.isfinite(dt) else 0
    if steps < 1 or abs(steps * dt * rate - 1.0) > 1e-6:
        raise SettingError('rate', rate, f'Hz, one sample every whole number of steps of {dt:g} s')
    return steps


def _of_work() -> list[str]:
    """Names of the options that a machine has in addition."""
    from ..simulation.work import working_machine  # here, as it takes its time to import
    return [name for name in signature(working_machine).parameters if name not in OWN]


def _check_known(options: Mapping[str, Any]) -> None:
    """Raise SettingError for the first option that neither kind has."""
    known = _of_work() if options else []
    every = [*(name for name in signature(simulate).parameters if name not in ('model', 'work')), *known]
    for name, value in options.items():
        if name not in known:
            raise SettingError(name, value, f'options of simulate: {", ".join(every)}{did_you_mean(name, every)}')


def _machine(machine: Machine, duration: float | None, rate: float, seed: int, work: dict[str, Any]
             ) -> MachineSimulation:
    from ..simulation.work import frame_count, working_machine
    try:
        crane = checked(working_machine)(machine, seed=seed, rate=rate, duration=duration, **work)
    except TypeError as error:
        raise SettingError('options', sorted(work), ', '.join(_of_work())) from error
    frames = tuple(crane.frame() for _ in range(frame_count(crane, duration)))
    samples = _machine_samples(machine, frames)
    truth = {kind: np.array([getattr(frame, kind) for frame in frames]) for kind in (*KINDS, 'payload')}
    t = samples.t
    loads = {name: mass * np.array([crane.cycle.load_at(now) for now in t]) for name, mass in crane.payloads.items()}
    return MachineSimulation(t, machine, frames=frames, samples=samples, payloads=loads, **truth)


def simulate_bag(machine: Machine, output: str | Path, storage: str = 'mcap', seed: int = 1, rate: float = 100.0,
                 duration: float | None = None, tracked: Callable[[range, str, int], Iterable[int]] | None = None,
                 **work: Any) -> Written:
    """Work of a machine as a bag, written as it goes; the same arguments, see ``simulate``, give the same bag.
    ``tracked`` shows how far it is. Raises SettingError, BagError."""
    from ..bags.writer import BagWriter, write_frame  # here, as it takes its time to import
    from ..simulation.work import frame_count, working_machine
    crane = working_machine(machine, seed=seed, rate=rate, duration=duration, **work)
    frames = range(frame_count(crane, duration))
    with BagWriter(output, storage, frame=machine.name) as writer:
        for _ in frames if tracked is None else tracked(frames, f'simulating {machine.name}', len(frames)):
            write_frame(writer, machine, crane.frame())
    masses = crane.payloads or {'payload': crane.payload}
    said = ', '.join(f'{name} {mass:g} kg' for name, mass in masses.items())
    return Written((f'{duration or crane.cycle.duration:.1f} s at {rate:g} Hz, {said}'
                    f'{" at times" if len(crane.cycle.load) > 1 else ""}, seed {seed}',))


def _machine_samples(machine: Machine, frames: Sequence[SensorFrame]) -> Samples:
    from ..simulation.work import START_NS
    channels = {c.name: measured_unit(machine.description, c.sensor.name) for c in machine.all_channels}
    units = channels | dict.fromkeys(frames[0].commands, UNITS['command'][0])
    values = np.array([[*(f.samples[name] for name in channels), *f.commands.values()] for f in frames])
    return Samples(1e-9 * np.array([f.stamp_ns - START_NS for f in frames]), tuple(units), values, units, START_NS)
