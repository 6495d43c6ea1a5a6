# SPDX-License-Identifier: Apache-2.0
"""The section `scale` of a machine's file, or a file of its own: attachments and the load chart; docs/scale.md.

Load charts: what a machine may lift at which radius, and whether a load is more than that. With it the tuning of the
scale.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from math import isfinite, nan
from pathlib import Path

from ..description.language.document import read_document
from ..description.language.entry import Entry
from ..description.language.quantity import ValueKind, not_negative, positive
from ..description.language.scalar import Numbers
from ..description.machine_parts import Attachment
from ..description.model import MechanismDescription
from ..errors import ScaleError, did_you_mean
from ..machine import Machine
from ..machine.attachment import with_attachment
from ..resources import read_text
from ..settings import Settings, setting
from .load import NOTHING, UncertainMass

LEAST_LOAD = 0.03       # of the range of payload.limits, where the tuning leaves it to the machine
LEAST_CHANGE = 0.02
FORMAT = 'mbse/scale/1'
_PARTS = ('attachments', 'load_chart')
FARTHEST = 100.0        # m, of an attachment from the frame of its body
BARE = ''       # name of no attachment


@dataclass(frozen=True)
class ScaleSettings(Settings):
    """How loads are distinguished, and what is taken off them."""

    least_load: float = setting(0.0, 'Lightest load that counts; 0: 3 % of the range of payload.limits', 'kg', 0.0, 1e6)
    least_change: float = setting(0.0, 'Smallest change of the mass that is a spill, another bucket or a drop; 0: 2 '
                                       '% of the range of payload.limits', 'kg', 0.0, 1e6)
    least_time: float = setting(0.5, 'A mass counts once it has been known and the same for so long', 's', 0.05, 60.0)
    guard: float = setting(0.5, 'Last part of a mass that is not used, since it may have begun to change', 's',
                           0.0, 10.0)
    dump_radius: float = setting(2.0, 'Mass lost within this distance of where loads of this truck went before, or '
                                      'else of where most of this one went, is delivered', 'm', 0.01, 100.0)
    least_travel: float = setting(2.0, 'A load carried no farther, which ends within dump_radius of where it was '
                                       'taken, was put back and does not count; 0, or no swing: it counts', 'm',
                                  0.0, 100.0)
    carry_back: bool = setting(False, 'Subtract what was weighed in the empty bucket before each load')
    zero_range: float = setting(0.2, 'Largest mass that a zero subtracts, share of the range of payload.limits', '',
                                0.001, 1.0)
    overload_warning: float = setting(0.9, "Share of the load chart's limit from which the interval's upper end is "
                                           "a warning", '', 0.01, 1.0)

    def lightest(self, span: float) -> float:
        """Lightest load, kg, of a machine whose payload.limits are ``span``, kg, apart."""
        return self.least_load or LEAST_LOAD * span

    def change(self, span: float) -> float:
        """Smallest change of the mass, kg."""
        return self.least_change or LEAST_CHANGE * span


class Overload(IntEnum):
    """A load against the chart."""

    OK = 0
    NOT_KNOWN = 1
    NEAR = 2
    OVER = 3


@dataclass(frozen=True)
class LoadChart:
    """Limits, kg, up to radii, m, that rise; ``origin``, m: a point of the axis that the radii are measured from, None:
    that of the machine's swing, else the origin of its frame.

    Between two radii the limit of the larger one counts, as on a crane's plate; beyond the last one nothing may be
    lifted.
    """

    radii: tuple[float, ...]
    limits: tuple[float, ...]
    origin: tuple[float, float, float] | None = None

    def limit(self, radius: float) -> float:
        """What may be lifted at a radius, kg; NaN where the radius is not known."""
        if not isfinite(radius):
            return nan
        place = bisect_left(self.radii, radius)
        return self.limits[place] if place < len(self.radii) else 0.0

    def judged(self, radius: float, upper: float, share: float) -> Overload:
        """A load whose interval ends at ``upper``, kg, all that hangs there included; from ``share`` of the limit on it
        is near it."""
        limit = self.limit(radius)
        if not (isfinite(limit) and isfinite(upper)):
            return Overload.NOT_KNOWN
        if upper > limit:
            return Overload.OVER
        return Overload.NEAR if upper > share * limit else Overload.OK


@dataclass(frozen=True)
class ScaleFile:
    """``attachments`` by their names; ``chart``: None without one."""

    attachments: Mapping[str, Attachment] = field(default_factory=dict)
    chart: LoadChart | None = None

    def attachment(self, name: str) -> Attachment | None:
        """One by its name, None for none; raises ScaleError for one that is not known."""
        if name != BARE and name not in self.attachments:
            known = ', '.join(self.attachments) or "none: the scale's file names no attachments"
            raise ScaleError(f'attachment: got {name!r}, expected one of {known}{did_you_mean(name, self.attachments)}')
        return self.attachments.get(name)


def mass_of(item: Attachment | None) -> UncertainMass:
    """What an attachment weighs more than what the machine's file has in its place, with its cause."""
    if item is None:
        return NOTHING
    return UncertainMass(item.mass, 0.0, {f'attachment/{item.name}': item.stddev} if item.stddev else {})


def load_scale_file(path: str | Path) -> ScaleFile:
    """Read and check a file; raises DescriptionError."""
    root = Entry(str(path), '', read_document(read_text(path), str(path)))
    parts = root.mapping(['format'], _PARTS)
    parts['format'].choice([FORMAT], 'the format')
    return _read(parts)


def scale_of(machine: Machine | MechanismDescription, path: str | Path = '') -> ScaleFile:
    """That of a path, else of the section of the machine's own file, else an empty one; raises DescriptionError."""
    if str(path):
        return load_scale_file(path)
    entry = (machine.description if isinstance(machine, Machine) else machine).scale
    return ScaleFile() if entry is None else _read(entry.mapping([], _PARTS))


def equipped(description: MechanismDescription, name: str, path: str | Path = '') -> MechanismDescription:
    """A machine with an attachment, by its name in the file of the scale, see ``scale_of``; '' for none.

    Raises ScaleError for a name that is not known, DescriptionError, see ``machine.attachment.with_attachment``.
    """
    item = scale_of(description, path).attachment(name) if name != BARE else None
    return description if item is None else with_attachment(description, item)


def _read(parts: Mapping[str, Entry]) -> ScaleFile:
    return ScaleFile(_attachments(parts['attachments']) if 'attachments' in parts else {},
                     _chart(parts['load_chart']) if 'load_chart' in parts else None)


def _attachments(entry: Entry) -> dict[str, Attachment]:
    return {name: _attachment(name, item) for name, item in entry.named('attachments').items()}


def _attachment(name: str, entry: Entry) -> Attachment:
    """A mass, or a mapping with it and where it is."""
    placed = isinstance(entry.value, dict) and 'mass' in entry.value
    parts = entry.mapping(['mass', 'center_of_mass']) if placed else {'mass': entry}
    mass = Numbers().scalar(parts['mass'], ValueKind('kg', -1e6, 1e6))      # lighter than the file's bucket: below zero
    center: tuple[tuple[float, float], ...] = ()
    if placed:
        found = parts['center_of_mass'].value
        values = found.get('value') if isinstance(found, dict) else found
        plane = isinstance(values, list) and len(values) == 2
        center = tuple((number.value, number.stddev) for number in Numbers().vector(
            parts['center_of_mass'], ValueKind('m', -FARTHEST, FARTHEST), 2 if plane else 3))
    return Attachment(name, mass.value, mass.stddev, center, entry.file, entry.key)


def _chart(entry: Entry) -> LoadChart:
    parts = entry.mapping(['limits'], ['origin'])
    radii, limits = [], []
    for item in parts['limits'].items('pairs of a radius and a limit, such as [4 m, 2500 kg]'):
        radius, limit = item.items('a radius and a limit', 2)
        radii.append(Numbers().number(radius, positive('m')))
        limits.append(Numbers().number(limit, not_negative('kg')))
        if len(radii) > 1 and radii[-1] <= radii[-2]:
            raise radius.error(f'a radius above the one before, {radii[-2]:g} m')
    if not radii:
        raise parts['limits'].error('at least one pair of a radius and a limit')
    if 'origin' not in parts:
        return LoadChart(tuple(radii), tuple(limits))
    x, y, z = (Numbers().number(item, ValueKind('m')) for item in parts['origin'].items('x, y, z', 3))
    return LoadChart(tuple(radii), tuple(limits), (x, y, z))
