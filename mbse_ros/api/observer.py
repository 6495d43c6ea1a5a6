# SPDX-License-Identifier: Apache-2.0
"""``Observer``: any filter at work on a mechanism, ours by its name or one of your own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import PositionProblemError, SettingError
from ..settings import GATE
from .load import Loadable, model_of
from .results.motion_estimate import MotionEstimate
from .samples import Samples

if TYPE_CHECKING:
    from .our_filter import OurFilter
    from .own_filter import FilterProtocol, OwnFilter

Estimator = str | Callable[..., 'FilterProtocol']
EVEN = 1e-6     # largest deviation of a step, as a share of it


class Observer:
    """Filter ``estimator`` of a mechanism (a name, a path, or what ``load`` gave) with some of its sensors.

    ``estimator``: a name of ``estimators.filters.filters.FILTERS``, or a class of your own, called with ``Equations``
    and the ``options`` (docs/your_own_filter.md). ``sensors``: names, default all of the file. Of ours: ``noises`` by
    name, each a number or one per independent coordinate (default ``estimators.filters.defaults``; ``tune`` finds
    better ones), ``gate``: probability beyond which an innovation is left out (1: none is), ``options`` of the filter.
    The estimates of ours have a ``status`` and ``warnings``, and recover, as those of ``mbse_ros.estimate`` do.
    ``stddev`` (s,) of the sensors replaces the file's. ``channels`` (s,): what the columns of measurements are.
    Raises SettingError.

    >>> motion = simulate('four_bar', 2.0, sensors=['encoder'])
    >>> Observer('four_bar', 'UKF', ['encoder']).run(motion.samples).mean.shape     # theta, its rate
    (400, 2)
    """

    core: OurFilter | OwnFilter

    def __init__(self, model: Loadable, estimator: Estimator = 'errorEKF_FE', sensors: Sequence[str] | None = None, *,
                 noises: Mapping[str, float | Sequence[float] | np.ndarray] | None = None,
                 stddev: Sequence[float] | None = None, gate: float = GATE, backend: str = 'auto',
                 **options: object) -> None:
        self.model = model_of(model)
        if isinstance(sensors, str):
            raise SettingError('sensors', sensors, f'a list of names, such as [{sensors!r}]')
        self.sensors = tuple(self.model.description.mechanical_sensors if sensors is None else sensors)
        if not self.sensors:
            raise SettingError('sensors', [], f'a sensor or more; {self.model.description.name} has '
                               + (', '.join(self.model.description.mechanical_sensors) or 'none in its file'))
        if isinstance(estimator, str):
            from .our_filter import OurFilter  # here, because it takes its time to import
            self.core = OurFilter(self.model, estimator, self.sensors, noises, stddev, gate, backend, options)
        else:
            from .own_filter import Equations, OwnFilter
            if noises is not None or gate != GATE:
                raise SettingError('noises' if noises is not None else 'gate', noises or gate,
                                   'no such option here: a filter of your own gets them as its own options')
            self.core = OwnFilter(Equations(self.model, self.sensors, stddev, backend), estimator, options)
        self.channels, self.names = self.core.channels, self.core.names
        self._started = False

    def start(self, z: Sequence[float] | None = None, zd: Sequence[float] | None = None,
              stddev: float | Sequence[float] | None = None) -> Observer:
        """Forget, and start at independent coordinates (g,), m or rad, and their velocities (g,), default the file's;
        ``stddev`` of the state's entries (or one for all; default 5 degrees and so on). Gives the observer itself.

        Raises SettingError for a wrong shape, PositionProblemError where the mechanism cannot be there.
        """
        from ..streams.start import moved_to
        model, g = self.model, len(self.model.z)
        q, qd = model.start.q, model.start.qd
        if z is not None:
            wanted = _checked('z', z, g, model.independent)
            found = moved_to(model, dict(zip(model.z, wanted.tolist())))
            if found is None:
                raise PositionProblemError(np.nan, 0, wanted, 'out of reach of small steps from the start of the file')
            q = found
        if z is not None or zd is not None:
            rates = model.start.qd[model.z] if zd is None else _checked('zd', zd, g, model.independent)
            qd = model.partition().velocity(q, rates, 0.0)
        self.core.start(q, qd, stddev)
        self._started = True
        return self

    def run(self, t: Samples | Sequence[float] | np.ndarray | None, measured: np.ndarray | None = None,
            inputs: np.ndarray | None = None) -> MotionEstimate:
        """Estimate over a log: ``Samples``, or times (k,), s, measurements (k, s) of the ``channels``, NaN where
        missing, and inputs (k, u) over the step before each, default 0.

        Times are even; the first lies one step after the start. The state stays: the next call goes on from it, also
        with a single sample. Without ``start`` before it the first call starts as the file says. Raises SettingError
        for what does not fit, DivergenceError with the step.
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
        _check_even(times)
        u = np.zeros((len(times), len(self.model.inputs))) if inputs is None else np.asarray(inputs, dtype=float)
        if u.shape != (len(times), len(self.model.inputs)):
            raise SettingError('inputs', u.shape, f'{(len(times), len(self.model.inputs))}: '
                               + (', '.join(self.model.inputs) or 'the mechanism has none'))
        if not self._started:
            self.start()
        return self.core.run(times, y, u)

    def inputs(self, samples: Samples) -> np.ndarray:
        """Inputs (k, u) of samples; 0 where they have none."""
        columns = [samples[f'input/{name}'] if f'input/{name}' in samples.names else np.zeros(len(samples.t))
                   for name in self.model.inputs]
        return np.nan_to_num(np.column_stack(columns)) if columns else np.zeros((len(samples.t), 0))


def _checked(what: str, values: Sequence[float], size: int, names: Sequence[str]) -> np.ndarray:
    array = np.atleast_1d(np.asarray(values, dtype=float))
    if array.shape != (size,) or not np.isfinite(array).all():
        raise SettingError(what, array.tolist(), f'{size} finite numbers: {", ".join(names)}')
    return array


def _check_even(t: np.ndarray) -> None:
    steps = np.diff(t)
    if t.ndim != 1 or not t.size or not np.isfinite(t).all() or steps.size and not (
            steps[0] > 0 and np.max(np.abs(steps - steps[0])) <= EVEN * steps[0]):
        raise SettingError('t', t.shape, 'times in even steps, with NaN where a sample is missing (mbse_ros.estimate '
                                         'takes samples at any times)')
