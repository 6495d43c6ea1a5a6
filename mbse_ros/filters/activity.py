# SPDX-License-Identifier: Apache-2.0
"""How lively each coordinate is: a factor on the densities of its random walks that follows what its sensors show.

A machine's acceleration wanders little in steady motion and much when a valve steps, and no machine is as lively as the
next. So the densities of a coordinate's acceleration, and of the unknown flows into its cylinders, are multiplied by
its activity. Innovations of a filter that is right have nothing to do with those before: where they keep the same
direction the filter lags and the activity rises, where they alternate it is too nervous and the activity falls. It
jumps with a sample that surprises.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..machine import Machine
from .hydraulic_model import HydraulicModel

SURPRISE = 5.0      # squared innovations over their variances, mean over a coordinate's channels, that are not chance
MEMORY = 0.1        # share of the trend that a sample forgets
RATE = 0.03         # growth of the activity by the product of innovation and trend
BALANCED = 3e-3     # the same by a residual of the force balance, of which every step has one, and ...
STEP_TIME = 1e-3    # s, of a step for which that and the memory hold; others take as much in the same time
STEP = 0.7          # at most so much of its logarithm at a sample


@dataclass(frozen=True)
class Activity:
    """By coordinate: ``channels`` that show its liveliness, ``noises``, the entries of the state whose densities it
    multiplies, and ``equations`` of the force balance that show it, too."""

    channels: tuple[tuple[int, ...], ...]
    noises: tuple[tuple[int, ...], ...]
    equations: tuple[tuple[int, ...], ...]

    def factors(self, activity: ca.SX, n: int) -> ca.SX:
        """Factors (n,) on the densities of a state of n entries; the largest where several coordinates share one."""
        found: list[ca.SX | None] = [None] * n
        for k, entries in enumerate(self.noises):
            for i in entries:
                found[i] = activity[k] if found[i] is None else ca.fmax(found[i], activity[k])
        return ca.vertcat(*(ca.SX(1) if item is None else item for item in found))

    def after(self, activity: ca.SX, trend: ca.SX, largest: ca.SX, innovations: list[ca.SX], variances: list[ca.SX],
              weights: list[ca.SX], balance: ca.SX | None = None, dt: ca.SX | float = STEP_TIME
              ) -> tuple[ca.SX, ca.SX]:
        """Activity (g,), within 1/``largest`` and ``largest``, and trend (channels, or channels and equations) after a
        step ``dt``, s, with these innovations and, where given, residuals of the force ``balance`` over their
        deviations.

        The trend is the sum of the ratios of innovations to their deviations, older ones forgotten.
        """
        ratios = [item / ca.sqrt(variance) for item, variance in zip(innovations, variances)]
        trends, residuals = ca.vertsplit(trend), ca.vertsplit(balance) if balance is not None else []
        steps, result = dt / STEP_TIME, []
        scaled = [residual * ca.sqrt(steps) for residual in residuals]      # white noise has one density at any step
        for k, channels in enumerate(self.channels):
            count = ca.fmax(sum((weights[i] for i in channels), ca.SX(0)), 1)
            square = sum((ratios[i] ** 2 for i in channels), ca.SX(0)) / count
            drive = sum((ratios[i] * trends[i] for i in channels), ca.SX(0)) / count
            rate = _growth(RATE * drive, square)
            for i in self.equations[k] if residuals else ():
                rate = rate * _growth(BALANCED * scaled[i] * trends[len(ratios) + i], residuals[i] ** 2)
            result.append(ca.fmin(ca.fmax(activity[k] * rate, 1 / largest), largest))
        after = [ca.if_else(weight, (1 - MEMORY) * trends[i] + ratio, trends[i])
                 for i, (weight, ratio) in enumerate(zip(weights, ratios))]
        after += [(1 - MEMORY) ** steps * old + residual for old, residual in zip(trends[len(ratios):], scaled)]
        return ca.vertcat(*result), ca.vertcat(*after)


def _growth(drive: ca.SX, square: ca.SX) -> ca.SX:
    """Factor on an activity by innovations times their trend, and by the square of what surprises."""
    return ca.exp(ca.fmax(ca.fmin(drive, STEP), -STEP)) * ca.fmax(1, square / SURPRISE)


def activity_of(machine: Machine, model: HydraulicModel) -> Activity:
    """A coordinate's channels are pressures and efforts of what it moves; its position too where flows or efforts are
    unknown, which is what the pressures then show."""
    moves, entries_of = moved_actuators(machine), np.array(machine.actuators.entries)
    valves = machine.hydraulics.valves
    channels, noises = [], []
    for k, name in enumerate(machine.coordinates):
        seen = set(entries_of[machine.actuators.act[moves[:, k]].any(axis=0)].tolist())
        own = {entry.partition('/')[2] for entry in seen if entry.startswith('pressure/')}
        entries = {f'acceleration/{name}', *(entry for entry in seen if entry.startswith('effort/'))}
        entries |= {f'flow/{valve}.{port}' for valve in machine.unknown_valves
                    for port in 'ab' if getattr(valves[valve], port) in own}
        if len(entries) > 1 or not own:
            seen |= {f'position/{name}'}
        noises.append(tuple(i for i, entry in enumerate(model.names) if entry in entries))
        channels.append(tuple(i for i, item in enumerate(model.measured)
                              if item.index is not None and model.names[item.index] in seen))
    equations = [(machine.weighed.index(k),) if k in machine.weighed else () for k in range(len(machine.coordinates))]
    return Activity(tuple(channels), tuple(noises), tuple(equations))


def moved_actuators(machine: Machine) -> np.ndarray:
    """(actuators, g): whether a coordinate moves an actuator."""
    rates = machine.piston_rates
    return np.array([[not rates[i, k].is_zero() for k in range(rates.shape[1])] for i in range(rates.shape[0])])
