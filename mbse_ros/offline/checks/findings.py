# SPDX-License-Identifier: Apache-2.0
"""What was odd about the samples of a log and about the estimates, one line each: nothing is lost silently."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from ...bags.channel_samples import Sample
from ...errors import SampleError
from ...machine import Machine
from ...resources import share_directory
from ...streams.pipeline import Output
from ...streams.records import ObserverStatus, PayloadStatus

WORDS = {'before the start': 'came before every sensor and command had sent',
         'before a restart': 'were still waiting for another sensor when the estimate started again'}
LIMIT = 200     # characters of a refused sample's message
STROKE_MARGIN = 0.01
FAR, VERY_FAR = 6.0, 20.0     # standard deviations; hard steps of the valve reach 12 on a model that fits
ODD_SHARE = 0.02
HELD = (PayloadStatus.NO_DATA, PayloadStatus.OUTSIDE_STROKE, PayloadStatus.NOT_OBSERVABLE)


def dropped_lines(dropped: Iterable[SampleError]) -> list[str]:
    """Samples that were refused: the first of each channel and kind, with how many there were."""
    kinds: dict[tuple[str, bool], list[SampleError]] = {}
    for error in dropped:
        kinds.setdefault((error.channel, error.expected.startswith('a stamp')), []).append(error)
    return [f'{_samples(len(errors))} of {channel} dropped, the first: {str(errors[0])[:LIMIT]}'
            for (channel, _), errors in kinds.items()]


def unused_lines(dropped: dict[str, int]) -> list[str]:
    """Samples that found no use, out of the interpolation's counters."""
    return [f'{_samples(dropped[reason])} not used: they {text}' for reason, text in WORDS.items()
            if dropped.get(reason)]


def sample_lines(samples: Sequence[Sample], refused: Collection[int], start_ns: int, gap_ns: int) -> list[str]:
    """Pauses longer than ``gap_ns`` and missing values of each channel; channels with the same fate share a line.

    ``refused``: places of the samples that were dropped; ``start_ns``: instant of t = 0.
    """
    stamps: dict[str, list[int]] = {}
    missing: dict[str, list[int]] = {}
    for place, (channel, stamp, value, *_) in enumerate(samples):
        if place not in refused:
            stamps.setdefault(channel, []).append(stamp)
            if value != value:
                missing.setdefault(channel, []).append(stamp)
    end = max((channel[-1] for channel in stamps.values()), default=0)
    fates: dict[str, list[str]] = {}
    for channel, instants in stamps.items():
        for line in _pauses(np.array(instants), start_ns, end, gap_ns):
            held = '; its last value was held' if channel.startswith('command/') else ''
            fates.setdefault(line + held, []).append(channel)
    for channel, instants in missing.items():
        line = f'{_samples(len(instants))} without a value (NaN), the first at t = {_time(instants[0], start_ns)}'
        fates.setdefault(line, []).append(channel)
    return [f'{", ".join(channels)}: {line}' for line, channels in fates.items()]


def stroke_lines(samples: Iterable[Sample], machine: Machine) -> list[str]:
    """Positions that the machine cannot have: outside a stroke or a joint's limits by more than 1 % of them."""
    values: dict[str, list[float]] = {}
    for channel, _, value, *_ in samples:
        values.setdefault(channel, []).append(value)
    lines = []
    for name, (low, high, what, unit) in _ranges(machine).items():
        position, room = np.array(values.get(f'position/{name}', ())), STROKE_MARGIN * (high - low)
        outside = position[(position < low - room) | (position > high + room)]
        if outside.size:
            lines.append(f'position/{name}: {_samples(outside.size)} of {position.size} outside {what} of '
                         f'{low:g} to {high:g} {unit}, the first {outside[0]:.4g} {unit}')
    return lines


def _ranges(machine: Machine) -> dict[str, tuple[float, float, str, str]]:
    """Strokes of pistons and limits of joints by coordinate, with the words for them and the unit."""
    found = {name: (*stroke, 'the stroke', 'm') for name, stroke in zip(machine.cylinders, machine.stroke.tolist())}
    for name, coordinate in machine.description.coordinates.items():
        joint = machine.description.joints.get(coordinate.joint)
        if joint is not None and joint.limits is not None:
            found[name] = (*joint.limits, 'the limits', 'rad' if joint.type == 'revolute' else 'm')
    return found


def _pauses(stamps: np.ndarray, start: int, end: int, gap: int) -> list[str]:
    """The longest of the pauses, and the silence before the end of the log."""
    lines, steps = [], np.diff(stamps)
    steps[:-1][steps[1:] < 0] = 0     # a single stamp in the future is not a pause
    count = int(np.sum(steps > gap))
    if count:
        place = int(np.argmax(steps))
        number = '' if count == 1 else (f', the longest of {count} pauses of more than {gap * 1e-9:g} s '
                                        '(interpolation.max_gap)')
        lines.append(f'silent for {steps[place] * 1e-9:.2f} s from t = {_time(stamps[place], start)}{number}')
    if end - stamps[-1] > gap:
        lines.append(f'silent from t = {_time(stamps[-1], start)} to the end')
    return lines


def machine_lines(frame: str, machine: Machine) -> list[str]:
    """A bag whose headers name another of the known machines."""
    known = {path.stem for path in (share_directory() / 'config' / 'machines').glob('*.yaml')}
    if frame == machine.name or frame not in known:
        return []
    return [f'the bag was recorded on {frame} (frame_id of its samples) and is estimated as {machine.name}']


def _samples(count: int) -> str:
    return f'{count} sample' + ('' if count == 1 else 's')


def _time(stamp_ns: int, start_ns: int) -> str:
    return f'{(int(stamp_ns) - start_ns) * 1e-9:.2f} s'


def elapsed(outputs: Sequence[Output]) -> np.ndarray:
    """Time from the start of the log to the stamps (n,), s; where the clock was set back it continues from there."""
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
        lines.append(f'the estimate started again at t = {t[restarts[0]]:.2f} s{more}: {reason}')
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
    """A mass that the machine cannot carry, and one that is old because data ended or the state was lost."""
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
