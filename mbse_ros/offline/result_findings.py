# SPDX-License-Identifier: Apache-2.0
"""What was odd about the estimates of a log, one line each."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..streams.pipeline import Output
from ..streams.records import ObserverStatus, PayloadStatus

FAR, VERY_FAR = 6.0, 20.0     # standard deviations; hard steps of the valve reach 12 on a model that fits
ODD_SHARE = 0.02
HELD = (PayloadStatus.NO_DATA, PayloadStatus.OUTSIDE_STROKE, PayloadStatus.NOT_OBSERVABLE)


def elapsed(outputs: Sequence[Output]) -> np.ndarray:
    """Time from the start of the log to the stamps (n,), s; where the clock was set back it goes on from there."""
    starts = np.array([o.segment.start_ns for o in outputs], dtype=np.int64)
    ends = np.array([o.state.stamp_ns for o in outputs], dtype=np.int64)
    before = np.concatenate([starts[:1], ends[:-1]])
    return np.cumsum(ends - np.where(starts >= before, before, starts)) * 1e-9


def state_lines(outputs: Sequence[Output], t: np.ndarray) -> list[str]:
    """Restarts, and how long the observer coasted without a sensor or was lost, with the first reason.

    ``t`` (n,): times of the outputs, s.
    """
    restarts = [place for place, o in enumerate(outputs) if o.segment.restart and place]
    lines = []
    if restarts:
        more = '' if len(restarts) == 1 else f', and {len(restarts) - 1} times more'
        back = any(outputs[i].segment.start_ns < outputs[i - 1].state.stamp_ns for i in restarts)
        reason = 'the clock was set back' if back else 'no sensor had sent for longer than interpolation.max_gap'
        lines.append(f'the estimate started anew at t = {t[restarts[0]]:.2f} s{more}: {reason}')
    for status, word in ((ObserverStatus.COASTING, 'coasted'), (ObserverStatus.LOST, 'was lost')):
        found = [place for place, o in enumerate(outputs) if o.state.status is status]
        if found:
            seconds = sum(len(outputs[i].segment.values) * outputs[i].segment.step_ns for i in found) * 1e-9
            lines.append(f'the observer {word} for {seconds:.2f} s in all, first at t = {t[found[0]]:.2f} s: '
                         f'{outputs[found[0]].state.reason}')
    return lines


def fit_lines(outputs: Sequence[Output], t: np.ndarray) -> list[str]:
    """Channels whose samples lie too far, or too often far, from what the observer predicts."""
    ratio = np.abs([o.state.innovation / o.state.innovation_stddev for o in outputs])
    ratio[~np.isfinite(ratio)] = 0.0
    lines = []
    for column, channel in enumerate(outputs[0].state.channels):
        far, worst = int(np.sum(ratio[:, column] > FAR)), int(np.argmax(ratio[:, column]))
        if ratio[worst, column] > VERY_FAR or far > ODD_SHARE * len(outputs):
            lines.append(f'{channel}: {far} of {len(outputs)} samples lie more than {FAR:g} sigma from their '
                         f'prediction, the farthest {ratio[worst, column]:.0f}, at t = {t[worst]:.2f} s: the sensor '
                         'jumped, or the model does not fit')
    return lines


def mass_lines(outputs: Sequence[Output], t: np.ndarray, limits: tuple[float, float]) -> list[str]:
    """A mass that the machine cannot carry, and one that is old because the data or the state gave out."""
    last, (low, high) = outputs[-1].payload, limits
    if not math.isfinite(last.mass):
        return []
    lines = []
    if last.upper < low or last.lower > high:
        lines.append(f'the mass is not within {low:g} to {high:g} kg (payload.limits of the machine): another machine, '
                     'unit or zero of a sensor?')
    if last.status in HELD:
        used = [float(time) for time, o in zip(t, outputs) if o.payload.status is PayloadStatus.UPDATING]
        lines.append(f'the mass is held: no sample of it after t = {max(used, default=0.0):.2f} s ({last.reason})')
    return lines
