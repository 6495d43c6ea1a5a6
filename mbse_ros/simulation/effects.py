# SPDX-License-Identifier: Apache-2.0
"""What a real machine has and its file does not say: other numbers of the plant, sensors that are wrong, loads that
change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp

from ..description.basics import Scalar
from ..description.model import MechanismDescription
from ..errors import check_choice
from ..machine import Machine
from ..machine.equations import pressure_pairs
from .sensor_faults import FAULTS, SensorFault

SHARE = 0.2             # of the largest payload that hangs on the machine
BEGIN = 8.0             # s, when a sensor becomes wrong, or a load is dumped
WARM_UP, WARMED = 400e3, 10.0       # Pa, by which a transducer's zero drifts, and the time constant, s
BEYOND = 0.3            # m, of the load beyond its place
HEAVIER = 150.0         # kg, of another bucket
LATE_NS = 10_000_000
DUMPED = (0.0, 0.6), (BEGIN, 0.6), (BEGIN + 0.1, 0.1)       # s, share of the largest payload
POSITION, PISTON, ROD, PRESSURES = 'position', 'piston', 'rod', 'pressures'


@dataclass(frozen=True)
class Effect:
    """One difference of ``size`` between a machine and its file.

    ``change`` gives the plant's description. ``faults``: of the ``position`` of the first cylinder or its joint, of the
    pressures at its ``piston`` and its ``rod``, of all ``pressures``. ``load``: times, s, and shares of the largest
    payload, linear between. ``body``: what a machine must have.
    """

    name: str
    size: str
    change: Callable[[MechanismDescription], MechanismDescription] | None = None
    faults: Mapping[str, SensorFault] = field(default_factory=dict)
    load: tuple[tuple[float, float], ...] = ((0.0, SHARE),)
    body: str = ''

    def applies(self, machine: Machine) -> bool:
        """Whether the machine has what it changes."""
        return not self.body or self.body in machine.description.bodies

    def plant_of(self, description: MechanismDescription) -> MechanismDescription:
        """Description of the true machine."""
        return description if self.change is None else self.change(description)

    def faulty(self, machine: Machine) -> dict[str, SensorFault]:
        """Faults by channel."""
        pairs, found = pressure_pairs(machine), dict[str, SensorFault]()
        moved = [f'position/{machine.coordinates[k]}' for k in machine.actuated]
        places = {POSITION: [name for name in machine.channels if name in moved][:1],
                  PISTON: [pair[0] for pair in pairs.values()][:1], ROD: [pair[1] for pair in pairs.values()][:1],
                  PRESSURES: [name for pair in pairs.values() for name in pair]}
        for place, fault in self.faults.items():
            found |= dict.fromkeys(places[place], fault)
        return found


def effects_of(names: Sequence[str], machine: Machine) -> list[Effect]:
    """Effects by their names, all of them for none, that apply to a machine; raises SettingError."""
    for name in names:
        check_choice('effect', name, EFFECTS)
    return [effect for effect in (map(EFFECTS.__getitem__, names) if names else EFFECTS.values())
            if effect.applies(machine)]


def _to(number: Scalar, value: float) -> Scalar:
    return replace(number, value=value, text='')


def _friction_doubled(machine: MechanismDescription) -> MechanismDescription:
    cylinders = {name: replace(item, friction=replace(item.friction, scale=_to(
        item.friction.scale, 2.0 * item.friction.scale.value))) for name, item in machine.cylinders.items()}
    return replace(machine, cylinders=cylinders)


def _load_beyond(machine: MechanismDescription) -> MechanismDescription:
    payload = machine.payload
    if payload is None:
        return machine
    x, *rest = payload.center
    return replace(machine, payload=replace(payload, center=(_to(x, x.value + BEYOND), *rest)))


def _another_bucket(machine: MechanismDescription) -> MechanismDescription:
    bucket = machine.bodies['bucket']
    heavier = replace(bucket, mass=_to(bucket.mass, bucket.mass.value + HEAVIER))
    return replace(machine, bodies={**machine.bodies, 'bucket': heavier})


EFFECTS = {effect.name: effect for effect in (
    Effect('none', ''),
    Effect('pressure_and_position', '200 kPa, 20 mm', faults={
        PISTON: FAULTS['bias_200_kPa'],
        POSITION: SensorFault('offset_20_mm', ('position',), lambda value, now, place: value + 0.02)}),
    Effect('gain_of_pressures', '1.05', faults=dict.fromkeys((PISTON, ROD), SensorFault(
        'gain_1.05', ('pressure',), lambda value, now, place: 1.05 * value, whole=True))),
    Effect('load_beyond_tip', '0.3 m', _load_beyond),
    Effect('warm_up_drift', '400 kPa', faults={PISTON: SensorFault(
        'warm_up', ('pressure',), lambda value, now, place: value + WARM_UP * (1.0 - exp(-now.since / WARMED)),
        whole=True)}),
    Effect('rod_on_piston_line', '', faults={ROD: SensorFault(
        'rod_on_piston_line', ('pressure',), lambda value, now, place: now.other, whole=True)}),
    Effect('friction_doubled', '2', _friction_doubled),
    Effect('another_bucket', '150 kg', _another_bucket, body='bucket'),
    Effect('pressures_late', '10 ms', faults={PRESSURES: SensorFault(
        'late_10_ms', ('pressure',), lambda value, now, place: value, whole=True, delay_ns=LATE_NS)}),
    Effect('zero_30_mm', '30 mm', faults={POSITION: FAULTS['zero_30_mm']}),
    Effect('zero_50_mm', '50 mm', faults={POSITION: FAULTS['zero_50_mm']}),
    Effect('dump', '50 %', load=DUMPED))}
