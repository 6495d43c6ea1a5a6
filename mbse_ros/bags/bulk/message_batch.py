# SPDX-License-Identifier: Apache-2.0
"""Serialized messages as they lie in a file, many at once: where each is, in the order in which they were written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np


class Batch(NamedTuple):
    """Messages of wanted topics: message k, at ``times[k]``, ns, is ``content[starts[k]:stops[k]]``, of topic
    ``topics[k]`` among those asked for.

    ``last``: no message that comes in a later batch is older than this time, ns; None: there is no later one.
    """

    content: bytes
    times: np.ndarray
    topics: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    last: int | None


def joined(messages: Sequence[tuple[int, int, bytes]], last: int | None) -> Batch:
    """A batch of single messages: times, ns, topics and bytes."""
    sizes = np.array([len(data) for _, _, data in messages], dtype=np.int64)
    stops = np.cumsum(sizes)
    return Batch(b''.join(data for _, _, data in messages), np.array([time for time, _, _ in messages], dtype=np.int64),
                 _small(topic for _, topic, _ in messages), stops - sizes, stops, last)


def _small(numbers: Iterable[int]) -> np.ndarray:
    return np.fromiter(numbers, dtype=np.int32)
