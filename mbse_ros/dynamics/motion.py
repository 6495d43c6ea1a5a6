# SPDX-License-Identifier: Apache-2.0
"""``simulate``: the motion of a mechanism by any integrator, with its energies and its constraint violation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature

import numpy as np

from ..errors import MbseError, SettingError, check_choice
from .formulations.by_name import FORMULATIONS
from .integrators import INTEGRATORS
from .integrators.all_coordinates import all_coordinates
from .integrators.task import Inputs, MotionRecord, MotionTask
from .model import Model, State
from .observation import observe
from .singular import check_regular

LOOSE = 0.01        # of the largest coordinate at the start (later angles wind up): violation worth a warning
REDUCED = 'matrix_r', 'semi_recursive'      # formulations in independent coordinates, with compiled equations


@dataclass(frozen=True)
class Motion:
    """Motion of a mechanism at the times ``t`` (k,), s; SI.

    ``q, qd, qdd`` (k, n) of the coordinates ``names`` (n,); ``multipliers`` (k, m) of the constraints (zero for those
    that the scheme leaves out as redundant); ``inputs`` (k, i); ``kinetic``, ``potential`` (k,) energies, J; ``power``
    (k,), W, of dampers, loads, inputs and drivers, and ``work`` (k,), J, its integral; ``violation``,
    ``violation_rate`` (k,): max |Phi| and max |dPhi/dt|. ``choices``: times at which independent coordinates were
    chosen, and their names (none for schemes in all coordinates); ``singular_times`` of singular positions passed by
    inertia; ``warnings``; ``evaluations`` of the state equations (of ALI3P: iterations); ``failure``: the error that
    ended the motion early, where ``simulate`` was asked not to raise it.
    """

    names: tuple[str, ...]
    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    multipliers: np.ndarray
    inputs: np.ndarray
    kinetic: np.ndarray
    potential: np.ndarray
    power: np.ndarray
    work: np.ndarray
    violation: np.ndarray
    violation_rate: np.ndarray
    choices: tuple[tuple[float, tuple[str, ...]], ...]
    singular_times: tuple[float, ...]
    warnings: tuple[str, ...]
    evaluations: int
    failure: MbseError | None = None

    @property
    def energy(self) -> np.ndarray:
        """Kinetic and potential energy (k,), J."""
        return self.kinetic + self.potential

    @property
    def balance(self) -> np.ndarray:
        """``E - E(0) - work`` (k,), J: the error of the integration."""
        return self.energy - self.energy[0] - self.work

    def of(self, name: str, derivative: int = 0) -> np.ndarray:
        """A named coordinate (k,), or its first or second derivative by time; SettingError for an unknown name."""
        check_choice('coordinate', name, self.names)
        return (self.q, self.qd, self.qdd)[derivative][:, self.names.index(name)]

    def independent(self, t: float) -> tuple[str, ...]:
        """Names of the independent coordinates in use at a time, s."""
        return next((names for since, names in reversed(self.choices) if since <= t), ())

    def state(self, step: int = -1) -> State:
        """The state at a step, to go on from."""
        return State(self.q[step].copy(), self.qd[step].copy(), float(self.t[step]))


def simulate(model: Model, duration: float, dt: float, scheme: str = 'exponential', *, inputs: Inputs | None = None,
             formulation: str = 'matrix_r', independent: Sequence[str] | str | None = None, start: State | None = None,
             stop: bool = True, **options: object) -> Motion:
    """Motion of a model over ``duration``, s, in steps of ``dt``, s (which must divide it).

    ``scheme``: one of ``INTEGRATORS``; options: exponential ``order`` (0..4 or 'exact'), trapezoid ``tolerance``,
    ali3p ``penalty, tolerance``, dop853, radau and cvodes ``rtol, atol``. ``inputs``: function (t, q, qd) -> u (k,),
    read once a step by the explicit schemes, not by cvodes. ``formulation``: 'matrix_r' or 'semi_recursive', in
    independent coordinates, with any scheme (ali3p has its own); another one of ``by_name.FORMULATIONS``, with its
    options, in all coordinates, see ``integrators.all_coordinates``; so is matrix_r of a mechanism with non-holonomic
    constraints or friction of joints, its independent velocities chosen in each step. ``independent``: names of
    coordinates to keep; 'auto': chosen and re-chosen on the way; None: as the description says. ``start``: default the
    model's.
    ``stop=False``: a failure on the way ends the motion there and is kept in ``Motion.failure``.
    Raises SettingError, DescriptionError for a start at a singular position, SingularConfigurationError and
    PositionProblemError with the time in their texts, DivergenceError with the step.
    """
    check_choice('scheme', scheme, INTEGRATORS)
    check_choice('formulation', formulation, (*REDUCED, *(name for name in FORMULATIONS if name not in REDUCED)))
    first = model.start if start is None else start
    check_regular(model, first)
    times = first.t + dt * np.arange(step_count(duration, dt) + 1)
    task = MotionTask(model, first, times, dt, scheme, inputs, independent,
                      semi_recursive=formulation == 'semi_recursive')
    record, failure = MotionRecord.of(model, times), None
    integrate = _integrator(formulation, scheme, independent, options, is_reduced(model, formulation),
                            model.why_unreduced(formulation))
    try:
        integrate(task, record)
    except MbseError as error:
        if stop or record.last < 0:
            raise
        failure = error
    return _motion(model, record, failure)


def is_reduced(model: Model, formulation: str) -> bool:
    """Whether a formulation has independent coordinates; matrix-R of a model that is ``unreduced`` has independent
    velocities alone. Raises SettingError for semi_recursive of such a model."""
    names = [f'{section}.{name}' for section, found in model.unreduced.items() for name in found]
    if formulation == 'semi_recursive' and names:
        raise SettingError('formulation', formulation, f'{", ".join(FORMULATIONS)}: {", ".join(names)} cannot be in '
                           'equations of independent positions')
    return formulation in REDUCED and not names


def default_scheme(model: Model, formulation: str) -> str:
    """The scheme where none is asked for."""
    return 'exponential' if is_reduced(model, formulation) else 'rk4'


def _integrator(formulation: str, scheme: str, independent: Sequence[str] | str | None, options: dict[str, object],
                reduced: bool, why: str = '') -> Callable[[MotionTask, MotionRecord], None]:
    """What fills a record; raises SettingError for what does not go together; ``why``: not ``reduced``."""
    if not reduced:
        if independent is not None:
            raise SettingError('independent', independent, f'none: {formulation} has all coordinates{why}')
        return lambda task, record: all_coordinates(task, record, formulation, **options)
    if scheme == 'ali3p' and formulation != 'matrix_r':
        raise SettingError('formulation', formulation, 'none with ali3p, which is formulation and scheme in one')
    known = list(signature(INTEGRATORS[scheme]).parameters)[2:]
    if not set(options) <= set(known):
        raise SettingError('options', sorted(options), f'options of {scheme}: {", ".join(known) or "none"}')
    return partial(INTEGRATORS[scheme], **options)


def step_count(duration: float, dt: float) -> int:
    """Number of steps; SettingError where dt does not divide the duration."""
    if not (np.isfinite(duration) and np.isfinite(dt) and dt > 0 and duration >= 0):
        raise SettingError('duration, dt', (duration, dt), 'positive numbers, s')
    steps = round(duration / dt)
    if abs(steps * dt - duration) > 1e-9 * max(dt, duration):
        raise SettingError('dt', dt, f'a step that divides the duration {duration} s')
    return steps


def _motion(model: Model, record: MotionRecord, failure: MbseError | None) -> Motion:
    """What a record holds, with what follows from it."""
    filled = slice(0, record.last + 1)
    t, q, qd, qdd, lam, u = (getattr(record, name)[filled] for name in ('t', 'q', 'qd', 'qdd', 'lam', 'u'))
    seen = observe(model, t, q, qd, lam, u)
    work = record.work[filled] if record.has_work else trapezoids(t, seen['power'])
    away, size = float(seen['violation'].max(initial=0.0)), max(1.0, float(np.abs(q[0]).max(initial=0.0)))
    loose = () if away <= LOOSE * size else (f'the constraints are violated by up to {away:.3g}: a shorter step, or a '
                                             'stiffer penalty or smaller clearance',)
    return Motion(model.names, t, q, qd, qdd, lam, u, work=work, choices=tuple(record.choices),
                  singular_times=tuple(record.singular_times), warnings=(*record.warnings, *loose),
                  evaluations=record.evaluations, failure=failure, **seen)


def trapezoids(t: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Integral (n,) of values (n,) over t (n,) from its start to each instant, by trapezoids."""
    return np.concatenate([[0.0], np.cumsum(np.diff(t) * (values[1:] + values[:-1]) / 2.0)])
