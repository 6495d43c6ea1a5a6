# SPDX-License-Identifier: Apache-2.0
"""Trust in a mass after what speaks against it: it comes back with motion, and later each time that it is lost again.

A sensor in another unit, chambers that are swapped or a stroke that is reversed make masses that contradict each other
in one motion and agree in the next. So after a mass that was implausible the next ones must agree for a while of motion
before they count again. So it is after masses that change to and fro for long, or loads that change more often than
loads do: each alarm, of whatever kind, and each mass that wanders adds to a doubt, which motion without any takes off.
A start begins with doubt.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import copysign, hypot, inf, isfinite

from ..payload.mass import Mass

FIRST = 2.0             # s of motion without an alarm, after which a mass counts again
LONGEST = 16.0          # ... and at most: they double where trust is lost again within ...
PROBATION = 30.0        # ... s of motion
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
SETTLES = 1.0           # s of motion after the start in which none is: the first masses know little, and move
WANDERED = 'the mass moved by more than its interval while no load changed'


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
        self._since, self._found, self._settling = inf, False, SETTLES
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
             direction: float = 0.0, one_way: bool = False) -> None:
        """A segment of ``dt``, s: whether its mass was implausible, or there was another alarm (a load that changes, an
        observer in trouble), whether it was weighed in motion, and whether the machine touched something; ``refused``:
        all samples of a sensor were rejected, which no soil explains; ``wanders``: see ``Drift``; ``blind``: alarmed
        before there was any mass; ``now``: what the alarm would be, if it is one, '' for what the one before has left;
        ``direction``: in which the mass moves, 1 or -1, 0 if that is unknown; ``one_way``: see ``OneWay``."""
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
        if implausible or alarm and self._changing >= LASTING or (alarm or wanders or blind) and self._doubt > ALARMS:
            if not self.lost or self._calm > RECOVERED:
                self.wanted = FIRST if self._calm > PROBATION else min(2.0 * self.wanted, LONGEST)
            self.lost, self._calm = True, 0.0
        elif (alarm or soil) and self.lost:
            self._calm = 0.0
        else:
            self._calm += motion
            self.lost = self.lost and self._calm < self.wanted
        alarmed = alarm or blind or implausible or soil or wanders
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
