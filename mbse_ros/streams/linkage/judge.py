# SPDX-License-Identifier: Apache-2.0
"""Trust in an estimate, and why."""

from __future__ import annotations

import numpy as np

from ..records import ObserverStatus
from .channels import Channels
from .settings import LinkageSettings


def judged(t: float, start: float, names: tuple[str, ...], covariance: np.ndarray, channels: Channels,
           threshold: float, settings: LinkageSettings) -> tuple[ObserverStatus, str]:
    """Status and reason at a time, s, of a state that was started (anew) at ``start``."""
    variance = covariance.diagonal().tolist()
    if not np.isfinite(covariance).all() or min(variance) < 0:
        return ObserverStatus.LOST, 'the covariance is none'
    for name, value in zip(names, variance):
        if name.startswith('position/') and value > settings.lost_stddev ** 2:
            return ObserverStatus.LOST, f'{name} known to {np.sqrt(value):.3g} only'
    idle, rejected = channels.since_used(t, start), channels.rejected(threshold)
    refused = f'rejected: {"; ".join(rejected)}' if rejected else ''
    if channels.contradicted(t, start, settings.lost_after):
        return ObserverStatus.LOST, refused
    if t - start < settings.settle_time:
        return ObserverStatus.STARTING, 'settling after a start'
    if idle > settings.coast_after:
        return ObserverStatus.COASTING, f'no sample used for {idle:.3g} s' + (f'; {refused}' if refused else '')
    constant = [name for name, found in zip(channels.names, channels.constant) if found]
    silent = channels.silent(t, settings)
    doubtful = channels.refused(t, start, settings.lost_after)
    reasons = [f'constant: {", ".join(constant)}'] * bool(constant) + [f'silent: {", ".join(silent)}'] * bool(silent)
    if reasons or doubtful:
        return ObserverStatus.COASTING, '; '.join([*reasons, *([refused] if refused else [])])
    return ObserverStatus.OK, refused
