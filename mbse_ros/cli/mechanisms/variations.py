# SPDX-License-Identifier: Apache-2.0
"""Numbers of a mechanism that are drawn at random: options NAME=STDDEV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np

from ...api.simulate_batch import DOT
from ...description.coordinate_units import unit_of
from ...description.language.units import split_number, unit_factor
from ...description.load import load_mechanism
from ...description.model import MechanismDescription
from ...dynamics.model import Model
from ...errors import SettingError


@dataclass(frozen=True)
class Variation:
    """A number that is drawn, normal, ``stddev`` (SI) about its value; ``start``: of the start, else of the file."""

    name: str
    start: bool
    value: float
    stddev: float
    unit: str | None

    def drawn(self, seed: int, runs: int) -> np.ndarray:
        """Values (runs,); they depend on the seed and the name alone, and the first of more runs are the same."""
        draw = np.random.default_rng([seed, crc32(self.name.encode())])
        return self.value + self.stddev * draw.standard_normal(runs)


def varied_model(mechanism: str, coordinates: str | None, independent: Sequence[str] | None, vary: Sequence[str]
                 ) -> tuple[Model, list[Variation]]:
    """The model with the numbers of ``vary``, texts NAME=STDDEV, free, and what they are; raises SettingError."""
    given = dict(_split(text) for text in vary)
    if len(given) < len(vary):
        raise SettingError('--vary', list(vary), 'each name once')
    description = load_mechanism(mechanism)
    if independent is not None:
        description = replace(description, independent=tuple(independent))
    plain = Model(description, coordinates)
    starts = [*plain.independent, *(name + DOT for name in plain.independent)]
    free = [name for name in given if name not in starts]
    model = _freed(description, coordinates, free, [*starts, *description.parameters]) if free else plain
    values = model.system.values
    found = []
    for name, text in given.items():
        if name in starts and name in values.names:
            raise SettingError('--vary', name, 'a name of one thing: it is a coordinate and a parameter of the file')
        found.append(_start(model, name, text) if name in starts else _parameter(model, name, text))
    return model, found


def _freed(description: MechanismDescription, coordinates: str | None, free: Sequence[str], known: Sequence[str]
           ) -> Model:
    """The model with free numbers."""
    try:
        return Model(description, coordinates, free=free)
    except SettingError as error:
        if error.name != 'free':
            raise
        raise SettingError('--vary', error.value, f'one of {", ".join(known)}, or the key of a number of the file'
                           ) from None


def _split(text: str) -> tuple[str, str]:
    name, equals, value = text.partition('=')
    if not (equals and name.strip() and value.strip()):
        raise SettingError('--vary', text, "NAME=STDDEV, such as theta='2 deg' or crank=1%")
    return name.strip().removeprefix('parameters.'), value.strip()


def _start(model: Model, name: str, text: str) -> Variation:
    """Of an independent coordinate or its velocity."""
    rate = name.removesuffix(DOT) if name not in model.independent else name
    place, unit = model.names.index(rate), unit_of(model.description, rate)
    unit = unit if rate == name else f'{unit or 1}/s'
    value = (model.start.q if rate == name else model.start.qd)[place]
    return Variation(name, True, float(value), _number(name, text, unit or '1'), unit)


def _parameter(model: Model, name: str, text: str) -> Variation:
    """Of a number of the file."""
    value = float(model.parameters[model.system.values.names.index(name)])
    if text.endswith('%') and value == 0:
        raise SettingError(f'--vary {name}', text, 'a standard deviation in SI: a percentage of 0 is 0')
    share = _number(name, text, '1', 'a number in SI, or a percentage of its value')
    return Variation(name, False, value, share * abs(value) if text.endswith('%') else share, None)


def _number(name: str, text: str, unit: str, expected: str = '') -> float:
    """Standard deviation in SI."""
    try:
        value, suffix = split_number(text)
        value *= unit_factor(suffix, unit) if suffix else 1.0
    except ValueError as error:
        raise SettingError(f'--vary {name}', text, f'{expected or f"a number, in {unit} or with a unit"} '
                           f'({error})') from None
    if value < 0:
        raise SettingError(f'--vary {name}', text, 'a standard deviation of 0 or more')
    return value
