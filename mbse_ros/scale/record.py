# SPDX-License-Identifier: Apache-2.0
"""What the scale remembers: records that are only ever added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite, nan
from typing import Any

from .load import WEIGHED, Carried, Load
from .reading import Place
from .uncertain import UncertainMass

LOAD, UNDO, TRUCK, TARGET, ZERO, ATTACHMENT, ENDED = 'load', 'undo', 'truck', 'target', 'zero', 'attachment', 'ended'
TAKEN, MISSED = 'taken', 'missed'       # a load hangs there; it was gone when the scale came back
REPAIRED = 'repaired'       # the file was damaged, what was whole of it is in this one
OPERATOR, SCALE = 'operator', 'scale'       # who said that a load is done


@dataclass(frozen=True)
class Record:
    """``data`` as JSON has it; ``key``: no two records have the same, '' for one that may be repeated; ``number``: its
    place in the journal, from 1, 0 before it is in one."""

    kind: str
    stamp_ns: int
    data: Mapping[str, Any] = field(default_factory=dict)
    key: str = ''
    number: int = 0

    @property
    def mass(self) -> UncertainMass:
        """The mass in its data."""
        return mass_of(self.data)

    @property
    def counts(self) -> bool:
        """Whether it is a load that belongs into totals."""
        return self.kind == LOAD and bool(self.data.get('counts', True))


def mass_data(mass: UncertainMass) -> dict[str, Any]:
    """A mass as JSON."""
    lower, upper = mass.interval
    return {'mass': mass.value, 'interval': [lower, upper], 'stddev': mass.stddev, 'own': mass.own,
            'common': dict(mass.common)}


def mass_of(data: Mapping[str, Any]) -> UncertainMass:
    """The same back."""
    return UncertainMass(float(data['mass']), float(data['own']), {str(k): float(v) for k, v in data['common'].items()})


def place_data(place: Place | None) -> dict[str, float] | None:
    """A place as JSON; the swing, rad, only where there is one."""
    if place is None:
        return None
    return {'x': place.x, 'y': place.y, 'z': place.z, **({'swing': place.swing} if isfinite(place.swing) else {})}


def place_of(data: Mapping[str, float] | None) -> Place | None:
    """The same back."""
    return None if data is None else Place(data['x'], data['y'], data['z'], data.get('swing', nan))


def taken_record(carried: Carried, mass: UncertainMass, stamp_ns: int, truck: str) -> Record:
    """A load hangs there, ``mass`` without tare: what is known of it should the scale be stopped."""
    return Record(TAKEN, stamp_ns, {'truck': truck, 'start_ns': carried.start_ns, **mass_data(mass),
                                    'taken': place_data(carried.taken)}, key=f'taken {carried.start_ns} {stamp_ns}')


def missed_record(taken: Record, stamp_ns: int) -> Record:
    """The load of a `taken` record was gone when the scale came back."""
    return Record(MISSED, stamp_ns, taken.data, key=f'missed {taken.number}')


def missed_line(missed: Record) -> str:
    """What is to be said of it."""
    return (f'a load of {missed.data["mass"]:.1f} kg, {missed.data["truck"]}, hung there when the scale stopped and '
            'was gone when it came back: it counts only when the operator says so (load_done)')


def confirmed_record(missed: Record, stamp_ns: int) -> Record:
    """The operator says that it was delivered, as it was weighed when it was taken."""
    data = missed.data
    return Record(LOAD, stamp_ns, {**data, 'end_ns': missed.stamp_ns, 'most': data['mass'], 'dropped': None,
                                   'status': WEIGHED, 'counts': True, 'trusted': False, 'who': OPERATOR},
                  key=f'load {data["start_ns"]} {missed.stamp_ns}')


def load_record(load: Load, truck: str, who: str = SCALE, hanging: float | None = None) -> Record:
    """A load; one that begins at the same instant and is of the same truck is the same one. ``hanging``, kg: what hangs
    on the machine still, tare included, of a load that the operator has counted before its end."""
    return Record(LOAD, load.end_ns, {
        'truck': truck, 'start_ns': load.start_ns, 'end_ns': load.end_ns, **mass_data(load.mass), 'most': load.most,
        'taken': place_data(load.taken), 'dropped': place_data(load.dropped), 'status': load.status,
        'counts': load.counts, 'trusted': load.trusted, 'who': who, 'faults': list(load.faults.words),
        **({} if hanging is None else {'hanging': hanging})},
        key=f'load {load.start_ns} {load.end_ns}')
