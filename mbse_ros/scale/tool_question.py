# SPDX-License-Identifier: Apache-2.0
"""Whether another tool hangs there: an empty machine that weighs something else after a stop.

A tool that was changed and a load that was taken look the same to the equations: so the scale asks, once a stop, and
goes on as if it was a load until it is told. It asks only where the jump came in a stop that is long enough for a
change of tools, or with the first motion after it, without a contact meanwhile, and is as much as an attachment.
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
SOON = 5.0      # s after it, within which the other mass must be known
STAY = 0.1      # m, by which the load's place may change while the machine stands still
LEVERS = 0.1    # share of the mass of an attachment by which it may weigh other than at the place of the load


@dataclass(frozen=True)
class ToolQuestion:
    """``more``: the mass, kg, by which the machine is heavier than with the tool that it is taken to have;
    ``fits``: names of attachments that explain it, the nearest first, with by how much each is heavier, '' for none;
    ``zeroed``: it was found with the order `zero`."""

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
                + ': choose the attachment, or go on if it is a load')


def tool_question(stamp_ns: int, more: UncertainMass, others: Mapping[str, UncertainMass], zeroed: bool = False,
                  too_much: bool = False) -> ToolQuestion | None:
    """Of a mass that an empty machine weighs ``more``, kg, where ``others`` hang heavier attachments by their names;
    None where it may be nothing or, unless it is ``too_much`` for a zero, is none of them."""
    lower, upper = more.interval
    if not others or not more.known or lower <= 0.0 <= upper:
        return None
    far = {name: abs(mass.value - more.value) for name, mass in others.items()}
    fits = tuple((name, others[name].value) for name in sorted(far, key=lambda item: far[item]) if far[name] <= max(
        NORMAL * hypot(others[name].stddev, more.stddev), LEVERS * abs(others[name].value)))
    return ToolQuestion(stamp_ns, more, fits, zeroed) if fits or too_much else None


class Stops:
    """When the machine stood still, and whether its mass was another after it; readings in, one by one."""

    def __init__(self) -> None:
        self._still, self._since, self._touched = 0.0, inf, False
        self._place: Place | None = None
        self._more: UncertainMass | None = None
        self._asked = False

    def take(self, reading: Reading, pause: float) -> None:
        """The next one, ``pause``, s, after the one before."""
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
        """The empty machine weighs so much more now, kg."""
        self._more = more if not self._touched else None

    def jump(self) -> UncertainMass | None:
        """What was found in or after a stop, once for each."""
        if self._more is None or self._asked or self._since > SOON:
            return None
        found, self._more, self._asked = self._more, None, True
        return found
