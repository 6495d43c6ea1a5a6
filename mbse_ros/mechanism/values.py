# SPDX-License-Identifier: Apache-2.0
"""Numbers of a mechanism description as symbols where they are uncertain or free, as plain numbers elsewhere."""

from __future__ import annotations

from collections.abc import Collection

import casadi as ca
import numpy as np

from ..description.basics import Scalar, Vector
from ..description.language.expressions import evaluate
from ..description.model import MechanismDescription
from ..errors import SettingError


class Values:
    """Number or symbol of each Scalar; arithmetic over the parameters is done with their symbols.

    A parameter or other number becomes a symbol when it has a standard deviation or its key (or the parameter's bare
    name) is among ``free``; so do the mass of the payload, and what sensors measure of the base. ``names``, ``mean``
    and ``stddev`` describe the symbols, in the order of ``symbol``.
    """

    def __init__(self, description: MechanismDescription, free: Collection[str] = ()) -> None:
        self._found: dict[str, tuple[ca.SX, Scalar]] = {}
        self._free = set(free)
        self._states = state_keys(description)
        self._parameters: dict[str, ca.SX | float] = {}
        self._keys: set[str] = set()
        for name, scalar in description.parameters.items():
            self._parameters[name] = self._resolve(scalar, name, {name, f'parameters.{name}'})

    def __call__(self, scalar: Scalar) -> ca.SX | float:
        """Value of the scalar, SI."""
        return self._resolve(scalar, scalar.key, {scalar.key} - {''})

    def vector(self, scalars: Vector) -> ca.SX:
        """Column of the values."""
        return ca.vertcat(*(ca.SX(self(scalar)) for scalar in scalars))

    def check_free(self) -> None:
        """Raise SettingError for a free name that met no number of the description."""
        for name in sorted(self._free - self._keys):
            raise SettingError('free', name, 'a parameter or the key of a number, such as '
                               + ', '.join(sorted(key for key in self._keys if key)[:12]))

    def evaluate(self, text: str, **symbols: ca.SX) -> ca.SX | float:
        """Arithmetic over the parameters and further symbols, such as the time ``t``."""
        return evaluate(text, {**self._parameters, **symbols})

    @property
    def parameters(self) -> dict[str, ca.SX | float]:
        """The named parameters."""
        return self._parameters

    @property
    def names(self) -> list[str]:
        """Names of the symbols so far."""
        return list(self._found)

    @property
    def symbol(self) -> ca.SX:
        """All symbols so far as one column."""
        return ca.vertcat(*(symbol for symbol, _ in self._found.values())) if self._found else ca.SX(0, 1)

    @property
    def mean(self) -> np.ndarray:
        """Nominal values of the symbols, SI."""
        return np.array([scalar.value for _, scalar in self._found.values()], dtype=float)

    @property
    def stddev(self) -> np.ndarray:
        """Standard deviations of the symbols, SI."""
        return np.array([scalar.stddev for _, scalar in self._found.values()], dtype=float)

    def _resolve(self, scalar: Scalar, name: str, keys: set[str]) -> ca.SX | float:
        self._keys |= keys
        if scalar.stddev > 0.0 or keys & self._free or keys & self._states:
            return self._symbol(name, scalar)
        if not scalar.text or not self._found:      # without symbols the nominal value is the value
            return scalar.value
        value = evaluate(scalar.text, self._parameters)
        return value * scalar.factor if isinstance(value, ca.SX) else scalar.value

    def _symbol(self, name: str, scalar: Scalar) -> ca.SX:
        if name not in self._found:
            self._found[name] = ca.SX.sym(name), scalar
        return self._found[name][0]


def acceleration_keys(description: MechanismDescription) -> tuple[str, ...]:
    """Keys of the accelerations of a base that an accelerometer measures, one for each of its axes."""
    sensor = description.base_accelerometer
    return () if sensor is None else tuple(f'base.acceleration[{k}]' for k in range(len(sensor.axes)))


def state_keys(description: MechanismDescription) -> set[str]:
    """Keys of the numbers of a machine that are found while it runs: masses of payloads, a measured inclination
    or acceleration of the base."""
    measured = {f'base.{sensor.axis}' for sensor in description.sensors.values() if sensor.kind == 'inclination'}
    measured |= set(acceleration_keys(description))
    return measured | {payload.mass.key for payload in description.every_payload.values()}
