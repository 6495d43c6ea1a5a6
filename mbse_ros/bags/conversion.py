# SPDX-License-Identifier: Apache-2.0
"""How a foreign number becomes one in SI, as a map says it: (number * unit + offset) * scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..description.language.entry import Entry
from ..description.language.units import parse_unit, split_number


class Conversion(NamedTuple):
    """``gain * number + bias`` is in ``unit``, SI."""

    gain: float
    bias: float
    unit: str


def read_conversion(parts: Mapping[str, Entry], wanted: tuple[str, ...],
                    usual: Mapping[str, str] = {}) -> Conversion:
    """Of the keys ``unit``, ``offset`` (added first, of the unit's kind) and ``scale`` (a factor, with a unit where it
    has one); the result must be one of the ``wanted`` units. ``usual``: units to name in the error, by those.

    Raises DescriptionError.
    """
    known = [usual[unit] for unit in wanted if unit in usual]
    hint = f' ({", ".join(known)})' if known else ''
    factor, dimension = _unit(parts['unit'], hint)
    scale, scale_dimension = read_number(parts['scale']) if 'scale' in parts else (1.0, {})
    if scale == 0.0:
        raise parts['scale'].error('a number that is not 0')
    result = {unit: dimension.get(unit, 0) + scale_dimension.get(unit, 0) for unit in {**dimension, **scale_dimension}}
    result = {unit: power for unit, power in result.items() if power}
    fitting = [unit for unit in wanted if parse_unit(unit)[1] == result]
    if not fitting:
        also = f'times the scale {parts["scale"].value!r}' if 'scale' in parts else 'or a scale that leads there'
        raise parts['unit'].error(f'a unit of {" or ".join(wanted)}{hint}, {also}')
    offset = 0.0
    if 'offset' in parts:
        offset, offset_dimension = read_number(parts['offset'])
        if offset_dimension != dimension:
            raise parts['offset'].error(f'a number with a unit of the same kind as {parts["unit"].value!r}')
    return Conversion(factor * scale, offset * scale, fitting[0])


def read_number(entry: Entry) -> tuple[float, dict[str, float]]:
    """Number in SI and its dimension; raises DescriptionError."""
    try:
        number, unit = split_number(entry.text('a number with its unit'))
        factor, dimension = parse_unit(unit) if unit else (1.0, {})
    except ValueError as error:
        raise entry.error(f'a number with its unit, such as -820 mm ({error})') from error
    return number * factor, dimension


def _unit(entry: Entry, hint: str) -> tuple[float, dict[str, float]]:
    try:
        return parse_unit(entry.text('a unit such as mm, or 1'))
    except ValueError as error:
        raise entry.error(f'a unit such as mm{hint} ({error})') from error
