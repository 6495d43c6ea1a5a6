# SPDX-License-Identifier: Apache-2.0
"""One of the filters of ``estimators.filters`` behind ``Observer``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..dynamics.model import Model
from ..errors import MbseError, SettingError
from ..estimators.filters.defaults import default_noises, default_stddev
from ..estimators.filters.observer import LinkageObserver
from ..streams.linkage.entries import entry_names
from .results.motion_estimate import MotionEstimate

Noises = Mapping[str, float | Sequence[float] | np.ndarray]


class OurFilter:
    """A ``LinkageObserver``, in ``observer``, with the noises and the start's uncertainty that suit its mechanism."""

    def __init__(self, model: Model, estimator: str, sensors: Sequence[str], noises: Noises | None,
                 stddev: Sequence[float] | None, gate: float, backend: str, options: dict[str, object]) -> None:
        known: Noises = default_noises(estimator, model.description.name) if noises is None else noises
        if noises is None and options.get('biases'):
            known = {**known, 'bias_walk': 0.0}
        try:
            self.observer = LinkageObserver(model, estimator, sensors, known, stddev, gate, backend, history=True,
                                            **options)
        except MbseError:
            raise
        except (TypeError, ValueError, KeyError) as error:
            raise SettingError('options', options, f'options of {estimator}: {error}') from error
        self.noises = dict(known)
        self.channels, self.names = self.observer.problem.channels, entry_names(self.observer.filter)

    def start(self, q: np.ndarray, qd: np.ndarray, stddev: float | Sequence[float] | None) -> None:
        """Start at coordinates and velocities (n,)."""
        of = self.observer
        try:
            known = default_stddev(of.filter, of.model.description.name) if stddev is None else stddev
            self.started = q, qd, np.asarray(known, dtype=float)
            of.start(*self.started)
        except ValueError:
            raise SettingError('stddev', stddev, f'a number, or one for each of {", ".join(self.names)}') from None

    def run(self, t: np.ndarray, measured: np.ndarray, inputs: np.ndarray) -> MotionEstimate:
        """Over a log; raises DivergenceError."""
        of = self.observer
        with np.errstate(all='ignore'):
            run = of.run(t, measured, inputs)
        assert run.covariances is not None      # the observer keeps them
        here = np.isfinite(measured)
        stddev = np.sqrt(np.maximum(np.diagonal(run.covariances, axis1=1, axis2=2), 0.0))
        return MotionEstimate(of.model, of.estimator, t, self.names, run.mean, stddev, run.q, run.qd, run.qdd,
                              of.filter.forces, run.force, self.channels, np.where(here, run.innovation, np.nan),
                              np.sqrt(np.maximum(run.spread, 0.0)), run.used > 0.5)
