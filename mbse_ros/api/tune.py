# SPDX-License-Identifier: Apache-2.0
"""``tune``: process noises of a filter by maximum likelihood of its innovations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import SettingError
from .observer import Observer
from .samples import Samples

if TYPE_CHECKING:
    from ..estimators.filters.analysis.tuning import TuningResult


def tune(observer: Observer, logs: Samples | Sequence[Samples], *, z: Sequence[float] | None = None,
         zd: Sequence[float] | None = None, stddev: float | Sequence[float] | None = None,
         skip: float = 2.0) -> TuningResult:
    """Find the noises of an observer's filter (one of ours) that make logs most likely; the observer keeps them.

    Every log starts at ``z``, ``zd``, ``stddev`` as of ``Observer.start``; its first ``skip`` seconds do not count.
    The result: ``after.noises`` and ``before.noises`` by name with the quality of the innovations (log-likelihood, mean
    NIS, whiteness), ``stddev_log10`` of each noise, ``converged``. Raises SettingError.
    """
    from ..estimators.filters.analysis.tuning import Log  # here, as it takes its time to import
    from ..estimators.filters.analysis.tuning import tune as search
    from .our_filter import OurFilter
    core = observer.core
    if not isinstance(core, OurFilter):
        raise SettingError('observer', type(core.filter).__name__, 'one of our filters: its noises are known by name')
    samples = [logs] if isinstance(logs, Samples) else list(logs)
    if not samples:
        raise SettingError('logs', [], 'Samples of one log or more')
    observer.start(z, zd, stddev)
    q, qd, spread = core.started
    found = search(core.observer, [Log(item.t, item.columns(observer.channels), q, qd, spread, observer.inputs(item))
                                   for item in samples], core.noises, skip)
    core.noises = {name: np.array(values) for name, values in found.after.noises.items()}
    core.observer.tune(core.noises, core.gate)      # the search counts all samples
    observer.start(z, zd, stddev)
    return found
