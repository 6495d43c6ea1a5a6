# SPDX-License-Identifier: Apache-2.0
"""How lively each coordinate is: a factor on the densities of its random walks that follows what its sensors show.

A machine's acceleration wanders little in steady motion and much when a valve steps, and no machine is as lively as the
next. So the densities of a coordinate's acceleration, and of the unknown flows into its cylinders, are multiplied by
its activity: it jumps with a sample that surprises, and goes slowly towards the value at which innovations are as large
as they say.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..machine import Machine
from .hydraulic_model import HydraulicModel

SURPRISE = 4.0      # squared innovations over their variances, mean over a coordinate's channels, that are no accident
RELAXATION = 0.05   # share by which the activity goes towards what the innovations show, at a sample


@dataclass(frozen=True)
class Activity:
    """``channels``: of each coordinate, those that show its liveliness; ``noises`` by coordinate: the entries of the
    state whose densities it multiplies."""

    channels: tuple[tuple[int, ...], ...]
    noises: tuple[tuple[int, ...], ...]

    def factors(self, activity: ca.SX, n: int) -> ca.SX:
        """Factors (n,) on the densities of a state of n entries; the largest where several coordinates share one."""
        found: list[ca.SX | None] = [None] * n
        for k, entries in enumerate(self.noises):
            for i in entries:
                found[i] = activity[k] if found[i] is None else ca.fmax(found[i], activity[k])
        return ca.vertcat(*(ca.SX(1) if item is None else item for item in found))

    def after(self, activity: ca.SX, largest: ca.SX, squares: list[ca.SX], used: list[ca.SX]) -> ca.SX:
        """Activity (g,) after a step with these normalised squares of innovations: within 1/``largest`` and ``largest``."""
        result = []
        for k, channels in enumerate(self.channels):
            count = sum((used[i] for i in channels), ca.SX(0))
            ratio = sum((used[i] * squares[i] for i in channels), ca.SX(0)) / (count + (count == 0))
            rate = ca.if_else(ratio > SURPRISE, ratio, 1 + RELAXATION * (ratio - 1))
            level = activity[k] * rate
            level = ca.if_else(level > largest, largest, ca.if_else(level * largest < 1, 1 / largest, level))
            result.append(ca.if_else(count > 0, level, activity[k]))
        return ca.vertcat(*result)


def activity_of(machine: Machine, model: HydraulicModel) -> Activity:
    """A coordinate's channels are its own position and the pressures of the cylinders that it moves."""
    moves = _moves(machine)
    valves, volumes = machine.description.hydraulics.valves, machine.volumes
    channels, noises = [], []
    for k, name in enumerate(machine.coordinates):
        chambers = [2 * i + side for i in np.flatnonzero(moves[:, k]) for side in (0, 1)]
        own = {volumes[v] for v in np.flatnonzero(machine.circuit.T_Vcyl[:, chambers].any(axis=1))}
        entries = {f'acceleration/{name}'} | {f'flow/{valve}.{port}' for valve in machine.unknown_valves
                                              for port in 'ab' if getattr(valves[valve], port) in own}
        seen = {f'pressure/{volume}' for volume in own} or {f'position/{name}'}
        noises.append(tuple(i for i, entry in enumerate(model.names) if entry in entries))
        channels.append(tuple(i for i, item in enumerate(model.measured)
                              if item.index is not None and model.names[item.index] in seen))
    return Activity(tuple(channels), tuple(noises))


def _moves(machine: Machine) -> np.ndarray:
    """(cylinders, g): whether a coordinate moves a cylinder."""
    rates = machine.piston_rates
    return np.array([[not rates[i, k].is_zero() for k in range(rates.shape[1])] for i in range(rates.shape[0])])
