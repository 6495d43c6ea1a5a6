# SPDX-License-Identifier: Apache-2.0
"""Trust in a mass after one that cannot be: it comes back with motion, and later each time that it is lost again.

A sensor in another unit, chambers that are swapped or a stroke that is reversed make masses that contradict each other
in one motion and agree in the next. So after a mass that was implausible the next ones must agree for a while of motion
before they count again. So it is after a load that changes for longer than loads do.
"""

from __future__ import annotations

from math import inf

NOT_YET = 'not trusted yet'     # how the reason begins with which a mass is held then
FIRST = 2.0             # s of motion without an alarm, after which a mass counts again
LONGEST = 8.0           # ... and at most: they double where trust is lost again within ...
PROBATION = 10.0        # ... s of motion
LASTING = 4.0           # s of motion in which loads may change ...
LEAK = 0.5              # ... of which each s of motion without a change takes off so much
AFTER_CONTACT = 3.0     # s after a contact, in which soil that still holds the bucket explains a mass that cannot be


class Trust:
    """Of one payload estimate, segment by segment."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """As at the start: trusted."""
        self.wanted = FIRST         # s of motion without an alarm
        self.lost = False           # whether a mass that looks well does not count yet
        self._calm, self._changing, self._free = inf, 0.0, inf

    def take(self, dt: float, implausible: bool, alarm: bool, moved: bool, contact: bool = False,
             refused: bool = False) -> None:
        """A segment of ``dt``, s: whether its mass was implausible, or there was another alarm (a load that changes, an
        observer in trouble), whether it was weighed in motion, and whether the machine touched something; ``refused``:
        all samples of a sensor were rejected, which no soil explains."""
        motion = dt if moved else 0.0
        self._free = 0.0 if contact else self._free + dt
        soil = implausible and self._free <= AFTER_CONTACT
        implausible = implausible and not soil or refused
        self._changing = min(self._changing + motion, LASTING) if alarm else max(0.0, self._changing - LEAK * motion)
        if implausible or alarm and self._changing >= LASTING:
            if not self.lost:
                self.wanted = FIRST if self._calm > PROBATION else min(2.0 * self.wanted, LONGEST)
            self.lost, self._calm = True, 0.0
        elif (alarm or soil) and self.lost:
            self._calm = 0.0
        else:
            self._calm += motion
            self.lost = self.lost and self._calm < self.wanted
