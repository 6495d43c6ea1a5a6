# SPDX-License-Identifier: Apache-2.0
"""The error of the force balance that a fit leaves: how large it is beyond the noise of the samples, and how long it
stays the same.

A first-order Markov process of standard deviation s and correlation time T has the autocovariance s^2 exp(-|t| / T). In
the means of windows its variance is smaller, the more the shorter T is, and windows one after the other depend on each
other, the more the longer it is: both follow from the windows' weight, so that variance and first autocovariance of
what is left give s and T.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..filters.force_error import TIME
from ..filters.hydraulic_model import largest_pressure
from ..machine.actuators import SPAN
from .balance import WINDOW, window_length
from .fit import LEAST, CalibrationProblem

BEYOND = 2.0        # times what the noise of the samples makes, up to which nothing is missing
TIMES = np.geomspace(0.1, 3.0, 35)      # s, within which the correlation time is looked for
NODES = 41          # of the weight of a window


@dataclass(frozen=True)
class FoundError:
    """Of an equation ``name`` with ``actuators``: ``stddev``, N at the pistons, of drives in the ``unit`` of effort, 0
    where what is left is the noise of the samples; ``time``, s; ``full``: the force at full pressure, or the largest
    effort."""

    name: str
    actuators: tuple[str, ...]
    stddev: float
    time: float
    full: float
    unit: str = 'N'

    @property
    def line(self) -> str:
        """In words."""
        size, of = (f'{self.stddev:,.0f}', f'{self.full * 1e-3:,.0f} kN at full pressure') if self.unit == 'N' else (
            f'{self.stddev:.2g}', f'{self.full:,.0f} {self.unit}, the largest effort')
        return (f'{self.name}: {size} {self.unit} are missing from the force balance (1 sigma), for {self.time:.2g} '
                f's: of {of}')


def found_errors(problem: CalibrationProblem, u: np.ndarray) -> tuple[FoundError, ...]:
    """Of each equation with enough windows, at errors ``u`` of the numbers."""
    machine, found = problem.balance.machine, []
    length, errors = window_length(machine), machine.actuators.errors
    full_of = dict(zip(machine.actuators.names, (  # N or N m of each, and its unit
        (SPAN / unit, machine.description.drives[name].effort) if name in machine.description.drives
        else (largest_pressure(machine) * machine.description.cylinders[name].piston_area, 'N')
        for name, (_, _, unit) in zip(machine.actuators.names, errors))))
    forces = [np.where(log.moments.counts, problem.missing(log, u)[0] / np.maximum(log.moments.levers, 1e-12), np.nan)
              for log in problem.logs]
    noises = [log.moments.variance / np.maximum(log.moments.levers, 1e-12) ** 2 for log in problem.logs]
    for k, name in enumerate(problem.balance.equations):
        own = [np.isfinite(force[:, k]) for force in forces]
        r = np.concatenate([force[some, k] for force, some in zip(forces, own)])
        if len(r) < LEAST:
            continue
        noise = float(np.mean(np.concatenate([item[some, k] for item, some in zip(noises, own)])))
        pairs = np.concatenate([(force[:-1, k] * force[1:, k])[np.diff(log.moments.t) < 1.5 * length]
                                for force, log in zip(forces, problem.logs)])
        pairs = pairs[np.isfinite(pairs)]
        names = tuple(item for item, acts in zip(machine.actuators.names, problem.balance.found.concerns[k]) if acts)
        full, unit = min(full_of[item] for item in names)
        variance, stddev, time = float(np.mean(r ** 2)), 0.0, TIME
        if variance > BEYOND ** 2 * noise:
            time = correlation_time(float(np.mean(pairs)) / (variance - noise), length) if len(pairs) >= LEAST else TIME
            stddev = ((variance - noise) / window_covariances(np.array([time]), length)[0, 0]) ** 0.5
        found.append(FoundError(name, names, float(stddev), time, full, unit))
    return tuple(found)


def correlation_time(share: float, length: float = WINDOW) -> float:
    """Within ``TIMES`` that with which the first autocovariance of windows is this share of their variance."""
    own, next_ = window_covariances(TIMES, length)
    return float(np.interp(share, next_ / own, TIMES))


def window_covariances(times: np.ndarray, length: float = WINDOW) -> np.ndarray:
    """Variances of the means of windows of a ``length``, s, and covariances with the next (2, k), of processes of
    variance 1 with these correlation times (k,), s."""
    x = np.linspace(-1.0, 1.0, NODES)
    weight = (1 - x ** 2) ** 2 / np.sum((1 - x ** 2) ** 2)
    apart = 0.5 * length * (x[:, None] - x)
    return np.array([[weight @ np.exp(-np.abs(apart + lag) / time) @ weight for time in np.atleast_1d(times)]
                     for lag in (0.0, length)])
