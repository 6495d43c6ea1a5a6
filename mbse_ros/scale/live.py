# SPDX-License-Identifier: Apache-2.0
"""What the operator is shown at one instant, and what the scale says as JSON: the texts of its topics, whose fields
docs/scale.md lists."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import hypot, isfinite
from typing import Any

from ..payload.mass import NORMAL
from ..report.files import plain
from ..streams.records import PayloadEstimate, PayloadStatus
from .book import Book, Tally
from .detection import Detector
from .load import NOTHING, UncertainMass
from .reading import KNOWN
from .record import LOAD, Record
from .scale_file import LoadChart, Overload

LAST_LOADS = 20


@dataclass(frozen=True)
class Live:
    """``mass``, kg, without tare, with its 95 % interval, NaN where not known; ``gross``: with all that hangs
    there, up to ``gross_upper``; ``status``, ``reason``, words of the ``faults`` of the payload stage; ``carrying``
    a load since ``since_ns``, that has been ``counted`` or not; ``radius``, m, NaN where not known; ``limit``, kg,
    of the chart there, NaN without one; ``overload``; ``truck`` with all its ``loads``, ``total``, kg,
    ``total_interval``, the ``untrusted`` ones with their ``untrusted_total`` beside it, ``target``, 0 for none,
    ``remaining``, None without, whether it is ``reached``; ``tip_off``: so much of what hangs there is more than it
    still takes, kg; ``truck_number``, from 1; ``last_load``: number of the record of the last load that counts, 0 for
    none; ``question``: what the scale asks of the tool, '' where it asks nothing.
    """

    stamp_ns: int
    mass: float
    lower: float
    upper: float
    gross: float
    gross_upper: float
    status: PayloadStatus
    reason: str
    faults: tuple[str, ...]
    carrying: bool
    since_ns: int | None
    counted: bool
    radius: float
    limit: float
    overload: Overload
    truck: str
    loads: int
    total: float
    total_interval: tuple[float, float]
    untrusted: int
    untrusted_total: float
    target: float
    remaining: float | None
    reached: bool
    tip_off: float
    truck_number: int
    last_load: int
    question: str = ''


def live(payload: PayloadEstimate, detector: Detector, book: Book, radius: float, chart: LoadChart | None,
         fitted: UncertainMass = NOTHING, question: str = '') -> Live:
    """Of an estimate, after the detector has taken it; ``fitted``: the attachment that the machine's equations have,
    which hangs there as well."""
    filling = book.filling
    tare, known = detector.tare_now, payload.status in KNOWN and isfinite(payload.mass)
    net, stddev = payload.mass - tare.value, hypot(payload.stddev, tare.stddev)
    level = detector.level
    if known and level.known and abs(payload.mass - level.value) <= payload.stddev:
        stddev = (level - tare).stddev      # knows which errors load and tare have in common
    sure = known or payload.status is PayloadStatus.IMPLAUSIBLE     # too much for the machine is too much for the chart
    overload = Overload.NOT_KNOWN if chart is None or not sure else chart.judged(
        radius, payload.upper + fitted.value, detector.settings.overload_warning)
    remaining, tally = filling.remaining, filling.tally
    over = 0.0
    if remaining is not None and detector.carrying and not detector.counted and known:
        over = max(net - max(remaining, 0.0), 0.0)
    return Live(payload.stamp_ns, net, net - NORMAL * stddev, net + NORMAL * stddev, payload.mass + fitted.value,
                payload.upper + fitted.value, payload.status, payload.reason, payload.faults.words, detector.carrying,
                detector.since_ns, detector.counted, radius,
                chart.limit(radius) if chart is not None else float('nan'), overload,
                filling.name, tally.count, tally.mass.value, tally.mass.interval, tally.untrusted, tally.doubted.value,
                filling.target, remaining, filling.reached, over, book.fillings,
                book.last.number if book.last is not None else 0, question)


def text_of(values: Mapping[str, Any]) -> str:
    """JSON; what is not known is null."""
    return json.dumps(plain(values), allow_nan=False, separators=(',', ':'))


def live_values(live: Live, trouble: str) -> dict[str, Any]:
    """What the operator is shown; ``trouble``: why records are not written."""
    return {**asdict(live), 'trouble': trouble}


def record_values(record: Record) -> dict[str, Any]:
    """A record that is confirmed."""
    return {'number': record.number, 'kind': record.kind, 'stamp_ns': record.stamp_ns, **record.data}


def totals_values(book: Book, stamp_ns: int) -> dict[str, Any]:
    """Truck, day, and all since the first record; the last loads, the newest first."""
    filling, day = book.filling, book.day_of(stamp_ns)
    last = [record for record, _ in book.loads.values() if record.kind == LOAD][-LAST_LOADS:]
    return {'stamp_ns': stamp_ns, 'truck': filling.name, 'target': filling.target, 'remaining': filling.remaining,
            'reached': filling.reached, **filling.tally.values, 'day': {'date': day, **book.days.get(
                day, Tally()).values}, 'all': book.all.values,
            'attachment': book.attachment.data['attachment'] if book.attachment else '',
            'zero': book.zero.mass.value if book.zero else 0.0,
            'missed': book.missed.mass.value if book.missed else None,
            'last_loads': [{'load': book.places[record.number], **{key: record_values(record)[key] for key in (
                'number', 'truck', 'start_ns', 'end_ns', 'mass', 'interval', 'status', 'counts', 'trusted')}}
                for record in reversed(last)]}
