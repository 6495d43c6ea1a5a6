# SPDX-License-Identifier: Apache-2.0
"""Samples of a machine's sensors for the tests of the interpolation, and what must come of them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mbse_ros.streams.interpolation import Interpolator
from mbse_ros.streams.records import Segment

MS = 1_000_000
BASE = 1_700_000_000_123_456_789        # a stamp of today, ns: too large for a float
CHANNELS = ('position/lift', 'pressure/lift_piston', 'pressure/lift_rod')
COMMANDS = ('command/lift_valve',)
INPUTS = CHANNELS + COMMANDS
Sample = tuple[str, int, float]


def signal(name: str, stamp: int) -> float:
    """A line of its own for each channel."""
    column = INPUTS.index(name)
    return (column + 1) * 1e-3 + (column - 1.5) * 1e-9 * (stamp - BASE)


def row(stamp: int, names: Iterable[str] = INPUTS) -> list[Sample]:
    """One sample of each input at a stamp."""
    return [(name, stamp, signal(name, stamp)) for name in names]


def rows(first: int, last: int, names: Iterable[str] = INPUTS, period: int = 10) -> list[Sample]:
    """Samples of all inputs at 100 Hz, ms after BASE, the last one included."""
    return [sample for ms in range(first, last + 1, period) for sample in row(BASE + ms * MS, names)]


def feed(interpolator: Interpolator, samples: Iterable[Sample]) -> list[Segment]:
    """All segments that come of the samples."""
    return [segment for sample in samples for segment in interpolator.add(*sample)]


def span(segment: Segment) -> tuple[float, float]:
    """Start and end in ms after BASE."""
    return (segment.start_ns - BASE) / MS, (segment.stamp_ns - BASE) / MS


def instants(segment: Segment) -> list[int]:
    """Stamps of the steps, ns."""
    return [segment.start_ns + (k + 1) * segment.step_ns for k in range(len(segment.values))]


def check_lines(segments: list[Segment]) -> None:
    """All values are on their lines."""
    for segment in segments:
        for column, name in enumerate(segment.channels):
            expected = [signal(name, instant) for instant in instants(segment)]
            np.testing.assert_allclose(segment.values[:, column], expected, rtol=1e-12, atol=1e-15)


def same(left: list[Segment], right: list[Segment]) -> bool:
    """Equal bit for bit."""
    fields = ('values', 'repeats', 'command_values')
    return len(left) == len(right) and all(
        (a.sequence, a.start_ns, a.step_ns, a.restart) == (b.sequence, b.start_ns, b.step_ns, b.restart)
        and all(getattr(a, field).tobytes() == getattr(b, field).tobytes() for field in fields)
        for a, b in zip(left, right))
