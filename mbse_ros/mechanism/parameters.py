# SPDX-License-Identifier: Apache-2.0
"""The machine's uncertain numbers as symbols: every model function takes them as one vector."""

from __future__ import annotations

from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from .description.model import Quantity, Vector


@dataclass
class ParameterSet:
    """Gives a symbol to each Quantity with a standard deviation, a plain number to each without.

    So a wrong parameter can be simulated, and the sensitivity of a result to it derived, without a new model.
    """

    names: list[str] = field(default_factory=list)
    symbols: list[ca.SX] = field(default_factory=list)
    nominal: list[float] = field(default_factory=list)
    stddevs: list[float] = field(default_factory=list)

    def value(self, name: str, quantity: Quantity) -> ca.SX | float:
        """Number or symbol that stands for the quantity; asked twice for a name it gives the same symbol."""
        if quantity.stddev == 0.0:
            return quantity.value
        if name not in self.names:
            self.names.append(name)
            self.symbols.append(ca.SX.sym(name))
            self.nominal.append(quantity.value)
            self.stddevs.append(quantity.stddev)
        return self.symbols[self.names.index(name)]

    def vector(self, name: str, quantities: Vector) -> ca.SX:
        """Column of three values; the names get the suffixes .x, .y, .z."""
        return ca.vertcat(*(self.value(f'{name}.{axis}', item) for axis, item in zip('xyz', quantities)))

    @property
    def symbol(self) -> ca.SX:
        """All symbols so far as one column."""
        return ca.vertcat(*self.symbols) if self.symbols else ca.SX(0, 1)

    @property
    def mean(self) -> np.ndarray:
        """Nominal values, SI."""
        return np.array(self.nominal, dtype=float)

    @property
    def stddev(self) -> np.ndarray:
        """Standard deviations, SI."""
        return np.array(self.stddevs, dtype=float)
