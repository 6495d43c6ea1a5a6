# SPDX-License-Identifier: Apache-2.0
"""The uncertain numbers of a machine, apart from those that are found while it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import casadi as ca
import numpy as np

from ..description.machine_parts import Calibration
from ..mechanism.values import Values


class Parameters:
    """Symbols of the uncertain numbers; every compiled function takes them as one vector.

    ``names`` are keys of the file, ``mean`` and ``stddev`` (k,) in SI. The mass of the payload and measured
    inclinations have symbols too, in ``states`` by their keys: they are not parameters. ``correlated``: where a
    calibration has made errors depend on each other. ``shares``: of the deviations that are larger by their age, by
    keys, what the calibration has left.
    """

    def __init__(self, values: Values, states: set[str], calibration: Calibration | None = None,
                 shares: Mapping[str, float] = MappingProxyType({})) -> None:
        self._all = dict(zip(values.names, ca.vertsplit(values.symbol) if values.names else []))
        self._mean, self._places = values.mean, [i for i, name in enumerate(values.names) if name not in states]
        self.names = tuple(name for name in values.names if name not in states)
        self.states = {name: symbol for name, symbol in self._all.items() if name in states}
        self.stddev = values.stddev[self._places]
        self.symbol = ca.vertcat(*(self._all[name] for name in self.names)) if self.names else ca.SX(0, 1)
        self.correlated = calibration is not None and len(calibration.keys) > 1
        self._correlation = (np.eye(len(self.names)) if calibration is None or not self.correlated
                             else _correlation(self.names, calibration, shares))

    @property
    def mean(self) -> np.ndarray:
        """Nominal values, SI."""
        return self._mean[self._places].copy()

    @property
    def center(self) -> dict[str, int]:
        """Coordinates of the payload's centre that are uncertain, by their axes, and their places in ``names``."""
        keys = {axis: f'payload.center[{k}]' for k, axis in enumerate('xyz')}
        return {axis: self.names.index(key) for axis, key in keys.items()
                if key in self.names and self.stddev[self.names.index(key)] > 0}

    @property
    def consider(self) -> np.ndarray:
        """Places (k,) in ``names`` of the consider parameters (S. F. Schmidt, Application of state-space methods to
        navigation problems, Advances in Control Systems 3, 1966): the uncertain numbers whose errors an observer that
        weighs carries along and does not estimate. The payload's centre is in its state."""
        return np.setdiff1d(np.flatnonzero(self.stddev), list(self.center.values()))

    @property
    def consider_names(self) -> tuple[str, ...]:
        """Their keys in the file."""
        return tuple(self.names[place] for place in self.consider)

    def factor(self, places: Sequence[int] | None = None) -> np.ndarray:
        """Lower triangular (k, k), SI: times independent errors of standard deviation 1 it gives those of the numbers,
        or of some (k,) of them; diagonal where no calibration has made them depend on each other."""
        some = np.arange(len(self.names)) if places is None else np.asarray(places, dtype=int)
        if not self.correlated:
            return np.diag(self.stddev[some])
        return self.stddev[some, None] * np.linalg.cholesky(self._correlation[np.ix_(some, some)])

    def assume(self, mean: np.ndarray) -> None:
        """Take other nominal values (k,), SI, as of a file that is wrong: what is built from then on uses them."""
        self._mean = self.numbers(mean)

    def whole(self, states: Mapping[str, ca.SX | float] | None = None, symbol: ca.SX | None = None) -> ca.SX:
        """Expression of all values of the mechanism's model: ``states``, 0 where not given, and the parameters."""
        entries = dict(zip(self.names, ca.vertsplit(self.symbol if symbol is None else symbol) if self.names else []))
        return ca.vertcat(*(entries[name] if name in entries else ca.SX((states or {}).get(name, 0.0))
                            for name in self._all)) if self._all else ca.SX(0, 1)

    def numbers(self, parameters: np.ndarray | None = None, states: Mapping[str, float] | None = None) -> np.ndarray:
        """The same as an array."""
        found = self._mean.copy()
        if parameters is not None:
            found[self._places] = parameters
        for name, value in (states or {}).items():
            found[list(self._all).index(name)] = value
        return found


def of_motion(name: str) -> bool:
    """Whether the error of a number is one of the motion: the zero and the gain of a sensor make another motion of what
    it measures, a delay none that is real."""
    return not name.startswith('sensors.') or name.endswith('.delay')


def _correlation(names: tuple[str, ...], calibration: Calibration, shares: Mapping[str, float]) -> np.ndarray:
    """Of the errors of the numbers ``names`` (k, k); what ages have added depends on nothing else."""
    own = [k for k, key in enumerate(calibration.keys) if key in names]
    rows = np.zeros((len(calibration.keys), len(calibration.keys)))
    for k, row in enumerate(calibration.rows):
        rows[k, :k + 1] = np.array(row) / np.linalg.norm(row)
    places, found = [names.index(calibration.keys[k]) for k in own], np.eye(len(names))
    found[np.ix_(places, places)] = rows[own] @ rows[own].T
    if shares:
        kept = np.array([shares.get(name, 1.0) for name in names])
        found *= np.outer(kept, kept)
        np.fill_diagonal(found, 1.0)
    return found
