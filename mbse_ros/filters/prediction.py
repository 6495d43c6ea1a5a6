# SPDX-License-Identifier: Apache-2.0
"""The state of a machine at an instant for which there is no sample yet: a controller acts now, and an estimate is as
old as the newest samples of the slowest sensor, and the way to it."""

from __future__ import annotations

from math import ceil, nan
from typing import NamedTuple

import numpy as np

from .hydraulic_observer import HydraulicObserver


class PredictedState(NamedTuple):
    """``mean`` (nx,) and ``covariance`` (nx, nx), SI, of the observer's entries."""

    mean: np.ndarray
    covariance: np.ndarray


def predicted(observer: HydraulicObserver, seconds: float) -> PredictedState:
    """What the state is in so many ``seconds``, above 0, after the last step: by the same steps without samples, under
    the commands in force. The observer stays as it is. It must be started. Raises DivergenceError."""
    running = observer.running
    layout, tuning = running.filter.state, running.tuning.copy()
    count = max(1, ceil(seconds / observer.prepared))
    tuning[running.filter.tuning.places['dt']] = seconds / count
    commands = running.state[layout.places['commands']]
    row = np.concatenate([np.full(len(observer.channels), nan), commands])
    after, outputs, _ = running.steps(running.state, np.tile(row, (count, 1)), tuning)
    slopes = after.take(observer.slopes)       # as those of the estimate: by what is uncertain of the motion
    covariance = (running.covariance(after) + slopes @ slopes.T) * np.outer(observer.model.scale, observer.model.scale)
    return PredictedState(outputs[-1][running.filter.outputs.places['x']], covariance)
