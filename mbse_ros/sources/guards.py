# SPDX-License-Identifier: Apache-2.0
"""What a message says of its own sample: of which frame it is, and how exact."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..errors import shown
from .fields import Fields
from .getters import getter, number_getter
from .map import ChannelSource
from .path import parse_path, path_text

OTHER, UNCERTAIN = 'of another frame', 'too uncertain'
LARGEST = 1000.0        # times the variance of the machine's file: such a sample would tell nothing


class Unfit(Exception):
    """A sample that must not be used: ``why`` in words that are the same each time, ``what`` was ``expected``."""

    def __init__(self, why: str, what: object, expected: str) -> None:
        super().__init__(why)
        self.why, self.what, self.expected = why, what, expected


def guard_of(source: ChannelSource, msgtype: str, fields: Fields) -> Callable[[Any], float] | None:
    """Function from a message to how many samples of the machine's noise are worth one of it, 1 or more; None where the
    map asks nothing.

    It raises Unfit. Raises ValueError, a phrase with what there is, for a path that messages of this type do not have.
    """
    texts = [(_text_getter(path, msgtype, fields), path, name) for path, name in source.require]
    variance = number_getter(source.variance, msgtype, fields) if source.variance else None
    if not texts and variance is None:
        return None
    where, noise = path_text(source.variance), source.noise ** 2

    def guard(message: Any) -> float:
        for get, path, name in texts:
            if get(message) != name:
                raise Unfit(OTHER, f'{path} {shown(get(message))}', f'{name}')
        if variance is None:
            return 1.0
        value = source.gain ** 2 * float(variance(message))
        if not value >= 0.0:        # -1: the message has no such field (sensor_msgs/Imu)
            raise Unfit(UNCERTAIN, value, f'a variance of 0 (not known) or more in {where}')
        share = value / noise if noise else 1.0
        if share > LARGEST:
            raise Unfit(UNCERTAIN, value, f'a variance in {where} of at most {LARGEST:g} times that of the sensor in '
                                          f'the file of the machine, {noise:.3g}')
        return coarse(share)
    return guard


def coarse(share: float) -> float:
    """The next power of the square root of 2, at least 1: variances that differ little give the same plan of a
    segment."""
    return 1.0 if share <= 1.0 else 2.0 ** (math.ceil(2.0 * math.log2(share) - 1e-9) / 2.0)


def _text_getter(path: str, msgtype: str, fields: Fields) -> Callable[[Any], Any]:
    found = getter(parse_path(path), msgtype, fields)
    if not found.kind.is_text or found.kind.repeated:
        raise ValueError(f'a path to text in `require`; {path} is a {found.kind}')
    return found.get
