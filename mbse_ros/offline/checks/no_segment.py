# SPDX-License-Identifier: Apache-2.0
"""Why the samples of a log give no segment, where every input has sent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...monitor.rates import too_slow
from ..log_samples import LogSamples
from ..long_log import LongLog


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
        reason += ' (--valve unknown needs no command)'
    reason += f'; {interpolator.clocks.words}' if interpolator.clocks.apart else ''
    others = [] if other else [line for line in warnings if line.partition(':')[0] not in silent]
    return '; '.join([*other, f'{reason} ({samples.count} samples read)', *others])
