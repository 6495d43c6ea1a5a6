# SPDX-License-Identifier: Apache-2.0
"""Online against offline, and the latency, out of a recorded bag."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..bags.bag import decode, open_bag
from ..bags.messages import stamp_of
from ..bags.series import PayloadSeries
from ..bags.topics import PAYLOAD
from ..offline.bag import Estimate


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


def agreement(online: PayloadSeries, estimate: Estimate) -> Agreement:
    """Compare all payload messages; a mass that is not known yet equals another that is not."""
    ours = dict(zip(estimate.stamps_ns.tolist(), (o.payload.mass for o in estimate.outputs)))
    theirs = dict(zip(online.stamp_ns.tolist(), online.mass.tolist()))
    common = sorted(ours.keys() & theirs.keys())
    pairs = np.array([[ours[s], theirs[s]] for s in common]).reshape(-1, 2)
    unknown = np.isnan(pairs)
    gap = np.where(unknown.all(axis=1), 0.0, np.abs(pairs[:, 0] - pairs[:, 1]))
    largest = float(np.max(np.where(np.isnan(gap), np.inf, gap), initial=0.0))
    return Agreement(len(common), len(theirs) - len(common), len(ours) - len(common), largest)


def latencies(bag: Path) -> tuple[float, float]:
    """Median and 99 % point, ms, of the time between a payload's stamp and its arrival in the recorder."""
    source = open_bag(bag)
    topics = [topic for topic, kind in source.topics.items() if kind == PAYLOAD]
    delays = [raw.stamp_ns - stamp_of(decode(raw)) for raw in source.messages(topics)]
    return tuple(float(v) * 1e-6 for v in np.percentile(delays, [50, 99]))
