# SPDX-License-Identifier: Apache-2.0
"""Pressures that step: from one sample to the next, while those before and after hardly change.

A chamber's pressure changes by what flows in and by the piston's motion, and both take several samples, which change,
too; what pushes the piston changes both of its chambers. A single pressure that is another from one sample on, among
samples that are calm, is not one of the fluid: its amplifier, its plug or its supply has changed. The mass would take
it for a load. So the sensor is refused until it steps back as far.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from ..machine import Machine
from ..machine.equations import pressure_pairs

SIDE = 4            # changes from sample to sample on each side of one
WIDTH = 2 * SIDE + 1
NOISES = 3.0        # deviations of the noise that are added to what the changes beside it scatter
SUDDEN = 3.0        # times this sum: a change that is sudden; in sound logs of four machines it was up to 1.8 alone
CALM = 1.0          # ... of the other chamber, up to which it knows nothing of the change
LONGEST = 0.0255    # s between samples, beyond which a valve that opens may do all of its work
BACK = 0.5          # of a step, from which on one the other way takes it back


def suddenness(changes: np.ndarray, noise: float) -> np.ndarray:
    """By what factor the middle one of ``changes`` (n, WIDTH) from sample to sample is off the median of the others
    (n,): over how much these differ from it at most, and ``NOISES`` of the ``noise``.

    Where others are zero the sensor has steps, and one of them counts as noise, too. Where they are so on one side
    alone, it repeats one value there: that is another fault, and the factor 0.
    """
    others = np.delete(changes, SIDE, axis=1)
    middle = np.median(others, axis=1)
    sizes = np.abs(changes)
    step = np.where((others == 0.0).any(axis=1), np.where(sizes > 0.0, sizes, np.inf).min(axis=1), 0.0)
    room = np.abs(others - middle[:, None]).max(axis=1) + NOISES * noise + np.where(step < np.inf, step, 0.0)
    still = others == 0.0
    stuck = still[:, :SIDE].any(axis=1) != still[:, SIDE:].any(axis=1)
    return np.asarray(np.where(stuck, 0.0, np.abs(changes[:, SIDE] - middle) / room))


class PressureSteps:
    """Watches the pressures of the cylinders of one machine of which both are measured."""

    def __init__(self, machine: Machine) -> None:
        places = {channel.name: (k, channel.sensor.noise) for k, channel in enumerate(machine.all_channels)}
        pairs = [(places[one], places[other]) for one, other in pressure_pairs(machine).values()]
        self._partners = [(*own, *other) for pair in pairs for own, other in (pair, pair[::-1])]
        self.reset()

    def reset(self) -> None:
        """Forget the samples before, and that any has stepped."""
        self._rows: deque[tuple[float, Sequence[float]]] = deque(maxlen=WIDTH + 1)
        self._stepped: dict[int, float] = {}

    def take(self, t: float, samples: Sequence[float]) -> list[int]:
        """Places of the channels that have stepped and not back; ``samples`` (channels,), SI, at ``t``, s, NaN where
        there is none. A step shows ``SIDE`` samples later."""
        if self._rows and not 0.0 < t - self._rows[-1][0] <= LONGEST:
            self._rows.clear()
        self._rows.append((t, samples))
        if len(self._rows) > WIDTH:
            before, after = self._rows[SIDE][1], self._rows[SIDE + 1][1]
            for place, noise, other, other_noise in self._partners:
                size = after[place] - before[place]
                if abs(size) > SUDDEN * NOISES * noise and self._at(place, noise) > SUDDEN and self._at(
                        other, other_noise) < CALM:
                    self._step(place, size)
        return list(self._stepped)

    def _at(self, place: int, noise: float) -> float:
        return float(suddenness(np.diff([[row[place] for _, row in self._rows]]), noise)[0])

    def _step(self, place: int, size: float) -> None:
        old = self._stepped.get(place, 0.0)
        if old * size < 0.0 and abs(size) > BACK * abs(old):
            del self._stepped[place]
        elif not old:
            self._stepped[place] = size
