# SPDX-License-Identifier: Apache-2.0
"""Outputs of a pipeline whose samples of one channel are spoilt for a while."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache

import numpy as np
from core_support import crane, feed, simulate

from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.streams.pipeline import Pipeline

PISTON, STROKE = 'pressure/lift_piston', 'position/lift'
SPOILT = {      # a sample by its time, s
    'none': (STROKE, lambda t, v: v),
    'nan': (PISTON, lambda t, v: np.nan if 3.0 < t < 3.5 else v),
    'stuck': (PISTON, lambda t, v: 5e6 if t > 3.0 else v),
    'vacuum': (PISTON, lambda t, v: -3e5 if 3.0 < t < 3.5 else v),
    'jump': (STROKE, lambda t, v: v + 0.05 if 3.0 < t < 4.0 else v),
    'far': (STROKE, lambda t, v: 3.0 if t > 3.0 else v),
    'unit': (PISTON, lambda t, v: v * 1e-5),
    'spikes': (PISTON, lambda t, v: v + 5e6 * (-1) ** round(100 * t) if t > 3.0 else v),
    'gain': (PISTON, lambda t, v: (3.0 if 2.5 < t < 3.5 else 1.0) * v),
}


@cache
def frames():
    return simulate(200.0, 2)[:500]


def chain():
    """One that has seen nothing; a sensor that is wrong can be taken for an error of the force balance, of which old
    bags know nothing: none is looked for."""
    return Pipeline(crane('unknown'), observer=ObserverSettings(force_error=0.0))


@cache
def usual(kind):
    """Outputs of a pipeline whose samples of one channel are spoilt for a while."""
    pipeline = chain()
    if kind == 'rare':
        return feed(pipeline, frames()[::12])
    channel, change = SPOILT[kind]
    first = frames()[0].stamp_ns
    spoilt = [replace(f, samples={name: change((f.stamp_ns - first) * 1e-9, value) if name == channel else value
                                  for name, value in f.samples.items()}) for f in frames()]
    return feed(pipeline, spoilt)


def values(record):
    """All that a record says but its reason."""
    return [getattr(record, item.name) for item in fields(record) if item.name != 'reason']
