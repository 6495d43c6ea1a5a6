# SPDX-License-Identifier: Apache-2.0
"""Samples that are not used: counted by reason, and kept until somebody asks for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isinf, isnan

from ...errors import SampleError


class Refusals:
    """Of a stage with ``channels`` and ``inputs``; ``dropped``: how many by reason."""

    def __init__(self, channels: Sequence[str], inputs: Sequence[str]) -> None:
        self._channels, self._inputs = tuple(channels), tuple(inputs)
        self._known, self._held = frozenset((*channels, *inputs)), frozenset(inputs)
        self.dropped: Counter[str] = Counter()
        self._errors: list[SampleError] = []

    def usable(self, stamp_ns: int, samples: Mapping[str, float]) -> dict[str, float]:
        """The samples that are of this stage and finite; NaN, a missing one, of a channel alone."""
        return {name: float(value) for name, value in samples.items() if self._usable(stamp_ns, name, float(value))}

    def add(self, reason: str, name: str, stamp_ns: int, value: float, expected: str) -> None:
        """One more."""
        self.dropped[reason] += 1
        self._errors.append(SampleError(name, stamp_ns, value, expected))

    def taken(self) -> list[SampleError]:
        """Those since the last call."""
        errors, self._errors = self._errors, []
        return errors

    def _usable(self, stamp_ns: int, name: str, value: float) -> bool:
        if name not in self._known:
            self.add('unknown channel', name, stamp_ns, value, 'one of ' + ', '.join(self._channels + self._inputs))
        elif isinf(value) or isnan(value) and name in self._held:
            self.add('not finite', name, stamp_ns, value, 'a finite number')
        else:
            return True
        return False
