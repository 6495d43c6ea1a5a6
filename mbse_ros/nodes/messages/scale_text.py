# SPDX-License-Identifier: Apache-2.0
"""What the scale says as JSON: the texts of its topics; docs/scale.md lists the fields."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ...report.files import plain
from ...scale.book import Book, Tally
from ...scale.live import Live
from ...scale.record import LOAD, Record

LAST_LOADS = 20


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
