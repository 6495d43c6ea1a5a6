# SPDX-License-Identifier: Apache-2.0
"""Whether the load changes, and whether its mass is trusted.

The load changes where an estimate of motion and mass gives up what it knew of the mass. The observer forgets old
information on the mass when the mass keeps changing in one direction (see ``filters.weighing``). That alone may be an
accident; so a change is over when the mass is known again, and stays. Which loads there were is found by
``scale.detection``.

Trust in a mass after what speaks against it comes back with motion, and later each time that it is lost again. A sensor
in another unit, chambers that are swapped or a stroke that is reversed make masses that contradict each other in one
motion and agree in the next. So after a mass that was implausible the next ones must agree for a while of motion before
they count again. So it is after masses that change to and fro for long, or loads that change more often than loads do:
each alarm, of whatever kind, and each mass that wanders adds to a doubt, which motion without any takes off. A start
begins with doubt.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import copysign, hypot, inf, isfinite

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
FIRST = 2.0             # s of motion without an alarm, after which a mass counts again
LONGEST = 16.0          # ... and at most: they double where trust is lost again within ...
PROBATION = 30.0        # ... s of motion
EXPLAINED = 4.0         # s of motion where an error of the model explains refused samples: it may be a sensor
RECOVERED = 0.5         # s of motion without an alarm after which trust that had not come back yet is lost again
LASTING = 4.0           # s of motion in which loads may change ...
LEAK = 0.5              # ... of which each s of motion without a change takes off so much
AFTER_CONTACT = 3.0     # s after a contact, in which soil that still holds the bucket explains a mass that cannot be
ALARMS = 3.0            # alarms, beyond which trust is lost ...
AT_START = 1.5          # ... of which a start has so many: an alarm may be a load that is taken, two are not
FADES = 0.5             # ... and each s of motion without an alarm takes off so many
ONE_CHANGE = 3.0        # s of motion after an alarm, in which a mass that continues in its direction is the same load
WANDERING = 0.5         # alarms that each s adds in which the mass wanders
EVERY, OVER = 0.1, 0.5      # s of motion between two masses that are compared, and how far back
WANDERS = 1.4           # standard deviations of two masses' noise and of what their poses explain, and ...
FAR = 0.5               # ... half-widths of the interval: what is less is in it
FEWEST = 3              # masses that are compared
STARTS = 1.0            # s of motion after the start in which none is: the first masses know little, and move
WANDERED = 'the mass moved by more than its interval while no load changed'


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


def verdict_of(mass: Mass, change: LoadChange, limits: tuple[float, float], unseen: str, joint: bool,
               of: str = 'payload') -> Verdict:
    """By how the load changes (``change``) and the ``limits`` of the payload, kg, under the key ``of``; ``unseen``:
    what may have moved while nothing weighed; ``joint``: the observer weighed it."""
    low, high = limits
    if joint and not change.found and mass.mass == mass.mass:
        return PayloadStatus.CHANGING, reason_of(Fault.FIRST_MASS), Fault.FIRST_MASS
    if change.unseen and change.changing:
        return PayloadStatus.CHANGING, (
            f'{reason_of(Fault.UNSEEN)}: {unseen} moved while nothing weighed; it counts again after '
            f'{FIRST_WEIGHED:g} s of weighing'), Fault.UNSEEN
    if mass.beyond(limits) and not change.just_begun:
        return PayloadStatus.IMPLAUSIBLE, (
            f'{reason_of(Fault.LIMITS)} {low:g} to {high:g} kg ({of}.limits): overload, contact with something, '
            "or a sensor or the machine's file is wrong"), Fault.LIMITS
    if mass.contradiction:
        return PayloadStatus.IMPLAUSIBLE, (
            f"{reason_of(Fault.CONTRADICTION)}: a sensor or the machine's file is wrong, most likely "
            f'{mass.contradiction}'), Fault.CONTRADICTION
    if change.unknown_again:
        return PayloadStatus.NO_DATA, reason_of(Fault.PAUSED), Fault.PAUSED
    # at rest the mass before counts on, unless no load explains it
    if change.changing and (not change.unweighed or mass.beyond(limits)) or mass.settling:
        return PayloadStatus.CHANGING, reason_of(Fault.LOAD_CHANGES), Fault.LOAD_CHANGES
    if mass.surprise:
        return PayloadStatus.CHANGING, (
            f'{reason_of(Fault.SURPRISE)}: the machine has moved, or a sensor has become wrong'), Fault.SURPRISE
    return *GATES['too slow' if joint and mass.gate == 'open' and not mass.taken else mass.gate], NONE


def vague(mass: Mass, limits: tuple[float, float], share: float, of: str = 'payload') -> Verdict | None:
    """Of a mass whose interval is wider than a ``share`` of the range of the ``limits``, kg, under the key ``of``: it
    is not weighed."""
    widest = share * (limits[1] - limits[0])
    if not 2.0 * mass.half_width > widest:
        return None
    words = f'its interval is wider than {widest:g} kg (payload.max_interval_share of {of}.limits)'
    return PayloadStatus.NOT_OBSERVABLE, reason_of(Fault.VAGUE, words), Fault.VAGUE


def with_zeros(mass: Mass, verdict: Verdict) -> Verdict:
    """The status of a mass whose poses have shown that zeros of position sensors are wrong, with that as its reason."""
    status, why, _ = verdict
    words = (f'{reason_of(Fault.CONTRADICTION)}, unless {" and ".join(mass.zeros)}: the zero is not that of the file; '
             'the mass is corrected by it')
    return status, f'{why}; {words}' if why else words, Fault.CONTRADICTION


@dataclass(frozen=True)
class Alarm:
    """``why``, in words, at ``t``, s since the start."""

    why: str
    t: float


class Drift:
    """Whether a mass wanders by more than it says, while no load changes; ``difference``: see
    ``PayloadEstimator.difference``."""

    def __init__(self, difference: Callable[[Mass, Mass], tuple[float, float]]) -> None:
        self._difference = difference
        self._masses: deque[Mass] = deque(maxlen=round(OVER / EVERY) + 1)
        self._since, self._found, self._settling = inf, False, STARTS
        self.direction = 0.0        # in which the mass moves: that of the last two that were compared, 0 at the start

    def take(self, dt: float, mass: Mass, counts: bool, over: bool) -> bool:
        """A segment of ``dt``, s, whose mass ``counts``; ``over``: what was before is not to be compared with it."""
        self._settling -= dt * counts
        if over or self._settling > 0.0:
            self._masses.clear()
            self._since, self._found = inf, False
        self._since += dt * counts
        if counts and self._since >= EVERY:
            self._since = 0.0
            self._masses.append(mass)
            old = self._masses[0]
            off, stddev = self._difference(mass, old)
            self.direction = copysign(1.0, off) if off else self.direction
            room = max(WANDERS * hypot(mass.noise, old.noise, stddev), FAR * mass.half_width)
            self._found = len(self._masses) >= FEWEST and abs(off) > room
        return self._found


class OneWay:
    """Whether a mass that changes goes one way, as that of a load that is filled or dumped, however long it does; a
    sensor that is wrong makes it come back."""

    def __init__(self) -> None:
        self._low, self._high = inf, -inf

    def take(self, mass: Mass, changes: bool) -> bool:
        """A segment's mass, which ``changes`` or not: whether it does, and is as far up or down as it has been since it
        began to, to within its half-width."""
        if not changes:
            self._low, self._high = inf, -inf
        if isfinite(mass.mass):
            self._low, self._high = min(self._low, mass.mass), max(self._high, mass.mass)
        return changes and not min(mass.mass - self._low, self._high - mass.mass) > mass.half_width


class Trust:
    """Of one payload estimate, segment by segment."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """As at the start: trusted, but not for long."""
        self.wanted = FIRST         # s of motion without an alarm
        self.lost = False           # whether a mass that looks well does not count yet
        self.alarm, self._lately = Alarm('', 0.0), 0.0     # the last one, and when it last was one, s
        self._calm, self._changing, self._free = inf, 0.0, inf
        self._doubt, self._alarmed = AT_START, False
        self._count = 0     # alarms since there was no doubt
        self._direction, self._alarm_ago = 0.0, inf      # of the last alarm, and s of motion since

    @property
    def left(self) -> float:
        """s of motion without an alarm after which a mass counts again; 0 while it does."""
        return max(0.0, self.wanted - self._calm) if self.lost else 0.0

    @property
    def words(self) -> str:
        """Since which alarm a mass does not count, and what ends that."""
        last = f', the last of {self._count} alarms' if self._count > 1 else ''
        return (f'{self.alarm.why} at t = {self.alarm.t:.1f} s{last}; the masses must agree for '
                f'{self.wanted:g} s of motion without an alarm')

    def left_words(self, now: float) -> str:
        """How long ago the last alarm was, ``now`` s since the start, and what is left; '' while a mass counts."""
        return (f'the last alarm was {now - self._lately:.0f} s ago; {self.left:.1f} s of motion without one are left'
                if self.lost else '')

    def take(self, dt: float, implausible: bool, alarm: bool, moved: bool, contact: bool = False,
             refused: bool = False, wanders: bool = False, blind: bool = False, now: Alarm = Alarm('', 0.0),
             direction: float = 0.0, one_way: bool = False, explained: bool = False) -> None:
        """A segment of ``dt``, s: whether its mass was implausible, or there was another alarm (a load that changes, an
        observer in trouble), whether it was weighed in motion, and whether the machine touched something; ``refused``:
        all samples of a sensor were rejected, which no soil explains; ``wanders``: see ``Drift``; ``blind``: alarmed
        before there was any mass; ``now``: what the alarm would be, if it is one, '' for what the one before has left;
        ``direction``: in which the mass moves, 1 or -1, 0 if that is unknown; ``one_way``: see ``OneWay``;
        ``explained``: an error of the model has just been found for samples that had been refused."""
        motion, soiled = dt if moved else 0.0, self._free <= AFTER_CONTACT
        self._free = 0.0 if contact else self._free + dt
        soil = implausible and self._free <= AFTER_CONTACT
        implausible, wanders = implausible and not soil or refused, wanders and not soiled
        if not alarm:
            self._changing = max(0.0, self._changing - LEAK * motion)
        elif not one_way:
            self._changing = min(self._changing + motion, LASTING)
        self._add(motion, alarm or blind, wanders, soiled, direction)
        if blind:
            self._doubt = 2.0 * ALARMS
        if explained:
            self.lost, self._calm, self.wanted = True, 0.0, max(self.wanted, EXPLAINED)
        elif implausible or alarm and self._changing >= LASTING or (alarm or wanders or blind) and self._doubt > ALARMS:
            if not self.lost or self._calm > RECOVERED:
                self.wanted = FIRST if self._calm > PROBATION else min(2.0 * self.wanted, LONGEST)
            self.lost, self._calm = True, 0.0
        elif (alarm or soil) and self.lost:
            self._calm = 0.0
        else:
            self._calm += motion
            self.lost = self.lost and self._calm < self.wanted
        alarmed = alarm or blind or implausible or soil or wanders or explained
        if alarmed:
            # a mass that wanders is one alarm, however long it does
            self.alarm = Alarm(now.why or self.alarm.why, self.alarm.t if self._alarmed and wanders else now.t)
            self._lately = now.t
        if alarmed and not self._alarmed:
            self._count += 1
        elif not self._doubt and not self.lost:
            self._count = 0
        self._alarmed = alarmed

    def _add(self, motion: float, alarm: bool, wanders: bool, soiled: bool, direction: float) -> None:
        """An alarm counts where it begins, unless soil explains it, or it is the load of the last alarm that is still
        being filled or emptied."""
        if not (alarm or wanders):
            self._doubt, self._alarm_ago = max(0.0, self._doubt - FADES * motion), self._alarm_ago + motion
            return
        if not self._alarmed:
            same = direction != 0.0 and direction == self._direction and self._alarm_ago <= ONE_CHANGE
            self._doubt += not (soiled or same)
            self._direction = direction
        self._alarm_ago = 0.0
        self._doubt = min(self._doubt + WANDERING * motion * wanders, 2.0 * ALARMS)
