# SPDX-License-Identifier: Apache-2.0
"""Why a mass was held: how long by each status, and what helps."""

from __future__ import annotations

import numpy as np

from ...monitor.faults import Fault
from ...offline.track import Track
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

FASTER = 'send this sensor more often, or move more slowly'


def held_seconds(track: Track) -> dict[PayloadStatus, float]:
    """s of the log by status of the payload, the longest first."""
    statuses, first = np.unique(track.status, return_index=True)
    found = {PayloadStatus(int(status)): float(np.cumsum(track.length_ns[track.status == status] * 1e-9)[-1])
             for status in statuses[np.argsort(first)]}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def held_lines(track: Track) -> list[str]:
    """The longest reasons for which the mass was held, each with what helps."""
    held = [(status, seconds) for status, seconds in held_seconds(track).items() if status in HELP][:SHOWN]
    return [f'held for {seconds:.1f} s: {reason or status.name.lower()}; '
            f'{FASTER if Fault.RARE in faults else HELP[status]}'
            for (reason, faults), status, seconds in ((_reason(track, s), s, t) for s, t in held)]


def _reason(track: Track, status: PayloadStatus) -> tuple[str, Fault]:
    """The most common one of a status, of several the first, and its faults."""
    rows = np.flatnonzero(track.status == status)
    codes, first, counts = np.unique(track.reason[rows], return_index=True, return_counts=True)
    best = np.lexsort((first, -counts))[0]
    return track.reasons[codes[best]], Fault(int(track.faults[rows[first[best]]]))
