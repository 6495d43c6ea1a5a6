# SPDX-License-Identifier: Apache-2.0
"""What the observer of a machine knows before anything is measured."""

from __future__ import annotations

import numpy as np

from ..machine import Machine
from .hydraulic_model import HydraulicModel, largest_pressure
from .observer_settings import ObserverSettings
from .silent_pressures import UNKNOWN_FLOW
from .swing import SPREAD, spread_of_rate


def spreads(machine: Machine, settings: ObserverSettings) -> dict[str, float]:
    """Standard deviations, SI, at the start, of kinds of entries of the state that are near 0 then."""
    found = {'velocity': settings.start_velocity, 'acceleration': settings.start_acceleration, 'flow': UNKNOWN_FLOW,
             'inclination': 0.2}
    return found | ({'swing': SPREAD, 'swing_rate': spread_of_rate(machine)} if machine.swings else {})


def initial(machine: Machine, model: HydraulicModel, settings: ObserverSettings, commands: np.ndarray
            ) -> tuple[np.ndarray, np.ndarray]:
    """State and standard deviations (nx,), SI; ``commands`` (valves,), V."""
    supplies, spread = machine.hydraulics.supplies, spreads(machine, settings)
    ranges, spools, slow = iter(machine.range), iter(commands), iter(machine.measured_supplies)
    pressure = largest_pressure(machine) / 2
    X, stddev = np.zeros(len(model.names)), np.zeros(len(model.names))
    for i, kind in enumerate(name.split('/')[0] for name in model.names):
        if kind == 'position':
            low, high = next(ranges)
            X[i], stddev[i] = (low + high) / 2, (high - low) / 2
        elif kind == 'pressure':
            X[i], stddev[i] = pressure, pressure
        elif kind == 'spool':
            X[i], stddev[i] = next(spools), 0.5
        elif kind == 'supply':
            X[i] = stddev[i] = supplies[next(slow)].value
        elif kind == 'moment':
            stddev[i] = model.scale[i]
        elif kind == 'payload':
            low, high = machine.payload_data.limits
            X[i], stddev[i] = (low + high) / 2, high - low
        else:
            stddev[i] = spread[kind]
    return X, stddev
