# SPDX-License-Identifier: Apache-2.0
"""Which of the interpolated values of a segment the observer takes, and how the states between them are made.

The values between two samples repeat these samples' noise: taken as measurements of their own they count it several
times, at whatever variance. So each sample corrects once, with its own variance, at its stamp; in between the model
predicts, and the states between two samples are put on a line. Where samples are rare the prediction gets too long for
a stiff fluid linearised: a sample is then taken in parts, and what its line may be off counts with its noise: see
``between_samples``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LONGEST_PREDICTION = 10e-3  # s; of samples that are rarer n parts are interpolated, each with n times the variance
MOST_PLANS = 256


@dataclass(frozen=True)
class SamplePlan:
    """``used`` (n, channels): the values to take; ``parts`` (channels,): how many make one sample; ``due`` afterwards;
    ``divided``: places of the channels that are taken in several.

    ``newest``: index of each channel's last value, ``since`` (channels,) steps before the end, where ``all_sampled``:
    each has one.
    A state of the steps ``inside`` is at the ``share`` (steps, 1) of the way from the state ``left`` to ``right``, both
    counted from the one before the segment. ``at_the_end``: each channel has one value, at the last step: one line.
    """

    used: np.ndarray
    parts: np.ndarray
    divided: np.ndarray
    due: np.ndarray
    newest: int | tuple[np.ndarray, np.ndarray]
    since: np.ndarray
    all_sampled: bool
    at_the_end: bool
    inside: np.ndarray
    left: np.ndarray
    right: np.ndarray
    share: np.ndarray

    def on_lines(self, before: np.ndarray, states: np.ndarray) -> np.ndarray:
        """States (n, nx) with those between samples on lines; ``before`` (nx,): the one before the segment."""
        if self.at_the_end:
            mean = np.empty(states.shape)
            mean[-1] = states[-1]
            line = np.multiply(self.share, states[-1] - before, out=mean[:-1])
            line += before
            return mean
        ends = np.empty((len(states) + 1, len(before)))
        ends[0], ends[1:] = before, states
        start, line = ends.take(self.left, axis=0), ends.take(self.right, axis=0)
        line -= start
        line *= self.share
        line += start
        mean = states.copy()
        mean[self.inside] = line
        return mean


class SamplePlans:
    """Plans of one observer, kept: segments repeat. What is due beyond whole samples is carried on, so that in the long
    run each sample counts once, also where sensors of several rates share a segment that does not end at a sample of
    each."""

    def __init__(self, channels: int) -> None:
        self._plans: dict[tuple[int, float, bytes, bytes], SamplePlan] = {}
        self._due = np.zeros(channels)

    def reset(self) -> None:
        """Nothing is due."""
        self._due = np.zeros_like(self._due)

    def next(self, n: int, repeats: np.ndarray, dt: float) -> SamplePlan:
        """For a segment of ``n`` steps ``dt``, s, with ``repeats`` (channels,) steps from sample to sample."""
        key = n, dt, repeats.tobytes(), self._due.tobytes()
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= MOST_PLANS:
                self._plans.clear()
            plan = self._plans[key] = _plan(n, repeats, dt, self._due)
        self._due = plan.due
        return plan


def _plan(n: int, repeats: np.ndarray, dt: float, due: np.ndarray) -> SamplePlan:
    parts = np.maximum(np.rint(repeats * (dt / LONGEST_PREDICTION)), 1.0)
    used, after = np.zeros((n, len(repeats)), dtype=bool), np.empty(len(repeats))
    for k, interval in enumerate((repeats / parts).tolist()):
        now = float(due[k]) + n / interval
        count = int(now + 0.5 + 1e-9)
        after[k] = now - count
        for j in range(count):
            used[max(0, n - 1 - round(j * interval)), k] = True
    since, sampled = np.argmax(used[::-1], axis=0), np.flatnonzero(used.any(axis=1))
    newest = (n - 1 - since, np.arange(len(repeats))) if since.any() else n - 1
    return SamplePlan(used, parts, np.flatnonzero(parts > 1.0), after, newest, since, bool(used.any(axis=0).all()),
                      bool(used[-1].all()) and len(sampled) == 1, *_lines(sampled))


def _lines(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Steps between samples, which are at the steps ``samples``; both ends of their lines; shares of the way."""
    ends = np.concatenate([[-1], samples])
    steps = np.setdiff1d(np.arange(ends[-1] + 1), samples)
    k = np.searchsorted(ends, steps)
    left, right = ends[k - 1], ends[k]
    return steps, left + 1, right + 1, ((steps - left) / (right - left))[:, None]
