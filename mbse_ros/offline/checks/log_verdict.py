# SPDX-License-Identifier: Apache-2.0
"""What is said of a log, by whatever command reads it: what was odd about its samples, its states and masses, why these
are not to be trusted, or why no segment came out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...bags.recorded_commands import RecordedCommands
from ...machine import Machine
from ...monitor.clocks import Ages, Elapsed
from ...monitor.faults import Fault
from ...monitor.rates import too_slow
from ...payload.mass import Cause
from ...payload.unstated import UNSTATED
from ...streams.channel_buffer import LONGER, SHORT
from ...streams.pipeline import Pipeline
from ...streams.records import PayloadStatus
from ..log_samples import LogSamples, counted
from ..long_log import LongLog
from ..track import FAR, Track, coasting_lines
from .another_machine import doubted_machine
from .plausibility import judged

WORDS = {'before the start': 'came before every sensor and command had sent',
         'before a restart': 'were still waiting for another sensor when the estimate started again'}
STROKE_MARGIN = 0.01
VERY_FAR = 20.0     # standard deviations
ODD_SHARE = 0.02
DOUBTED, DOUBTED_S = 0.1, 1.0       # share of the time of weighing, and s, of masses that are implausible
MOSTLY = 0.8        # such a share, where contact explains them
HELD = (PayloadStatus.NO_DATA, PayloadStatus.OUTSIDE_STROKE, PayloadStatus.NOT_OBSERVABLE)
COPES = ('rate', 'coarse', 'stuck', 'repeated', 'order', 'jump', 'unstamped', 'gap', 'huge', 'forces')


def copes_with(gate: float) -> tuple[str, ...]:
    """Kinds of findings with which an estimate with such a gate copes: by its interval, or it leaves the samples out
    and holds the mass. A gate of 1 leaves no spikes out."""
    return (*COPES, 'spikes') if gate < 1.0 else COPES


def unused_lines(dropped: dict[str, int]) -> list[str]:
    """Samples that found no use, out of the interpolation's counters."""
    return [f'{counted(dropped[reason])} not used: they {text}' for reason, text in WORDS.items()
            if dropped.get(reason)]


def command_lines(late: Mapping[str, int], used: RecordedCommands | None) -> list[str]:
    """Steps whose command came after their segment: in the log, or, where it has a record of them, live."""
    lines = []
    if used is None or not used.recorded:
        lines += [f'{command}: came too late for {count} steps, which had the one before it; a segment waits for '
                  'interpolation.command_wait' for command, count in sorted(late.items()) if count]
    elif used.changed:
        lines.append(f'{used.changed} steps with the commands that the recorded segments have: commands came too late '
                     'for their segments, live or in the bag')
    if used is not None and used.foreign:
        lines.append(f'{used.foreign} steps of the recorded segments with commands that no topic has sent: '
                     'those of the topics are used')
    return lines


def sample_lines(samples: LogSamples, start_ns: int, gap_ns: int, clock: Elapsed | None = None) -> list[str]:
    """Pauses over which nothing is interpolated, up to ``gap_ns``, and missing values of each channel, without what was
    refused; channels with the same fate share a line. ``start_ns``: instant of t = 0; ``clock``: the axis of t, if not
    that of the stamps."""
    at = _by_stamp(start_ns) if clock is None else lambda stamp: f'{1e-9 * clock.at(int(stamp)):.2f} s'
    fates: dict[str, list[str]] = {}
    used = {name: samples[name].stamps[samples[name].used] for name in samples.by_first('used')}
    end = max((int(stamps[-1]) for stamps in used.values()), default=0)
    for channel, stamps in used.items():
        for line in _pauses(stamps, at, end, gap_ns, channel.startswith('command/')):
            held = '; its last value was held' if channel.startswith('command/') else ''
            fates.setdefault(line + held, []).append(channel)
    for channel in samples.by_first('missing'):
        column = samples[channel]
        instants = column.stamps[column.used & np.isnan(column.values)]
        line = f'{counted(len(instants))} without a value (NaN), the first at t = {at(instants[0])}'
        fates.setdefault(line, []).append(channel)
    return [f'{"all channels" if len(channels) == len(samples.names) > 2 else ", ".join(channels)}: {line}'
            for line, channels in fates.items()]


def stroke_lines(samples: LogSamples, machine: Machine) -> list[str]:
    """Positions that the machine cannot have: outside a stroke or a joint's limits by more than 1 % of them."""
    lines = []
    for name, (low, high, what, unit) in _ranges(machine).items():
        position, room = samples[f'position/{name}'].values, STROKE_MARGIN * (high - low)
        outside = position[(position < low - room) | (position > high + room)]
        if outside.size:
            lines.append(f'position/{name}: {counted(outside.size)} of {position.size} outside {what} of '
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


def _pauses(stamps: np.ndarray, at: Callable[[int], str], end: int, gap: int, held: bool) -> list[str]:
    """The longest of the pauses, and the silence before the end of the log."""
    lines, steps = [], np.diff(stamps)
    steps[:-1][steps[1:] < 0] = 0     # a single stamp in the future is not a pause
    usual = float(np.median(steps)) if len(steps) and not held else 0.0
    longest = gap if held else min(gap, max(gap // SHORT, round(LONGER * usual)))
    count = int(np.sum(steps > longest))
    if usual > gap:
        lines.append(f'comes every {usual * 1e-9:.2f} s ({1e9 / usual:.2g} Hz): no value is interpolated over more '
                     f'than interpolation.max_gap ({gap * 1e-9:g} s)')
    elif count:
        place = int(np.argmax(steps))
        number = '' if count == 1 else (f', the longest of {count} pauses of more than {longest * 1e-9:g} s '
                                        '(interpolation.max_gap)')
        lines.append(f'silent for {steps[place] * 1e-9:.2f} s from t = {at(stamps[place])}{number}')
    if end - stamps[-1] > longest:
        lines.append(f'silent from t = {at(stamps[-1])} to the end')
    return lines


def _by_stamp(start_ns: int) -> Callable[[int], str]:
    return lambda stamp: f'{(int(stamp) - start_ns) * 1e-9:.2f} s'


def state_lines(track: Track, budget: Sequence[Cause] = ()) -> list[str]:
    """Restarts, an error of the force balance, wrong zeros, and how long the observer coasted without a sensor or was
    lost, with the first reason."""
    t, restarts = track.elapsed, np.flatnonzero(track.restart[1:]) + 1
    lines = []
    if len(restarts):
        more = '' if len(restarts) == 1 else f', and {len(restarts) - 1} times more'
        back = np.any(track.start_ns[restarts] < track.stamp_ns[restarts - 1])
        reason = 'the clock was set back' if back else 'no sensor had sent for longer than interpolation.max_gap'
        lines.append(f'the estimate started again at t = {t[restarts[0]]:.2f} s{more}: {reason}')
    wrong = np.flatnonzero(track.observer_faults & np.uint32(Fault.FORCE_BALANCE))
    if len(wrong):
        kg = next((f', which makes {cause.kg:.2g} kg of the mass by now' for cause in budget
                   if cause.noise and wrong[-1] == len(t) - 1), '')
        kg += ''.join(f'; {cause.cause} may make {cause.kg:.2g} kg' for cause in budget if cause.cause == UNSTATED)
        lines.append(f'from t = {t[wrong[0]]:.2f} s on {track.reasons[track.observer_reason[wrong[-1]]]}'
                     f'{kg}. The interval of the mass is as wide as that from then on, before it may be too narrow: '
                     'mbse calibrate says which number of the file is missing')
    wrong = np.flatnonzero((track.faults & np.uint32(Fault.CONTRADICTION) != 0)
                           & (track.status == PayloadStatus.UPDATING))
    if len(wrong):
        lines.append(f'from t = {t[wrong[0]]:.2f} s on {track.reasons[track.reason[wrong[-1]]]}. Measure it, and '
                     'correct `bias` of the sensor in the file; if the zero is right, look at pins, friction and base')
    return lines + coasting_lines('observer', track.observer_status, track.length_ns, t,
                                  lambda k: track.reasons[track.observer_reason[k]])


def fit_lines(track: Track, single: bool = True, only: Collection[str] = ()) -> list[str]:
    """Channels whose samples lie often far, or with ``single`` once very far, from what the observer predicts;
    ``only``, if there are any, those that have spoilt the state, from which the others are far by that."""
    lines, count = [], len(track)
    for channel, far, worst, at in zip(track.last.state.channels, track.far, track.worst, track.worst_at):
        if (not only or channel in only) and (single and worst > VERY_FAR or far > ODD_SHARE * count):
            lines.append(f'{channel}: {far} of {count} samples lie more than {FAR:g} sigma from their prediction, the '
                         f'farthest {worst:.0f}, at t = {track.elapsed[at]:.2f} s: the sensor jumped, or the model '
                         'does not fit')
    return lines


def implausible_lines(track: Track) -> list[str]:
    """That masses were implausible for more than a moment of the time in which they were weighed, and why mostly.

    A machine that digs is not trusted for a while after each contact: with contacts that counts where little is left.
    """
    wrong, lengths = track.status == PayloadStatus.IMPLAUSIBLE, track.length_ns * 1e-9
    seconds, weighed = lengths[wrong].sum(), lengths[wrong | (track.status == PayloadStatus.UPDATING)].sum()
    after = track.faults & Fault.NOT_TRUSTED != 0
    digs = bool(np.any(track.status == PayloadStatus.CONTACT))
    if lengths[wrong & ~after].sum() < max(DOUBTED_S, DOUBTED * weighed) and seconds < max(
            DOUBTED_S, (MOSTLY if digs else DOUBTED) * weighed):
        return []
    codes, counts = np.unique(track.reason[wrong & (~after | after[wrong].all())], return_counts=True)
    reason = track.reasons[codes[counts.argmax()]]
    return [f'the mass was implausible for {seconds:.1f} of {weighed:.1f} s in which it was weighed: {reason}']


def mass_lines(track: Track, machine: Machine) -> list[str]:
    """A mass that the machine cannot carry, and one that is old because data ended or the state was lost."""
    last, lines = track.last.payload, []
    for name, payload in machine.description.every_payload.items():
        found, (low, high) = last.payloads.get(name, last), payload.limits
        if found.upper < low or found.lower > high:
            of, key = (f' of {name}', f'payloads.{name}') if last.payloads else ('', 'payload')
            lines.append(f'the mass{of} is not within {low:g} to {high:g} kg ({key}.limits of the machine): another '
                         'machine, unit or zero of a sensor?')
    if math.isfinite(last.mass) and last.status in HELD and not last.payloads:
        used = track.elapsed[track.status == PayloadStatus.UPDATING]
        lines.append(f'the mass is held: no sample of it after t = {np.max(used, initial=0.0):.2f} s ({last.reason})')
    return lines


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
    copes = copes_with(pipeline.observer.settings.gate)
    spoilt = {name for item in findings if item.kind == 'spikes' and item.kind not in copes for name in item.channels}
    doubted, unfit = ([], []) if clocks else (implausible_lines(track), fit_lines(track, False, spoilt))
    blamed = [*unfit, *doubted]
    wrong = tuple(finding.line for finding in findings if finding.kind not in copes)
    odd = [*sample_lines(samples, start_ns, gap_ns, track.clock), *stroke_lines(samples, machine),
           *state_lines(track, pipeline.payload.budget),
           *([] if clocks or commands else [*fit_lines(track, only=spoilt), *doubted]),
           *mass_lines(track, machine), *(item.line for item in findings if item.kind in copes), *verdict.notes]
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


def nothing(log: LongLog, samples: LogSamples, warnings: Sequence[str], other: Sequence[str] = (),
            strangers: Sequence[str] = ()) -> str:
    """Why no segment came out; ``other``: that the bag is of another machine, which explains what else is odd;
    ``strangers``: names in it that are no channels of the machine."""
    interpolator = log.pipeline.interpolator
    silent = [channel for channel in interpolator.waiting_for if channel not in samples.names]
    reason = no_segment(samples, interpolator.channels, round(1e9 * interpolator.settings.max_gap))
    if silent:
        machine = log.pipeline.machine
        channels = *machine.channels, *machine.commands
        question = doubted_machine(machine.name, channels, silent, strangers)
        lacks = f'{"No" if question else "no"} sample of {", ".join(silent)}'
        reason = question if len(silent) == len(channels) else f'{question}. {lacks}' if question else lacks
    if silent and all(channel.startswith('command/') for channel in silent):
        reason += ' (valve: unknown needs no command)'
    reason += f'; {interpolator.clocks.words}' if interpolator.clocks.apart else ''
    explained = other or silent and not samples.count
    others = [] if explained else [line for line in warnings if line.partition(':')[0] not in silent]
    return '; '.join([f'{reason} ({samples.count} samples read)', *other, *others])
