# SPDX-License-Identifier: Apache-2.0
"""What was odd about the samples of a log, one line each: nothing is lost silently."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from ..bags.reader import Sample
from ..errors import SampleError
from ..machine import Machine
from ..resources import share_directory

WORDS = {'before the start': 'came before every sensor and command had sent',
         'before a restart': 'were still waiting for another sensor when the estimate started anew'}
LIMIT = 200     # characters of a refused sample's message
STROKE_MARGIN = 0.01


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
    for place, (channel, stamp, value) in enumerate(samples):
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
    for channel, _, value in samples:
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
    steps[:-1][steps[1:] < 0] = 0     # a lone stamp in the future is no pause
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
