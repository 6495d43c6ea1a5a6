# SPDX-License-Identifier: Apache-2.0
"""A state of the hydraulic observer that somebody else knows: a survey, a simulator, the program that ran before."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..errors import SettingError
from .hydraulic_dekf import initial
from .hydraulic_observer import HydraulicObserver

KINDS = ('position', 'velocity', 'pressure')


def set_state(observer: HydraulicObserver, values: Mapping[str, float], stddev: Mapping[str, float]) -> None:
    """Continue from entries of the state, SI: the position of each coordinate, and what is known of velocities and
    pressures; ``stddev`` of these, the others as at a start by itself. The load stays what it was.

    Raises SettingError for an entry that cannot be given, a position that is missing or out of its range, a negative
    pressure, a standard deviation that is not above 0; PositionProblemError and SingularConfigurationError where the
    machine cannot be so. Then the state stays what it was.
    """
    machine, names = observer.machine, observer.names
    known = [name for name in names if name.partition('/')[0] in KINDS]
    strange = [name for name in (*values, *stddev) if name not in known]
    if strange:
        raise SettingError('set_state.names', strange, f'of {", ".join(known)}')
    missing = [f'position/{name}' for name in machine.coordinates if f'position/{name}' not in values]
    if missing:
        raise SettingError('set_state.names', list(values), f'all positions: {", ".join(missing)} is missing')
    if not set(stddev) <= set(values):
        raise SettingError('set_state.stddev', sorted(set(stddev) - set(values)), 'standard deviations of values')
    for name, value in values.items():
        low = 0.0 if name.startswith('pressure/') else -np.inf
        if not (np.isfinite(value) and value >= low):
            raise SettingError(f'set_state.{name}', value, f'a finite number{" from 0 Pa on" if low == 0.0 else ""}')
    for name, value in stddev.items():
        if not (np.isfinite(value) and value > 0.0):
            raise SettingError(f'set_state.stddev of {name}', value, 'a finite number above 0')
    for name, (low, high) in zip(machine.coordinates, machine.range):
        if not low <= values[f'position/{name}'] <= high:
            raise SettingError(f'set_state.position/{name}', values[f'position/{name}'], f'from {low:g} to {high:g}')
    machine.position(np.array([values[f'position/{name}'] for name in machine.coordinates]))      # raises
    before = observer.running.state
    commands = (before[observer.filter.state.places['commands']].copy() if before.size
                else np.zeros(len(machine.modelled_valves)))
    observer.start(np.full(len(observer.channels), np.nan), commands)
    X, spread = initial(machine, observer.model, observer.settings, commands)
    for name, value in values.items():
        X[names.index(name)] = value
    for name, value in stddev.items():
        spread[names.index(name)] = value
    x = observer.filter.start(X, spread, commands)
    observer.running.state = observer.filter.with_load(x, before, 1.0) if before.size else x
