# SPDX-License-Identifier: Apache-2.0
"""A log in short windows: position, speed, acceleration and pressures, all averaged by one and the same weight.

A straight parabola through the positions of a window is, by its second derivative, the mean of the acceleration with
the weight (1 - x^2)^2; with the same weight on positions and pressures the balance of forces holds for the means, also
while valves switch and the machine sways. All is linear in the samples, so their noise gives that of the means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..errors import DescriptionError
from ..estimators.hydraulic_sensors import direct
from ..estimators.hydraulic_state import state_names
from ..machine import Machine

WINDOW = 0.5        # s
FEWEST = 8          # samples of a channel in a window
HOLE = 0.15         # of a window that may be without samples
KINDS = ('position', 'velocity', 'acceleration')
NEEDED = ('position/', 'pressure/', 'inclination/')

Samples = tuple[np.ndarray, np.ndarray]     # times (n,), s, and values (n,)


@dataclass(frozen=True)
class Windows:
    """Means of the windows (n,) of a log at times ``t`` (n,), s: states ``X`` (n, nx), SI, as the observer's, 0 where
    the balance of forces asks for nothing; ``covariance`` (n, nx, nx) of them by the noise of the samples."""

    t: np.ndarray
    X: np.ndarray
    covariance: np.ndarray

    def part(self, chosen: np.ndarray) -> Windows:
        """Some of the windows."""
        return Windows(self.t[chosen], self.X[chosen], self.covariance[chosen])


def unmeasured(machine: Machine) -> tuple[str, ...]:
    """Entries of the state that the balance needs and no channel measures directly."""
    names, known = state_names(machine)[0], direct(machine)
    return tuple(name for name in names if name.startswith(NEEDED) and name not in known)


def windows_of(machine: Machine, series: Mapping[str, Samples], length: float = WINDOW) -> Windows:
    """Windows of a log, one after the other, in which all that is needed is measured; ``series``: by channel.

    Raises DescriptionError where no sensor of the machine measures a coordinate or a volume by itself.
    """
    missing = unmeasured(machine)
    if missing:
        raise DescriptionError(machine.description.file, 'sensors', None, 'a sensor for each of these, which '
                               'the force balance needs: ' + ', '.join(missing))
    names, channels = state_names(machine)[0], direct(machine)
    needed = {name: channels[name] for name in names if name.startswith(NEEDED)}
    own = {name: series[channel.name] for name, channel in needed.items() if channel.name in series}
    if len(own) < len(needed):
        return _empty(len(names))
    start, end = max(t[0] for t, _ in own.values()), min(t[-1] for t, _ in own.values())
    middle = np.arange(start + length / 2, end - length / 2 + 1e-9, length)
    X, P = np.zeros((len(middle), len(names))), np.zeros((len(middle), len(names), len(names)))
    usable = np.ones(len(middle), dtype=bool)
    for name, (t, y) in own.items():
        gain, offset, zero = needed[name].nominal
        noise, value = needed[name].sensor.noise / abs(gain), (y - offset) / gain + zero
        places = [names.index(f'{kind}/{name.partition("/")[2]}') for kind in KINDS] if name.startswith('position/') \
            else [names.index(name)]
        for k, (first, last) in enumerate(zip(*(np.searchsorted(t, middle + s * length / 2) for s in (-1, 1)))):
            x = (t[first:last] - middle[k]) / (length / 2)
            if len(x) < FEWEST or np.diff(x, prepend=-1.0, append=1.0).max() > 2 * HOLE:
                usable[k] = False
                continue
            rows = _rows(x, length / 2)[:len(places)]
            X[k, places] = rows @ value[first:last]
            P[k][np.ix_(places, places)] = noise ** 2 * rows @ rows.T
    return Windows(middle, X, P).part(usable)


def _rows(x: np.ndarray, half: float) -> np.ndarray:
    """Weights (3, n) of samples at places x (n,), -1 to 1, in a window: mean, slope and second derivative."""
    weight = (1 - x ** 2) ** 2
    fit = np.linalg.pinv(np.vander(x, 3, increasing=True))
    return np.vstack([weight / weight.sum(), fit[1] / half, 2 * fit[2] / half ** 2])


def _empty(size: int) -> Windows:
    return Windows(np.zeros(0), np.zeros((0, size)), np.zeros((0, size, size)))
