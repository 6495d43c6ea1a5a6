# SPDX-License-Identifier: Apache-2.0
"""What was estimated of a log of a machine, in words and as JSON; the truth beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..bags.series import TruthSeries
from ..errors import MbseError
from ..machine import Machine
from ..machine.equations import why_unweighed
from ..payload.center import center_of
from ..payload.mass import Cause
from ..report.text import cost, cost_line
from ..streams.pipeline import Output
from ..streams.records import PayloadStatus
from .log_loads import WeighedLoad
from .track import States, Track, held_lines, held_seconds

LONGEST_HOLE_NS = 100_000_000
COLUMNS = ('position', 'velocity', 'acceleration', 'pressure', 'payload')
LARGEST = 3     # causes of the uncertainty in the answer
UNKNOWN = math.nan, math.nan


@dataclass(frozen=True)
class Estimate:
    """Result of a bag: a row per segment, what was odd about the bag, and the time that reading and estimating took.

    ``loads`` as ``weigh_bags`` has them, or ``uncounted``: why there are none; ``budget``: what makes the mass at the
    end uncertain; ``doubts``: what is wrong with the log, so that its masses, whatever their status, are not to be
    trusted; ``facts``: of what log by what tuning, for the report.
    """

    machine: Machine
    track: Track
    truth: TruthSeries | None
    warnings: tuple[str, ...]
    seconds: float
    loads: tuple[WeighedLoad, ...]
    budget: tuple[Cause, ...]
    doubts: tuple[str, ...] = ()
    uncounted: str = ''
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def last(self) -> Output:
        """The last segment, whole."""
        return self.track.last

    @property
    def states(self) -> States:
        """State, innovations and mass at the stamps; raises MbseError where they were not kept."""
        if self.track.states is None:
            raise MbseError('the states of the log were not kept')
        return self.track.states

    @property
    def stddev(self) -> np.ndarray:
        """Standard deviations (n, nx) of the state at the stamps."""
        return np.sqrt(self.states.variance)

    @property
    def log_seconds(self) -> float:
        """What the log covers, s: the sum of its segments, without pauses and steps of its clock."""
        return int(self.track.length_ns.sum()) * 1e-9

    def summary(self) -> list[str]:
        """The answer, what became of it at the end of the log, and the cost."""
        payload, unweighed, doubts = self.last.payload, why_unweighed(self.machine), self.doubts
        if unweighed:
            lines = [f'no mass: {unweighed}']
        elif not math.isfinite(payload.mass):
            why, doubts = doubts[0] if doubts else payload.reason or 'no sample of it can be trusted yet', doubts[1:]
            lines = [f'payload unknown: {why}', *held_lines(self.track)]
        else:
            known = math.isfinite(payload.upper - payload.lower)
            interval = f'{payload.lower:.2f} to {payload.upper:.2f} kg' if known else 'not known yet'
            doubt = 'not trusted: ' if doubts else ''
            lines = [f'payload {doubt}{payload.mass:.2f} kg, 95 % interval {interval}, from {payload.samples} samples '
                     'of the mass']
            causes = [f'{cause} {cause.kg:.2g} kg' for cause in self.budget[:LARGEST] if cause.kg > 0.0]
            if known and causes:
                lines.append(f'largest causes of the interval, 1 sigma: {", ".join(causes)}')
            if payload.lower > 0.0 and any(name.startswith('moment/') for name in self.last.state.names):
                places = ', '.join(f'{axis} {1e3 * value:.0f} mm (1 sigma {1e3 * stddev:.0f})'
                                   for axis, (value, stddev) in _centre(self).items() if stddev > 0.0)
                lines.append(f'its centre in the frame of {self.machine.payload_data.body}: {places}')
            if payload.status is not PayloadStatus.UPDATING:
                lines.append(f'held at the end of the log: {payload.reason}')
        lines += [f'not trusted: {doubt}' for doubt in doubts]
        lines += [f'load {k}: {load.text}' for k, load in enumerate(self.loads, 1)]
        lines += [f'loads are not counted: {self.uncounted}'] if self.uncounted and not unweighed else []
        return [*lines, cost_line(self.seconds, self.log_seconds)]

    def to_json(self, full: bool = False) -> dict[str, Any]:
        """Payload at the end, cost, and in ``full`` the state at the stamps."""
        payload = self.last.payload
        doubtful = self.doubts and payload.status is not PayloadStatus.NO_DATA
        status = PayloadStatus.IMPLAUSIBLE if doubtful else payload.status
        centre = list(_centre(self).values()) if self.machine.description.payload is not None else [UNKNOWN]
        result: dict[str, Any] = {
            'payload': {'mass': payload.mass, 'stddev': payload.stddev, 'interval': [payload.lower, payload.upper],
                        'status': status.name.lower(), 'faults': payload.faults.words, 'samples': payload.samples,
                        **({'trusted': False, 'doubts': list(self.doubts)} if self.doubts else {}),
                        'seconds': {status.name.lower(): seconds
                                    for status, seconds in held_seconds(self.track).items()},
                        'centre': [centre[0][0], centre[-1][0]], 'centre_stddev': [centre[0][1], centre[-1][1]],
                        'budget': [{'cause': cause.cause, 'kg': cause.kg, 'assumed': cause.assumed}
                                   for cause in self.budget],
                        'loads': [load.values() for load in self.loads]},
            'cost': cost(self.seconds, self.log_seconds)}
        return result | ({'state': _state(self)} if full else {})


def _centre(estimate: Estimate) -> dict[str, tuple[float, float]]:
    """Where the load is at the end of the log, see ``center_of``."""
    state = estimate.last.state
    return center_of(estimate.machine, state.names, state.mean[-1], state.covariance)


def _state(estimate: Estimate) -> dict[str, Any]:
    """Kinds of entries, each (n, entries), their standard deviations, and the payload's track."""
    names, states, stddev = estimate.last.state.names, estimate.states, estimate.stddev
    state: dict[str, Any] = {'stamp_ns': estimate.track.stamp_ns, 'names': names}
    for kind in dict.fromkeys(name.split('/')[0] for name in names):
        columns = [i for i, name in enumerate(names) if name.startswith(kind + '/')]
        state |= {kind: states.mean[:, columns], f'{kind}_stddev': stddev[:, columns]}
    for item in ('mass', 'lower', 'upper'):
        state[f'payload_{item}'] = getattr(states, item)
    state['payload_status'] = estimate.track.status_words
    return state | states.columns


def truth_at(truth: TruthSeries | None, machine: Machine, stamps_ns: np.ndarray) -> TruthSeries | None:
    """Truth at stamps (n,), ns: linear between those recorded, NaN outside them and in holes of more than 0.1 s.

    None where there is none, or it is of a machine with other independent coordinates or volumes.
    """
    if truth is None or (truth.cylinders, truth.volumes) != (machine.coordinates, machine.volumes):
        return None
    known, rows = np.unique(truth.stamp_ns, return_index=True)
    after = np.clip(np.searchsorted(known, stamps_ns), min(1, len(known) - 1), len(known) - 1)
    hole = (known[after] - known[np.maximum(after - 1, 0)] > LONGEST_HOLE_NS) & (known[after] != stamps_ns)
    t, wanted = (known - known[0]) * 1e-9, np.where(hole, np.nan, (stamps_ns - known[0]) * 1e-9)

    def at(column: np.ndarray) -> np.ndarray:
        flat = column[rows].reshape(len(known), -1).T
        values = np.array([np.interp(wanted, t, row, left=np.nan, right=np.nan) for row in flat])
        return values.T.reshape(len(stamps_ns), *column.shape[1:])

    columns = {name: at(getattr(truth, name)) for name in COLUMNS}
    return TruthSeries(stamps_ns, truth.cylinders, volumes=truth.volumes, **columns)
