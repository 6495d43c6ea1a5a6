# SPDX-License-Identifier: Apache-2.0
"""A run of the nodes beside the offline run of its bag: whether both agree, how late the mass was, what it cost."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...bags.bag import decode, open_bag
from ...bags.messages import stamp_of
from ...bags.series import RecordSeries
from ...bags.topics import PAYLOAD
from ...offline.estimate import Estimate
from ..graphs.run_graph import cpu_seconds

START_UP = 6.0      # s: imports and compilation are not the running cost


@dataclass(frozen=True)
class Agreement:
    """How far the payloads of the nodes and of the offline run, at the same stamps, are apart."""

    common: int
    only_online: int
    only_offline: int
    largest: float

    @property
    def agree(self) -> bool:
        """The same segments and the same masses, bit for bit."""
        return self.common > 0 and self.only_online == self.only_offline == 0 and self.largest == 0.0

    def __str__(self) -> str:
        if self.agree:
            return f'identical in all {self.common} payload messages'
        return (f'DIFFERENT: {self.common} payloads at common stamps differ by up to {self.largest:.3g} kg; '
                f'{self.only_online} only online, {self.only_offline} only offline')


def agreement(online: RecordSeries, estimate: Estimate) -> Agreement:
    """Compare all payload messages; a mass that is not known yet equals another that is not."""
    ours = dict(zip(estimate.stamps_ns.tolist(), estimate.states.mass.tolist()))
    theirs = dict(zip(online.stamp_ns.tolist(), online.mass.tolist()))
    common = sorted(ours.keys() & theirs.keys())
    pairs = np.array([[ours[s], theirs[s]] for s in common]).reshape(-1, 2)
    gap = np.where(np.isnan(pairs).all(axis=1), 0.0, np.abs(pairs[:, 0] - pairs[:, 1]))
    largest = float(np.max(np.nan_to_num(gap, nan=np.inf), initial=0.0))
    return Agreement(len(common), len(theirs) - len(common), len(ours) - len(common), largest)


def latencies(bag: Path) -> tuple[float, float]:
    """Median and 99 % point, ms, of the time between a payload's stamp and its arrival in the recorder."""
    source = open_bag(bag)
    topics = [topic for topic, kind in source.topics.items() if kind == PAYLOAD]
    delays = [raw.stamp_ns - stamp_of(decode(raw)) for raw in source.messages(topics)]
    median, late = (float(v) * 1e-6 for v in np.percentile(delays, [50, 99]))
    return median, late


class CpuMeter:
    """Shares of a core that named processes use after their start-up (Linux; 0 elsewhere)."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._readings: dict[str, list[tuple[float, float]]] = {}      # clock and processor time, s

    @property
    def seconds(self) -> float:
        """Time since the meter was made, s."""
        return time.monotonic() - self._begin

    def update(self, processes: Mapping[str, int]) -> None:
        """Read the times of the processes, name to pid."""
        if self.seconds < START_UP:
            return
        for name, pid in processes.items():
            used = cpu_seconds(pid)
            if used is not None:
                self._readings.setdefault(name, []).append((time.monotonic(), used))

    def share(self, name: str) -> float:
        """Share of one core between the first and the last reading."""
        readings = self._readings.get(name, [(0.0, 0.0)])
        (begin, first), (end, last) = readings[0], readings[-1]
        return (last - first) / (end - begin) if end > begin else 0.0
