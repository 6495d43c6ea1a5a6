# SPDX-License-Identifier: Apache-2.0
"""What to try where a filter of a mechanism does not follow its sensors: the same words from all that run one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..monitor.channels import FITTED, MISFIT

USUAL = 0.455       # median of chi2 with one degree: of the squares of innovations over their variance
SHORT = 0.005       # s: of a longer step a shorter one is what to try first
SOON = 1.0          # s after its start, within which the start is to blame
UNIT = 'its unit: degrees for rad, mm for m, turns a minute for rad/s, g for m/s^2'


def advice(names: Sequence[str], t: np.ndarray, innovation: np.ndarray, stddev: np.ndarray, used: np.ndarray,
           lost: np.ndarray | None = None, step: float | None = None) -> list[str]:
    """A line for each channel (s,) that the filter does not follow: how far its samples are off, and what to try.

    ``t`` (k,), s, ``innovation`` and its ``stddev`` (k, s), NaN where missing; ``used`` (k, s); ``lost`` (k,): whether
    the state was, default nowhere; ``step`` of the filter, s, default that of ``t``. A channel is named if the median
    of its squares is above ``monitor.channels.MISFIT``, or the state was lost while the gate refused its samples.
    """
    step = step or (float(np.median(np.diff(t))) if len(t) > 1 else 0.0)
    found = []
    for name, off, spread, taken in zip(names, innovation.T, stddev.T, used.T):
        with np.errstate(all='ignore'):
            ratio = np.abs(off) / spread
        there = np.isfinite(ratio)
        if not there.any():
            continue
        median, refused = float(np.median(ratio[there] ** 2)), there & ~taken
        is_lost = lost is not None and bool(refused.any()) and bool((lost & refused).any())
        if not is_lost and not (median > MISFIT and there.sum() >= FITTED):
            continue
        bad = refused if refused.any() else there & (ratio ** 2 > MISFIT)
        early = len(t) > 0 and t[np.flatnonzero(bad)[0]] - t[0] < SOON
        found.append(f'{name} does not fit: median NIS {median:.3g}, expected {USUAL}; up to '
                     f'{ratio[there].max():.3g} standard deviations off; {int(refused.sum())} of {int(there.sum())} '
                     f'samples refused. Try {"; ".join(_tries(step, name, early))}')
    if not found and lost is not None and lost.any():
        found = [f'the filter of {", ".join(names)} was lost. Try {"; ".join(_tries(step, "each sensor", True))}']
    return found


def _tries(step: float, name: str, early: bool) -> list[str]:
    """What helps, the most likely first."""
    return [*([f'a shorter step (now {step:.3g} s)'] if step > SHORT else []),
            'larger noises of the motion (tune finds them)', f'the stddev of {name}',
            *(['another start'] if early else []), UNIT]
