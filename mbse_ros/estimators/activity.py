# SPDX-License-Identifier: Apache-2.0
"""How much the acceleration of each cylinder wanders, by what its pressures show."""

from __future__ import annotations

import casadi as ca
import numpy as np

from ..machine import Machine

SURPRISE = 4.0          # mean square of a cylinder's pressure innovations over their deviations, no accident
RELAXATION = 0.05       # share by which the activity goes towards what the innovations show, at a sample


def activity_factors(machine: Machine, names: tuple[str, ...], activity: ca.SX) -> ca.SX:
    """Factors (nx,) on the spectral densities of the state: an acceleration's is the activity of what moves it."""
    factors = ca.SX.ones(len(names))
    for k, coordinate in enumerate(machine.coordinates):
        movers = [i for i in range(len(machine.cylinders)) if not machine.piston_rates[i, k].is_zero()]
        if movers:
            largest = activity[movers[0]]
            for i in movers[1:]:
                largest = ca.fmax(largest, activity[i])
            factors[names.index(f'acceleration/{coordinate}')] = largest
    return factors


def next_activity(machine: Machine, activity: ca.SX, largest: ca.SX, innovations: list[ca.SX], variances: list[ca.SX],
                  used: list[ca.SX]) -> ca.SX:
    """Activity of each cylinder after a step: it jumps where its pressures surprise, else follows them slowly.

    Where the flows of its valve are unknown it stays: pressures then show the flows rather than the acceleration.
    """
    valves, after = machine.description.hydraulics.valves, []
    modelled = {volume for name in machine.modelled_valves for volume in (valves[name].a, valves[name].b)}
    for i in range(len(machine.cylinders)):
        own = {machine.volumes[v] for v in np.flatnonzero(machine.circuit.T_Vcyl[:, 2 * i:2 * i + 2].any(axis=1))}
        which = [k for k, channel in enumerate(machine.all_channels)
                 if channel.kind == 'pressure' and channel.sensor.volume in own & modelled]
        count = sum((used[k] for k in which), ca.SX(0))
        ratio = sum((used[k] * innovations[k] ** 2 / variances[k] for k in which), ca.SX(0)) / ca.fmax(count, 1)
        rate = ca.if_else(ratio > SURPRISE, ratio, 1 + RELAXATION * (ratio - 1))
        after.append(ca.if_else(count > 0, ca.fmin(ca.fmax(activity[i] * rate, 1 / largest), largest), activity[i]))
    return ca.vertcat(*after)
