# SPDX-License-Identifier: Apache-2.0
"""What is said of a log, by whatever command reads it: what was odd, why its masses are not to be trusted, or why no
segment came out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...bags.recorded_commands import RecordedCommands
from ...monitor.clocks import Ages
from ...monitor.rates import too_slow
from ...streams.pipeline import Pipeline
from ..log_samples import LogSamples
from ..long_log import LongLog
from ..track import Track
from .findings import (
    command_lines,
    fit_lines,
    implausible_lines,
    mass_lines,
    sample_lines,
    state_lines,
    stroke_lines,
    unused_lines,
)
from .plausibility import judged

COPES = ('rate', 'coarse', 'stuck', 'repeated', 'order', 'jump', 'unstamped', 'gap', 'spikes', 'huge', 'forces')
"""Kinds of findings with which an estimate copes: by its interval, or it leaves the samples out and holds the mass."""


@dataclass(frozen=True)
class LogVerdict:
    """``wrong``: what is wrong with the samples, which explains what else was ``odd``; ``doubts``: lines of both with
    which the masses of the log are not to be trusted, whatever their status."""

    wrong: tuple[str, ...]
    odd: tuple[str, ...]
    doubts: tuple[str, ...] = ()


def log_verdict(samples: LogSamples, track: Track, pipeline: Pipeline, ages: Ages | None = None) -> LogVerdict:
    """Of the samples of a log, or of a part of it, and of what ``pipeline`` made of them."""
    machine, settings = pipeline.machine, pipeline.interpolator.settings
    start_ns, gap_ns = int(track.start_ns[0]), round(1e9 * settings.max_gap)
    verdict = judged(samples, machine, ages, settings)
    findings = verdict.findings
    clocks = any(finding.kind == 'clock' for finding in findings)    # then it is neither the machine nor a sensor
    commands = [finding.line for finding in findings if finding.kind in ('rate', 'offset') and all(
        name.startswith('command/') for name in finding.channels)]      # nor then
    doubted, unfit = ([], []) if clocks else (implausible_lines(track), fit_lines(track, single=False))
    blamed = [*unfit, *doubted]
    wrong = tuple(finding.line for finding in findings if finding.kind not in COPES)
    odd = [*sample_lines(samples, start_ns, gap_ns, track.clock), *stroke_lines(samples, machine),
           *state_lines(track), *([] if clocks or commands else [*fit_lines(track), *doubted]),
           *mass_lines(track, machine), *(item.line for item in findings if item.kind in COPES), *verdict.notes]
    doubts = (*wrong, *(commands if commands and blamed else blamed))
    return LogVerdict(wrong, tuple(odd), tuple(dict.fromkeys(doubts)))


def stage_lines(pipeline: Pipeline, used: RecordedCommands | None = None) -> list[str]:
    """What the stages have counted, and say of their tuning, at the end of a log."""
    interpolator = pipeline.interpolator
    return [*unused_lines(interpolator.dropped), *command_lines(interpolator.late, used),
            *filter(None, [pipeline.observer.note, pipeline.payload.note, interpolator.clocks.words])]


def no_segment(samples: LogSamples, channels: Sequence[str], longest: int) -> str:
    """The one reason: a channel with a single sample, without any value, with intervals that are all longer than
    ``longest``, ns, or channels that no common time has."""
    used = {name: samples[name].stamps[samples[name].used] for name in channels}
    alone = [name for name, stamps in used.items() if len(stamps) < 2]
    if alone:
        return f'only one sample of {", ".join(alone)}: values are interpolated between two'
    empty = [name for name in channels if not np.isfinite(samples[name].values).any()]
    if empty:
        return f'all samples of {", ".join(empty)} are missing (NaN)'
    slow = {name: int(np.median(np.diff(stamps))) for name, stamps in used.items()
            if np.diff(stamps).min() > longest}
    if slow:
        return too_slow(slow, longest)
    first = max(used, key=lambda name: int(used[name][0]))
    last = min(used, key=lambda name: int(used[name][-1]))
    apart = (int(used[first][0]) - int(used[last][-1])) * 1e-9
    if apart >= 0.0:
        return f'the sensors have no time in common: {first} begins {apart:.2f} s after the end of {last}'
    return 'the samples of all sensors have less than one step of time in common'


def nothing(log: LongLog, samples: LogSamples, warnings: Sequence[str], other: Sequence[str] = ()) -> str:
    """Why no segment came out; ``other``: that the bag is of another machine, which explains what else is odd."""
    interpolator = log.pipeline.interpolator
    silent = [channel for channel in interpolator.waiting_for if channel not in samples.names]
    reason = no_segment(samples, interpolator.channels, round(1e9 * interpolator.settings.max_gap))
    if silent:
        reason = 'no sample of ' + ', '.join(silent)
    if silent and all(channel.startswith('command/') for channel in silent):
        reason += ' (valve: unknown needs no command)'
    reason += f'; {interpolator.clocks.words}' if interpolator.clocks.apart else ''
    others = [] if other else [line for line in warnings if line.partition(':')[0] not in silent]
    return '; '.join([*other, f'{reason} ({samples.count} samples read)', *others])
