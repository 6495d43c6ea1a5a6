# SPDX-License-Identifier: Apache-2.0
"""Whether the load changes: where an estimate of motion and mass gives up what it knew of the mass.

The observer forgets old information on the mass when the mass keeps changing in one direction (see
``filters.weighing``). That alone may be an accident; so a change is over when the mass is known again, and stays.
Which loads there were is found by ``scale.detection``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import hypot, inf, isfinite

from ..payload.mass import Mass
from .faults import GATES, NONE, Fault, PayloadStatus, reason_of

LOOK_BACK = 0.5         # s over which forgetting counts as a change
CHANGED = 0.5           # of the logarithm of the share of information that is kept, and ...
LOST = 1.1              # ... factor on the noise, from which a change begins
ANOTHER = 25.0          # of that logarithm, at once: the payload has found out that the load is another
AGREES = 2.0            # deviations that the noise said before, by which the first mass may still move
CALM = 1.0              # deviations of the noise by which the mass still moves within that time when it is over
LEAST = 0.005           # of the range of the payload's limits: smallest noise of a mass that changes
SETTLES = 1.0           # s of weighing in which a mass settles after a pause, or after it began to change
KNOWN = 0.01            # of that range: standard deviation of the noise from which the mass after a change is judged
PATIENT = 2.0           # s of weighing since, ...
ROUGHLY = 0.05          # ... after which so much is enough: where samples are rare it does not become less
UNSURE = 0.02           # ... and up to which a mass that still agrees with that before has not changed


def plain_difference(new: Mass, old: Mass) -> tuple[float, float]:
    """By how much two masses differ, kg, and how uncertain that is where both are as wrong: not at all."""
    return new.mass - old.mass, 0.0


class LoadChange:
    """Of one machine with payload.limits ``span``, kg, apart; ``difference``: see ``PayloadEstimator.difference``;
    ``least``: s of weighing before the first mass counts."""

    def __init__(self, span: float,
                 difference: Callable[[Mass, Mass], tuple[float, float]] = plain_difference,
                 least: float = 0.0) -> None:
        self._difference, self._least, self._weighed = difference, least, 0.0
        self._span = span
        self._recent: deque[tuple[float, float, Mass]] = deque()
        self.found = False      # whether the first mass has agreed with itself for a while
        self.unseen = False     # whether the load may be another since it was weighed, and hardly was weighed again
        self.changing = False   # whether the load changes, or has changed and is not known yet
        self._since = 0.0       # s of weighing since it began to change
        self._paused, self._after_pause = inf, False     # s of weighing since a pause; whether that is why it changes

    def pause(self) -> None:
        """Sensors have paused: that something is forgotten next does not mean another load."""
        self._paused = 0.0

    def take(self, t: float, mass: Mass, kept: float, look_back: float = LOOK_BACK) -> None:
        """The mass at ``t``, s, which increases (``monitor.clocks``), and ``kept``: logarithm of the share of the
        first information that still counts; ``look_back``, s, over which forgetting counts as a change."""
        weighed = t - self._recent[-1][0] if mass.taken and self._recent else 0.0
        self._weighed += weighed
        self._paused += weighed
        self._since += weighed
        if not mass.taken and self._recent and kept < self._recent[-1][1]:
            self._weighed, self.unseen = 0.0, True      # what is forgotten though nothing was weighed
        self.unseen = self.unseen and self._weighed < self._least
        self._recent.append((t, kept, mass))
        while t - self._recent[0][0] > look_back:
            self._recent.popleft()
        begin, most, old = self._recent[0]
        if not self.found:
            self.found = (self._agree(mass, old, AGREES * old.noise, AGREES) and t - begin > LOOK_BACK / 2
                          and self._weighed >= self._least)
        elif not self.changing:
            forgotten = most - kept > CHANGED and mass.noise > max(LOST * old.noise, LEAST * self._span)
            if most - kept > ANOTHER:
                self._recent = deque([self._recent[-1]])
            self.changing = (most - kept > ANOTHER or forgotten and not self._calm(mass, old, AGREES, UNSURE)
                             or isfinite(old.mass) and not isfinite(mass.mass))
            self._after_pause, self._since = self._paused <= look_back, weighed
        elif t - begin > LOOK_BACK / 2 and not self.unseen and self._calm(
                mass, old, CALM, KNOWN if self._since < PATIENT else ROUGHLY):
            self.changing = False

    def _calm(self, new: Mass, old: Mass, deviations: float, known: float) -> bool:
        """Whether a mass is known to that share of the range, and the same as half a second before."""
        return new.noise < known * self._span and self._agree(new, old, deviations * new.noise, deviations)

    def _agree(self, new: Mass, old: Mass, room: float, deviations: float) -> bool:
        """Whether two masses differ by no more than ``room``, kg, and ``deviations`` of what the uncertain numbers make
        of another pose."""
        off, stddev = self._difference(new, old)
        return abs(off) <= hypot(room, deviations * stddev)

    @property
    def just_paused(self) -> bool:
        """Whether a mass still settles after a pause."""
        return self._paused <= SETTLES

    @property
    def just_begun(self) -> bool:
        """Whether the load began to change a moment ago: what drops pulls and pushes, and hardly anything is known."""
        return self.changing and self._since <= SETTLES

    @property
    def unweighed(self) -> bool:
        """Whether nothing was weighed since the load began to change, or since what was known of it was in doubt."""
        return self.changing and not self._since

    @property
    def unknown_again(self) -> bool:
        """Whether the load changes, and only a pause of sensors is the reason."""
        return self.changing and self._after_pause


Verdict = tuple[PayloadStatus, str, Fault]     # its reason and faults
FIRST_WEIGHED = 0.5     # s of weighing before a mass counts, at first and after that, where some cylinders do not weigh


def verdict_of(mass: Mass, change: LoadChange, limits: tuple[float, float], unseen: str, joint: bool) -> Verdict:
    """By how the load changes (``change``) and the ``limits`` of the payload, kg; ``unseen``: what may have moved while
    nothing weighed; ``joint``: the observer weighed it."""
    low, high = limits
    if joint and not change.found and mass.mass == mass.mass:
        return PayloadStatus.CHANGING, reason_of(Fault.FIRST_MASS), Fault.FIRST_MASS
    if change.unseen and change.changing:
        return PayloadStatus.CHANGING, (
            f'{reason_of(Fault.UNSEEN)}: {unseen} moved while nothing weighed; it counts again after '
            f'{FIRST_WEIGHED:g} s of weighing'), Fault.UNSEEN
    if mass.beyond(limits) and not change.just_begun:
        return PayloadStatus.IMPLAUSIBLE, (
            f'{reason_of(Fault.LIMITS)} {low:g} to {high:g} kg (payload.limits): overload, contact with something, '
            "or a sensor or the machine's file is wrong"), Fault.LIMITS
    if mass.contradiction:
        return PayloadStatus.IMPLAUSIBLE, (
            f"{reason_of(Fault.CONTRADICTION)}: a sensor or the machine's file is wrong, most likely "
            f'{mass.contradiction}'), Fault.CONTRADICTION
    if change.unknown_again:
        return PayloadStatus.NO_DATA, reason_of(Fault.PAUSED), Fault.PAUSED
    if change.changing and not change.unweighed or mass.settling:
        return PayloadStatus.CHANGING, reason_of(Fault.LOAD_CHANGES), Fault.LOAD_CHANGES
    if mass.surprise:
        return PayloadStatus.CHANGING, (
            f'{reason_of(Fault.SURPRISE)}: the machine has moved, or a sensor has become wrong'), Fault.SURPRISE
    return *GATES['too slow' if joint and mass.gate == 'open' and not mass.taken else mass.gate], NONE


def vague(mass: Mass, limits: tuple[float, float], share: float) -> Verdict | None:
    """Of a mass whose interval is wider than a ``share`` of the range of the ``limits``, kg: it is not weighed."""
    widest = share * (limits[1] - limits[0])
    if not 2.0 * mass.half_width > widest:
        return None
    words = f'its interval is wider than {widest:g} kg (payload.max_interval_share of payload.limits)'
    return PayloadStatus.NOT_OBSERVABLE, reason_of(Fault.VAGUE, words), Fault.VAGUE
