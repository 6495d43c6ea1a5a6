# SPDX-License-Identifier: Apache-2.0
"""Made-up shifts of a machine that loads trucks: what the payload stage would say, without simulating the machine.

The estimates are wrong by noise, which is each load's own, and by errors of the machine's numbers that are drawn once
a shift: they are the same in every load of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import cos, nan, sin, sqrt

import numpy as np

from mbse_ros.payload.mass import NORMAL
from mbse_ros.scale.reading import Place, Reading
from mbse_ros.streams.records import PayloadEstimate, PayloadStatus

NAMES = ('friction', 'offset')      # numbers of the made-up machine: in proportion to the mass, and the same in all
REACH, HEAP, TRUCK = 7.0, 0.0, 1.6  # m; angles of the swing, rad
START_NS = 1_700_000_000_000_000_000
SAMPLE = 15.0       # kg, noise of the estimate of one instant
UPDATING, SLOW, CHANGING, CONTACT = (PayloadStatus.UPDATING, PayloadStatus.TOO_SLOW, PayloadStatus.CHANGING,
                                     PayloadStatus.CONTACT)


@dataclass(frozen=True)
class Bucket:
    """One cycle: ``mass``, kg, taken; ``spilt`` on the way; ``shaken``: dropped in several shakes; ``aborted``: let go
    where it was dug; ``tipped``: kg of it that the truck gets, the rest goes back, None for all; ``stuck``: kg that
    stay in the bucket."""

    mass: float
    spilt: float = 0.0
    shaken: bool = False
    aborted: bool = False
    tipped: float | None = None
    stuck: float = 0.0

    @property
    def delivered(self) -> float:
        """What the truck gets, kg."""
        if self.aborted:
            return 0.0
        return self.mass - self.spilt if self.tipped is None else self.tipped


@dataclass
class Shift:
    """Buckets one after the other at ``rate``, Hz, with deviations of the machine's numbers ``stddev``, (kg/kg, kg);
    the same ``seed`` gives the same errors, which are ``drawn``, in these deviations, unless given."""

    buckets: Sequence[Bucket]
    seed: int = 1
    rate: float = 10.0
    stddev: tuple[float, float] = (0.01, 8.0)
    drawn: np.ndarray | None = None
    start_ns: int = START_NS
    at: list[int] = field(default_factory=list)     # stamps at which the buckets were over, filled while it runs

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)
        if self.drawn is None:
            self.drawn = self._rng.standard_normal(2)
        self._stamp, self._period = self.start_ns, round(1e9 / self.rate)

    @property
    def delivered(self) -> float:
        """True total, kg."""
        return sum(bucket.delivered for bucket in self.buckets)

    def readings(self) -> Iterator[Reading]:
        """All readings."""
        self.at.clear()
        stuck = 0.0
        yield from self._known(stuck, 3.0, HEAP, HEAP)
        for bucket in self.buckets:
            yield from self._cycle(bucket, stuck)
            stuck = bucket.stuck
            self.at.append(self._stamp)

    def _cycle(self, bucket: Bucket, stuck: float) -> Iterator[Reading]:
        """Dig, lift, swing, dump and back."""
        mass = bucket.mass + bucket.stuck
        yield from self._unknown(CONTACT, 3.0, stuck, mass, HEAP)
        yield from self._unknown(CHANGING, 1.0, 0.4 * mass, mass, HEAP)
        if bucket.aborted:
            yield from self._known(mass, 1.5, HEAP, HEAP + 0.02)
            yield from self._unknown(CHANGING, 1.0, mass, bucket.stuck, HEAP)
            yield from self._known(bucket.stuck, 3.0, HEAP, HEAP)
            return
        yield from self._known(mass, 4.0, HEAP, 0.5 * (HEAP + TRUCK))
        if bucket.spilt:
            yield from self._unknown(CHANGING, 0.8, mass, mass - bucket.spilt, 0.5 * (HEAP + TRUCK))
            mass -= bucket.spilt
        yield from self._known(mass, 4.0, 0.5 * (HEAP + TRUCK), TRUCK)
        if bucket.tipped is not None:
            yield from self._unknown(CHANGING, 1.0, mass, mass - bucket.tipped, TRUCK)
            mass -= bucket.tipped
            yield from self._known(mass, 4.0, TRUCK, HEAP)
            yield from self._unknown(CHANGING, 1.0, mass, bucket.stuck, HEAP)
            yield from self._known(bucket.stuck, 5.0, HEAP, HEAP)
            return
        for share in (0.55, 0.2) if bucket.shaken else ():
            rest = bucket.stuck + share * (mass - bucket.stuck)
            yield from self._unknown(CHANGING, 0.6, mass, rest, TRUCK)
            yield from self._known(rest, 1.2, TRUCK, TRUCK + 0.05)
            mass = rest
        yield from self._begun(mass, 0.4, TRUCK)
        yield from self._unknown(CHANGING, 1.0, mass, bucket.stuck, TRUCK)
        yield from self._known(bucket.stuck, 5.0, TRUCK, HEAP)

    def _reading(self, mass: float, noise: float, status: PayloadStatus, swing: float, true: float) -> Reading:
        """An estimate that is wrong by the common errors and by what it is given as."""
        self._stamp += self._period
        slopes = np.array([self.stddev[0] * true, self.stddev[1]])
        stddev = sqrt(noise ** 2 + float(slopes @ slopes))
        information = SAMPLE ** -2 if status is UPDATING else 0.0
        return Reading(self._stamp, mass + float(slopes @ self.drawn), stddev, status,
                       Place(REACH * cos(swing), REACH * sin(swing), 1.0, swing), True, information,
                       information * slopes)

    def _known(self, true: float, seconds: float, begin: float, end: float) -> Iterator[Reading]:
        """Running mean of samples; in the last third the machine rests."""
        count = max(2, round(seconds * self.rate))
        sums, taken = 0.0, 0
        for k in range(count):
            status = UPDATING if k < max(1, 2 * count // 3) else SLOW
            if status is UPDATING:
                taken += 1
                sums += true + SAMPLE * float(self._rng.standard_normal())
            yield self._reading(sums / taken, SAMPLE / sqrt(taken), status, begin + (end - begin) * k / count, true)

    def _begun(self, true: float, seconds: float, swing: float) -> Iterator[Reading]:
        """The load has begun to fall, and the payload stage has not noticed yet."""
        count = round(seconds * self.rate)
        for k in range(1, count + 1):
            yield self._reading(true * (1 - 0.03 * k / count), 10.0, UPDATING, swing, true)

    def _unknown(self, status: PayloadStatus, seconds: float, begin: float, end: float, swing: float
                 ) -> Iterator[Reading]:
        """While it touches soil there is no mass; while it changes it lags behind, and is wild."""
        count = round(seconds * self.rate)
        for k in range(count):
            mass = begin + (end - begin) * k / count + 100.0 * float(self._rng.standard_normal())
            yield self._reading(nan if status is CONTACT else mass, 200.0, status, swing, max(begin, end))


def payload_of(reading: Reading) -> PayloadEstimate:
    """The estimate that a reading was of."""
    half = NORMAL * reading.stddev
    return PayloadEstimate(0, reading.stamp_ns, reading.mass, reading.stddev, reading.mass - half, reading.mass + half,
                           reading.mass, reading.mass, 0, reading.status)


def working_day(count: int = 300, seed: int = 1) -> list[Bucket]:
    """Buckets of three types, with spills, aborted digs, and loads that are shaken off."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(count):
        mass = float(rng.choice([600.0, 1100.0, 1700.0]) * rng.uniform(0.9, 1.1))
        if k % 37 == 11:
            found.append(Bucket(mass, aborted=True))
        found.append(Bucket(mass, spilt=150.0 if k % 23 == 7 else 0.0, shaken=k % 29 == 5))
    return found
