# SPDX-License-Identifier: Apache-2.0
"""Whether the tool was changed: an empty machine has another mass after a stop.

The estimator cannot distinguish a changed tool from a load. So the scale asks the operator, once for each stop, and
counts the difference as a load until it is answered. It asks only if the stop was long enough to change the tool, if
the mass changed in the stop or in the first seconds of motion after it, if there was no contact in between, and if the
difference fits an attachment of the scale's file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import hypot, inf

from ..payload.mass import NORMAL
from ..streams.records import PayloadStatus
from .load import UncertainMass
from .reading import Place, Reading

STOP = 10.0     # s of standstill, in less than which no tool is changed
SOON = 5.0      # s after it, within which the new mass must be known
STAY = 0.1      # m, by which the load may move while the machine counts as standing still
LEVERS = 0.1    # share of an attachment's mass by which its estimate may be off: its lever is not that of the load


@dataclass(frozen=True)
class ToolQuestion:
    """``more``: by how much, kg, the machine is heavier than with the tool that the scale assumes; ``fits``: names of
    attachments that explain it and by how much, kg, each is heavier than that tool, the nearest first, '' for none;
    ``zeroed``: it was found when the operator ordered `zero`."""

    stamp_ns: int
    more: UncertainMass
    fits: tuple[tuple[str, float], ...]
    zeroed: bool = False

    @property
    def text(self) -> str:
        """The question in words."""
        lower, upper = self.more.interval
        size = f'{abs(self.more.value):.0f} kg ({min(abs(lower), abs(upper)):.0f} to {max(abs(lower), abs(upper)):.0f})'
        than = 'in the file, though the machine is said to be empty' if self.zeroed else 'before a stop'
        named = ' or '.join(f'with attachment {name!r} ({kg:+.0f} kg)' if name else f'with no attachment ({kg:+.0f} kg)'
                            for name, kg in self.fits)
        return (f'the tool may be another: {size} {"more" if self.more.value > 0.0 else "less"} than {than}'
                + (f', as {named}' if named else ', which is no attachment of the file')
                + ': choose the attachment' + ', or go on if it is a load' * (self.more.value > 0.0))


def tool_question(stamp_ns: int, more: UncertainMass, others: Mapping[str, UncertainMass], zeroed: bool = False,
                  too_much: bool = False) -> ToolQuestion | None:
    """About an empty machine that is heavier by ``more``, kg; ``others``: by how much each other attachment, by its
    name, is heavier than the one that is on. None if ``more`` may be 0, and if no attachment explains it, except where
    it is ``too_much`` for a zero."""
    lower, upper = more.interval
    if not others or not more.known or lower <= 0.0 <= upper:
        return None
    far = {name: abs(mass.value - more.value) for name, mass in others.items()}
    fits = tuple((name, others[name].value) for name in sorted(far, key=lambda item: far[item]) if far[name] <= max(
        NORMAL * hypot(others[name].stddev, more.stddev), LEVERS * abs(others[name].value)))
    return ToolQuestion(stamp_ns, more, fits, zeroed) if fits or too_much else None


class Stops:
    """When the machine stood still, and whether its mass had changed after that; takes the readings one by one."""

    def __init__(self) -> None:
        self._still, self._since, self._held, self._touched = 0.0, inf, 0.0, False
        self._place: Place | None = None
        self._more: UncertainMass | None = None
        self._asked = False

    def take(self, reading: Reading, pause: float) -> None:
        """The next one, ``pause``, s, after the one before."""
        self._held = self._held + pause if reading.status is PayloadStatus.IMPLAUSIBLE else 0.0
        if reading.place is None or self._place is None or reading.place.distance(self._place) > STAY:
            if self._still < STOP and self._since > SOON:
                self._more = None       # found while it stood still for a moment
            self._place, self._still, self._asked = reading.place, 0.0, self._asked and self._since <= SOON
        else:
            self._still += pause
        if self._still >= STOP:
            self._since, self._touched = 0.0, False
        else:
            self._since += pause
            self._touched |= reading.status is PayloadStatus.CONTACT

    def changed(self, more: UncertainMass) -> None:
        """The empty machine is heavier by ``more``, kg, than before."""
        self._more = more if not self._touched else None

    def lighter(self, reading: Reading, before: UncertainMass, least: float) -> None:
        """With a lighter tool the empty machine seems to carry less than nothing, which is never known: it counts where
        it stays for ``least``, s. ``before``: its mass before, kg."""
        if self._held >= least and reading.finite and reading.mass < before.value:
            self.changed(UncertainMass(reading.mass, reading.stddev) - before)

    @property
    def jump(self) -> UncertainMass | None:
        """By how much the mass changed in a stop or soon after it; None where it did not, and if that was asked."""
        return None if self._asked or self._since > SOON else self._more

    def asked(self) -> None:
        """The operator has been asked: not again for this stop."""
        self._more, self._asked = None, True
