# SPDX-License-Identifier: Apache-2.0
"""What every part of a description is made of: numbers and references to points."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ['GROUND', 'MISSING', 'PointRef', 'Scalar', 'Vector', 'ZERO']

GROUND = 'ground'


@dataclass(frozen=True)
class PointRef:
    """A named point of a body, or of the ground (``body`` is then 'ground')."""

    body: str
    point: str

    def __str__(self) -> str:
        return f'{self.body}.{self.point}'


@dataclass(frozen=True)
class Scalar:
    """A number in SI that may be arithmetic over the parameters.

    ``value``: nominal; ``text``: the arithmetic ('' for a plain number), whose result times ``factor`` is the value;
    ``stddev``: 1 sigma, absolute; ``key``: the place in the file, by which the number can be made a free parameter.
    """

    value: float
    text: str = ''
    factor: float = 1.0
    stddev: float = 0.0
    key: str = field(default='', compare=False)
    source: str = field(default='', compare=False)


Vector = tuple[Scalar, ...]
ZERO = Scalar(0.0)
MISSING = Scalar(0.0, source='not given')      # a moment of inertia that cannot act
