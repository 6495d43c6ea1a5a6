# SPDX-License-Identifier: Apache-2.0
"""Why a mass was held: how long by each status, and what helps."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from ...streams.pipeline import Output
from ...streams.records import PayloadStatus

SHOWN = 3       # reasons, the longest first
HELP = {
    PayloadStatus.TOO_SLOW: 'move a cylinder that carries the load faster than payload.min_speed, for 2 s and more',
    PayloadStatus.OUTSIDE_STROKE: 'keep the pistons off the ends of their strokes (payload.stroke_margin)',
    PayloadStatus.NOT_OBSERVABLE: 'move to a pose in which the load presses on a cylinder (payload.max_sample_share)',
    PayloadStatus.ACCELERATING: 'move more evenly, or raise payload.max_acceleration_share',
    PayloadStatus.CHANGING: 'move on for 2 s with the same load',
    PayloadStatus.CONTACT: 'lift the load clear of what it touches',
    PayloadStatus.IMPLAUSIBLE: 'compare the data with the machine: mbse check-data BAG --machine M',
    PayloadStatus.NO_DATA: 'see what the observer says; mbse check-data BAG --machine M compares data and machine'}


def held_seconds(outputs: Sequence[Output]) -> dict[PayloadStatus, float]:
    """s of the log by status of the payload, the longest first."""
    found: dict[PayloadStatus, float] = defaultdict(float)
    for output in outputs:
        found[output.payload.status] += len(output.segment.values) * output.segment.step_ns * 1e-9
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def held_lines(outputs: Sequence[Output]) -> list[str]:
    """The longest reasons for which the mass was held, each with what helps."""
    reasons = {status: Counter(o.payload.reason for o in outputs if o.payload.status is status).most_common(1)[0][0]
               for status in {o.payload.status for o in outputs}}
    held = [(status, seconds) for status, seconds in held_seconds(outputs).items() if status in HELP][:SHOWN]
    return [f'held for {seconds:.1f} s: {reasons[status] or status.name.lower()}; {HELP[status]}'
            for status, seconds in held]
