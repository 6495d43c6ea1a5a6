# SPDX-License-Identifier: Apache-2.0
"""What every part of a description is made of: numbers, found again by their keys, and references to points."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from math import inf

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
    ``stddev``: 1 sigma, absolute; ``key``: the place in the file, by which the number can be made a free parameter;
    ``range``: what the language allows there, SI.
    """

    value: float
    text: str = ''
    factor: float = 1.0
    stddev: float = 0.0
    key: str = field(default='', compare=False)
    source: str = field(default='', compare=False)
    range: tuple[float, float] = field(default=(-inf, inf), compare=False, repr=False)

Vector = tuple[Scalar, ...]
ZERO = Scalar(0.0)
MISSING = Scalar(0.0, source='not given')      # a moment of inertia that cannot act


def scalars(part: object) -> dict[str, Scalar]:
    """Every number of a mechanism, or of parts of one, by its key in the file, where it has one:
    'parameters.crank', 'bodies.crank.mass', 'points.B.fixed[0]'."""
    return {item.key: item for item in _walk(part) if item.key}


def uncertain(mechanism: object) -> dict[str, Scalar]:
    """Those that have a standard deviation."""
    return {key: item for key, item in scalars(mechanism).items() if item.stddev > 0.0}


def _walk(part: object) -> Iterator[Scalar]:
    if isinstance(part, Scalar):
        yield part
        return
    if is_dataclass(part):
        inner: Iterable[object] = [getattr(part, item.name) for item in fields(part)]
    else:
        inner = list(part.values()) if isinstance(part, dict) else part if isinstance(part, tuple) else ()
    for item in inner:
        yield from _walk(item)
