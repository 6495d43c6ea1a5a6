# SPDX-License-Identifier: Apache-2.0
"""``Observer``: any filter at work on a mechanism, ours by its name or one of your own: what that must have, and the
equations that it gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ..compiled import Kernel
from ..dynamics.model import Model
from ..errors import DivergenceError, PositionProblemError, SettingError, check_choice, refuse_options
from ..filters.filters import OF_MACHINES, START
from ..filters.linkage_settings import LinkageSettings
from ..filters.observer import check_even
from ..filters.parts.problem import problem
from ..filters.sigma_filter import closed, moved, rated, sensed
from ..machine import Machine
from ..monitor.mechanism import ObservedCoordinates
from ..offline.advice import advice
from ..offline.filtered_motion import wrong_units
from ..offline.motion_estimate import MotionEstimate
from ..settings import GATE
from ..streams.start import first_pose, moved_to, start_stddev
from .checked import checked
from .load import Loadable, loaded, model_of
from .samples import Samples

if TYPE_CHECKING:
    from .our_filter import MachineFilter, OurFilter

Estimator = str | Callable[..., 'FilterProtocol']
Independent = Mapping[str, float] | Sequence[float]
Gaussian = tuple[np.ndarray, np.ndarray]


class Observer:
    """Filter ``estimator`` of a mechanism (a name, a path, or what ``load`` gave) with some of its sensors.

    ``estimator``: a name of ``filters.filters.FILTERS``, or a class of your own, called with ``Equations``
    and the ``options`` (docs/your_own_filter.md). ``sensors``: names, default all of the file. Of ours: ``noises`` by
    name, each a number or one per independent coordinate (default ``filters.filters``; ``tune`` finds
    better ones), ``gate``: probability beyond which an innovation is left out (1: none is), ``options`` of the filter.
    The estimates of ours have a ``status`` and ``warnings``, and recover, as those of ``mbse_ros.estimate`` do.
    ``stddev`` (s,) of the sensors replaces the file's. ``channels`` (s,): what the columns of measurements are.
    Of a machine with hydraulics ``'hydraulic'`` is the filter of ``mbse_ros.estimate``, with all its sensors, and
    ``'hydraulic_errorEKF_FE'`` another one; inputs are the commands at these times, V, ``noises`` and ``options`` any
    of ``ObserverSettings``. Raises SettingError.

    >>> motion = simulate('four_bar', 2.0, sensors=['encoder'])
    >>> Observer('four_bar', 'UKF', ['encoder']).run(motion.samples).mean.shape     # theta, its rate
    (400, 2)
    >>> lift = simulate('patu655_lift', 1.0)
    >>> bool(Observer('patu655_lift', 'hydraulic').run(lift.samples).status[-1] == 'ok')
    True
    """

    core: OurFilter | OwnFilter | MachineFilter
    machine: Machine | None

    @checked
    def __init__(self, model: Loadable, estimator: Estimator = 'errorEKF_FE', sensors: Sequence[str] | None = None, *,
                 noises: Mapping[str, float | Sequence[float] | np.ndarray] | None = None,
                 stddev: Sequence[float] | None = None, gate: float = GATE, backend: str = 'auto',
                 **options: object) -> None:
        self._started, self.machine = False, None
        self.estimator = estimator if isinstance(estimator, str) else getattr(estimator, '__name__', str(estimator))
        if isinstance(estimator, str) and estimator in OF_MACHINES and isinstance(machine := loaded(model), Machine):
            from .our_filter import MachineFilter  # here, because it takes its time to import
            refuse_options('a mechanism', {'sensors': sensors, 'stddev': stddev})
            settings = {'estimator': estimator, **options, **(noises or {}), **({} if gate == GATE else {'gate': gate})}
            self.machine, self.model, self.core = machine, machine.model, MachineFilter(machine, settings, backend)
            self.sensors, self.channels = tuple(machine.description.sensors), self.core.channels
            self.names, self._inputs = self.core.names, machine.commands
            return
        self.model = model_of(model)
        self._inputs = tuple(f'input/{name}' for name in self.model.inputs)
        self.sensors = tuple(self.model.description.mechanical_sensors if sensors is None else sensors)
        if not self.sensors:
            raise SettingError('sensors', [], f'a sensor or more; {self.model.description.name} has '
                               + (', '.join(self.model.description.mechanical_sensors) or 'none in its file'))
        if isinstance(estimator, str):
            from .our_filter import OurFilter  # here, because it takes its time to import
            self.core = OurFilter(self.model, estimator, self.sensors, noises, stddev, gate, backend, options)
        else:
            if noises is not None or gate != GATE:
                raise SettingError('noises' if noises is not None else 'gate', noises or gate,
                                   'no such option here: a filter of your own gets them as its own options')
            self.core = OwnFilter(Equations(self.model, self.sensors, stddev, backend), estimator, options)
        self.channels, self.names = self.core.channels, self.core.names

    @checked
    def start(self, z: Independent | None = None, zd: Independent | None = None,
              stddev: float | Sequence[float] | None = None) -> Observer:
        """Forget, and start at independent coordinates (g,), m or rad, and their velocities (g,), default the file's,
        as numbers or by the names of the coordinates; ``stddev`` of the state's entries (or one for all; default 5
        degrees and so on). Gives the observer itself.

        Raises SettingError for a wrong shape, PositionProblemError where the mechanism cannot be there.
        """
        if self.machine is not None:
            refuse_options('a mechanism: a machine starts from its first samples', {'z': z, 'zd': zd, 'stddev': stddev})
        if stddev is not None:
            spread = np.asarray(stddev, dtype=float)
            if spread.shape not in ((), (len(self.names),)) or not (np.isfinite(spread) & (spread >= 0)).all():
                raise SettingError('stddev', stddev, f'a number from 0 up, or one for each of {", ".join(self.names)}')
        model = self.model
        q, qd = model.start.q, model.start.qd
        if z is not None:
            wanted = _checked('z', z, model.start.q[model.z], model.independent)
            found = moved_to(model, dict(zip(model.z, wanted.tolist())))
            if found is None:
                raise PositionProblemError(np.nan, 0, wanted, 'out of reach of small steps from the start of the file')
            q = found
        if z is not None or zd is not None:
            rates = model.start.qd[model.z]
            rates = rates if zd is None else _checked('zd', zd, rates, model.independent)
            qd = model.partition().velocity(q, rates, 0.0)
        self.core.start(q, qd, stddev)
        self._started = True
        return self

    def reset(self) -> Observer:
        """Forget the state and ``start``: the next log starts where its sensors say. Gives the observer itself."""
        self.start()
        self._started = False
        return self

    def run(self, t: Samples | Sequence[float] | np.ndarray | None, measured: np.ndarray | None = None,
            inputs: np.ndarray | None = None) -> MotionEstimate:
        """Estimate over a log: ``Samples``, or times (k,), s, measurements (k, s) of the ``channels``, NaN where
        missing, and inputs (k, u) over the step before each, default 0.

        Times are even; the first lies one step after the start. The state stays: the next call goes on from it, also
        with a single sample. Without ``start`` a log of two samples or more starts where its sensors say, and the
        result is that of ``mbse_ros.estimate``, bit for bit; times that go back begin another log. A filter of your own
        starts there, too, and runs on. A single first sample, or a mechanism with drivers, starts as the file says.
        Raises SettingError for what does not fit, DivergenceError with the step.
        """
        if isinstance(t, Samples):
            measured, inputs, t = t.columns(self.channels), self.inputs(t), t.t
        if t is None or measured is None:
            raise SettingError('samples', None, 'Samples, or times and measurements (a simulation has them where its '
                                                'mechanism has sensors)')
        times, y = np.atleast_1d(np.asarray(t, dtype=float)), np.asarray(measured, dtype=float)
        y = y.reshape(len(times), -1) if y.size == len(times) * len(self.channels) else y
        if y.shape != (len(times), len(self.channels)):
            raise SettingError('measured', y.shape, f'{(len(times), len(self.channels))}: {", ".join(self.channels)}')
        check_even(times)
        u = np.zeros((len(times), len(self._inputs))) if inputs is None else np.asarray(inputs, dtype=float)
        if u.shape != (len(times), len(self._inputs)):
            raise SettingError('inputs', u.shape, f'{(len(times), len(self._inputs))}: '
                               + (', '.join(name.removeprefix('input/') for name in self._inputs)
                                  or 'the mechanism has none'))
        if not self._started:
            found = self.core.follow(times, y, u)
            if found is not None:
                return found
            self.start()
        return self.core.run(times, y, u)

    def inputs(self, samples: Samples) -> np.ndarray:
        """Inputs (k, u) of samples; 0 where they have none."""
        columns = [samples[name] if name in samples.names else np.zeros(len(samples.t)) for name in self._inputs]
        return np.nan_to_num(np.column_stack(columns)) if columns else np.zeros((len(samples.t), 0))


def _checked(what: str, values: Independent, usual: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Numbers (g,), ``usual`` where a mapping has none."""
    if isinstance(values, Mapping):
        for name in values:
            check_choice(what, name, names)
        values = [values.get(name, number) for name, number in zip(names, usual.tolist())]
    try:
        array = np.atleast_1d(np.asarray(values, dtype=float))
    except (TypeError, ValueError):
        array = np.array([np.nan])
    if array.shape != usual.shape or not np.isfinite(array).all():
        raise SettingError(what, values, f'{len(usual)} finite numbers: {", ".join(names)}')
    return array


class FilterProtocol(Protocol):
    """What ``Observer`` asks of a filter: two functions of a mean (l,) and a covariance (l, l); NumPy, SI.

    The mean begins with the independent coordinates and their velocities, ``[z, zd]`` (2g,); what follows is yours.
    A class of it is made with ``Equations`` first. ``names`` (l,) of all entries: an attribute, needed only where
    there are more than ``equations.names``. Nothing else is asked: no base class, no registration.
    """

    def predict(self, mean: np.ndarray, covariance: np.ndarray, u: np.ndarray, t: float, dt: float) -> Gaussian:
        """Mean and covariance at time ``t``, s, one step ``dt`` later, with inputs ``u`` over the step."""

    def correct(self, mean: np.ndarray, covariance: np.ndarray, y: np.ndarray, u: np.ndarray, t: float
                ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Mean and covariance with the measurements ``y`` (s,), NaN where missing; then the innovation (s,) and its
        covariance (s, s), for which any value will do where a sample is missing. Not called where all are missing."""


class Equations:
    """A mechanism for filters in NumPy: the state is ``x = [z, zd]`` (2g,) of the independent coordinates, SI.

    ``names`` (2g,) of its entries; ``channels`` (s,) of the sensors, their ``stddev`` (s,), and whether they are
    ``angular`` (s,), so that differences wrap at +-pi. The other coordinates follow by the constraints, on the branch
    of the last start. Raises SettingError.
    """

    def __init__(self, model: Model, sensors: Sequence[str], stddev: Sequence[float] | None = None,
                 backend: str = 'auto') -> None:
        of = problem(model, sensors)
        if not of.g:
            raise SettingError('mechanism', model.description.name, 'one that can move')
        self.model, self.problem, self.channels, self.angular = model, of, of.channels, np.array(of.angular, dtype=bool)
        self.stddev = np.array(of.stddev if stddev is None else stddev, dtype=float)
        if self.stddev.shape != of.stddev.shape or not np.all(self.stddev > 0):
            raise SettingError('stddev', list(self.stddev), f'positive numbers for {", ".join(of.channels)}')
        self.names = tuple(f'{kind}/{name}' for kind in ('position', 'velocity') for name in model.independent)
        functions = moved(of, 'trapezoid'), sensed(of), closed(of, 2 * of.g), rated(of)
        self._move, self._sense, self._close, self._rate = (Kernel(function, backend) for function in functions)
        self._size, self._q = 2 * of.g, model.start.q

    @property
    def _p(self) -> np.ndarray:
        return np.asarray(self.model.parameters)

    def at(self, q: np.ndarray) -> None:
        """Take up the branch of these coordinates (n,)."""
        self._q = np.asarray(q, dtype=float)

    def step(self, x: np.ndarray, u: np.ndarray, t: float, dt: float) -> np.ndarray:
        """State (2g,) at ``t``, from ``x`` at ``t - dt``, by the trapezoidal rule; u: inputs (k,) over the step."""
        return self._move(self._q, x, u, [t], [dt], self._p)[1]

    def sensors(self, x: np.ndarray, u: np.ndarray, t: float) -> np.ndarray:
        """What the sensors would give (s,) at a state, without noise."""
        return self._sense(self._q, x, u, [t], self._p)[0]

    def motion(self, x: np.ndarray, u: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Coordinates, velocities and accelerations (n,) of the whole mechanism at a state."""
        self._q = self._close(self._q, x, [t], self._p)[0]
        qd, qdd, _ = self._rate(self._q, x, u, [t], self._p)
        return self._q, qd, qdd

    def difference(self, y: np.ndarray, h: np.ndarray) -> np.ndarray:
        """``y - h`` (..., s), of angles the shorter way round."""
        error = np.asarray(y) - h
        return np.where(self.angular, (error + np.pi) % (2 * np.pi) - np.pi, error)


class OwnFilter:
    """Runs a filter of this protocol over logs, as ``Observer`` runs ours."""

    def __init__(self, equations: Equations, make: Callable[..., FilterProtocol], options: dict[str, object]) -> None:
        self.equations, self.filter = equations, make(equations, **options)
        for name in ('predict', 'correct'):
            if not callable(getattr(self.filter, name, None)):
                raise SettingError('estimator', type(self.filter).__name__,
                                   f'a class with the functions predict and correct; it has no {name}')
        self.channels = equations.channels
        self.names = tuple(getattr(self.filter, 'names', equations.names))
        if self.names[:len(equations.names)] != equations.names:
            raise SettingError('names', self.names, f'entries that begin with {", ".join(equations.names)}')
        self._now: Gaussian | None = None
        self._t = 0.0

    def follow(self, t: np.ndarray, measured: np.ndarray, inputs: np.ndarray) -> MotionEstimate | None:
        """Over a log, from where the first samples say, as ``mbse_ros.estimate`` starts; None where they cannot."""
        model, g, settings = self.equations.model, len(self.equations.model.z), LinkageSettings()
        if self._now is None:
            if len(t) < 2 or not np.isfinite(measured[0]).any() or model.description.drivers:
                return None
            observed = ObservedCoordinates(self.equations.problem)
            q = first_pose(observed, measured[0], self.equations.stddev, model.start.q)
            seen = [name for name, shown in zip(model.independent, observed.shown(q).tolist()) if shown]
            spread = np.full(len(self.names), START)
            spread[:2 * g] = start_stddev(self.equations.names, settings, seen)
            self.start(q, model.start.qd, spread.tolist())
            self._t = float(t[0] - (t[1] - t[0]))
        return self.run(t, measured, inputs)

    def start(self, q: np.ndarray, qd: np.ndarray, stddev: float | Sequence[float] | None) -> None:
        """Start at coordinates and velocities (n,)."""
        z, size = self.equations.model.z, len(self.names)
        own = np.concatenate([q[z], qd[z]])
        spread = np.broadcast_to(np.asarray(START if stddev is None else stddev, dtype=float), (size,))
        self.equations.at(q)
        self._now, self._t = (np.concatenate([own, np.zeros(size - len(own))]), np.diag(spread ** 2)), 0.0

    def run(self, t: np.ndarray, measured: np.ndarray, inputs: np.ndarray) -> MotionEstimate:
        """Over a log; raises DivergenceError with the step."""
        dt = float(t[1] - t[0]) if len(t) > 1 else float(t[0]) - self._t
        rows = [self._row(k, *row, dt) for k, row in enumerate(zip(t.tolist(), measured, inputs))]
        self._t = float(t[-1])
        mean, P, q, qd, qdd, innovation, spread = (np.array(column) for column in zip(*rows))
        here, stddev = np.isfinite(measured), np.sqrt(np.maximum(np.diagonal(P, axis1=1, axis2=2), 0.0))
        of, name = self.equations.model, type(self.filter).__name__
        tried = advice(self.channels, t, np.where(here, innovation, np.nan), spread, here)
        warnings = (*wrong_units(of, self.channels, t, measured), *tried) if tried else ()
        return MotionEstimate(of, name, t, self.names, mean, stddev, q, qd, qdd, of.independent,
                              np.zeros((len(t), len(of.z))), self.channels, np.where(here, innovation, np.nan), spread,
                              here, warnings=warnings, covariances=P)

    def _row(self, k: int, t: float, y: np.ndarray, u: np.ndarray, dt: float) -> tuple[np.ndarray, ...]:
        """One step, and what is kept of it."""
        s, g = len(self.channels), len(self.equations.model.z)
        assert self._now is not None
        mean, P = self._checked(k, t, *self.filter.predict(*self._now, u, t, dt))
        innovation, S = np.full(s, np.nan), np.full((s, s), np.nan)
        if np.isfinite(y).any():
            mean, P, innovation, S = self.filter.correct(mean, P, y, u, t)
            mean, P = self._checked(k, t, mean, P)
        self._now = mean, P
        spread = np.sqrt(np.diagonal(np.reshape(S, (s, s))))
        motion = self.equations.motion(mean[:2 * g], u, t)
        return mean, P, *motion, innovation, spread

    def _checked(self, k: int, t: float, mean: np.ndarray, P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of the right shapes and finite."""
        size, what = len(self.names), type(self.filter).__name__
        mean, P = np.asarray(mean, dtype=float), np.asarray(P, dtype=float)
        if mean.shape != (size,) or P.shape != (size, size):
            raise SettingError(what, (mean.shape, P.shape), f'a mean {(size,)} and a covariance {(size, size)}')
        if not (np.isfinite(mean).all() and np.isfinite(P).all()):
            raise DivergenceError(what, k, f'at t = {t:.6g} s')
        return mean, P
