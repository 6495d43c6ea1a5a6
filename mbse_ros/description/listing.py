# SPDX-License-Identifier: Apache-2.0
"""All numbers of a mechanism by the key at which they stand in the file: what can be made free, what is uncertain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from .model import MechanismDescription, Scalar

__all__ = ['scalars', 'uncertain']


def scalars(mechanism: MechanismDescription | tuple) -> dict[str, Scalar]:
    """Every number that has a key, such as 'parameters.crank', 'bodies.crank.mass' or 'points.B.fixed[0]', of a
    mechanism or of parts of one."""
    return {item.key: item for item in _walk(mechanism) if item.key}


def uncertain(mechanism: MechanismDescription) -> dict[str, Scalar]:
    """Those that have a standard deviation."""
    return {key: item for key, item in scalars(mechanism).items() if item.stddev > 0.0}


def _walk(part: object) -> Iterator[Scalar]:
    if isinstance(part, Scalar):
        yield part
        return
    if is_dataclass(part):
        inner = [getattr(part, item.name) for item in fields(part)]
    else:
        inner = list(part.values()) if isinstance(part, dict) else part if isinstance(part, tuple) else ()
    for item in inner:
        yield from _walk(item)
