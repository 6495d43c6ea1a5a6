# SPDX-License-Identifier: Apache-2.0
"""Entries of the hydraulic observer's state: their names ``kind/owner``, units, and places by kind."""

from __future__ import annotations

import casadi as ca
import numpy as np

from ..machine import Machine

MPA = 1e6
LITRE = 1e-3
UNITS = {'pressure': MPA, 'flow': LITRE, 'supply': MPA}
MASS = 'payload/mass'


def state_names(machine: Machine, weighs: bool = False) -> tuple[tuple[str, ...], np.ndarray]:
    """Names of the state's entries and the factors that take them to SI; ``weighs``: with those of the payload, moments
    about its centre in the file, at the largest mass one deviation away from it, and the mass, the last."""
    names = [f'{kind}/{c}' for kind in ('position', 'velocity', 'acceleration') for c in machine.coordinates]
    names += [f'pressure/{v}' for v in machine.volumes] + [f'spool/{v}' for v in machine.modelled_valves]
    names += [f'flow/{v}.{port}' for v in machine.unknown_valves for port in 'ab']
    names += [f'supply/{s}' for s in machine.measured_supplies] + [f'inclination/{a}' for a in machine.inclinations]
    names += [f'{kind}/{axis}' for kind in ('swing', 'swing_rate') for axis in machine.swings if weighs]
    scale = [UNITS.get(name.partition('/')[0], 1.0) for name in names]
    if weighs:
        center, (low, high) = center_numbers(machine), machine.payload_data.limits
        names += [*(f'moment/{axis}' for axis in center), MASS]
        scale += [*(machine.parameters.stddev[place] * (high - low) for place in center.values()), high - low]
    return tuple(names), np.array(scale)


def state_parts(names: tuple[str, ...], X: ca.SX) -> dict[str, ca.SX]:
    """Entries of the state by kind."""
    kinds = ('position', 'velocity', 'acceleration', 'pressure', 'spool', 'flow', 'supply', 'inclination', 'swing',
             'swing_rate')
    return {kind: X[[i for i, name in enumerate(names) if name.startswith(kind + '/')]] for kind in kinds}


def center_numbers(machine: Machine) -> dict[str, int]:
    """Coordinates of the payload's centre that are uncertain, by their axes, and their places among the parameters."""
    names, stddev = machine.parameters.names, machine.parameters.stddev
    keys = {axis: f'payload.center[{k}]' for k, axis in enumerate('xyz')}
    return {axis: names.index(key) for axis, key in keys.items() if key in names and stddev[names.index(key)] > 0}
