# SPDX-License-Identifier: Apache-2.0
"""What a real machine has and its file does not say: other numbers, more physics, sensors that are wrong, loads that
change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp

import numpy as np

from ..description.assumptions import with_assumptions
from ..description.basics import GROUND, ZERO, Scalar
from ..description.machine_parts import Cylinder, Parallel
from ..description.model import MechanismDescription, Sensor
from ..errors import check_choice
from ..machine import Machine
from ..machine.equations import pressure_pairs
from .cycle import Move
from .physics import NOTHING, PlantPhysics
from .sensor_faults import FAULTS, SensorFault

SHARE = 0.2             # of the largest payload that hangs on the machine
BEGIN = 8.0             # s, when a sensor becomes wrong, or a load is dumped
WARM_UP, WARMED = 400e3, 10.0       # Pa, by which a transducer's zero drifts, and the time constant, s
BEYOND = 0.3            # m, of the load beyond its place
HEAVIER = 150.0         # kg, of another bucket
LATE_NS = 10_000_000
SHAKEN = 0.05           # m/s2: deviation of a sample of an accelerometer on the base
DAMPING, STIFFNESS = 1e5, 2e4       # N s/m, N/m, beside each piston
OUT, IN = 1.5, 0.5      # times the friction
LIFTS = (Move(0.0, 0.5), *(Move(4.0, 3.0), Move(0.0, 2.0), Move(-4.0, 3.0), Move(0.0, 2.0)) * 2, Move(4.0, 3.0))
DUMPED = (0.0, 0.6), (BEGIN, 0.6), (BEGIN + 0.1, 0.1)       # s, share of the largest payload
POSITION, PISTON, ROD, PRESSURES = 'position', 'piston', 'rod', 'pressures'


@dataclass(frozen=True)
class Effect:
    """One difference of ``size`` between a machine and its file.

    ``known`` gives the description that plant and file have alike, ``change`` the plant's alone, ``physics`` what the
    plant has beyond. ``faults``: of the ``position`` of the first cylinder or its joint, of the pressures at its
    ``piston`` and its ``rod``, of all ``pressures``. ``load``: times, s, and shares of the largest payload, linear
    between. ``moves``: those of the first valve instead of random ones. ``body``: what a machine must have.
    """

    name: str
    size: str
    change: Callable[[MechanismDescription], MechanismDescription] | None = None
    faults: Mapping[str, SensorFault] = field(default_factory=dict)
    load: tuple[tuple[float, float], ...] = ((0.0, SHARE),)
    body: str = ''
    physics: PlantPhysics = NOTHING
    moves: tuple[Move, ...] = ()
    known: Callable[[MechanismDescription], MechanismDescription] | None = None

    def applies(self, machine: Machine) -> bool:
        """Whether the machine has what it changes."""
        return not self.body or self.body in machine.description.bodies

    @property
    def of_plant(self) -> bool:
        """Whether the plant is another than that of the file."""
        return self.change is not None or self.physics != NOTHING

    def filed(self, machine: Machine) -> Machine:
        """The machine that the estimate has."""
        return machine if self.known is None else Machine(self.known(machine.description))

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


def _cylinders(change: Callable[[Cylinder], Cylinder]) -> Callable[[MechanismDescription], MechanismDescription]:
    """The same change of all cylinders."""
    return lambda machine: replace(machine, cylinders={name: change(item) for name, item in machine.cylinders.items()})


def _friction(scale: float = 1.0, out: float = 1.0, back: float = 1.0) -> Callable[[Cylinder], Cylinder]:
    def change(cylinder: Cylinder) -> Cylinder:
        own = cylinder.friction
        return replace(cylinder, friction=replace(own, scale=_to(own.scale, scale * own.scale.value),
                                                  out_scale=Scalar(out), in_scale=Scalar(back)))
    return change


def _spring(cylinder: Cylinder) -> Cylinder:
    """A spring that is at rest in the middle of the stroke."""
    return replace(cylinder, parallel=Parallel(ZERO, Scalar(STIFFNESS), ZERO, ZERO,
                                               Scalar(cylinder.stroke.value / 2.0)))


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


def _with_imu(machine: MechanismDescription) -> MechanismDescription:
    """An accelerometer on the base, along all axes."""
    axes = tuple(tuple(row) for row in np.eye(machine.dimension).tolist())
    imu = Sensor('base_imu', 'accelerometer', SHAKEN, body=GROUND, axes=axes)
    return with_assumptions(replace(machine, sensors={**machine.sensors, imu.name: imu}))


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
    Effect('friction_doubled', '2', _cylinders(_friction(2.0))),
    Effect('friction_out_and_in', '1.5, 0.5', _cylinders(_friction(1.0, OUT, IN))),
    Effect('parallel_damper', '100 kN s/m', physics=PlantPhysics(damper=DAMPING), moves=LIFTS),
    Effect('parallel_spring', '20 kN/m', _cylinders(_spring)),
    Effect('another_bucket', '150 kg', _another_bucket, body='bucket'),
    Effect('pressures_late', '10 ms', faults={PRESSURES: SensorFault(
        'late_10_ms', ('pressure',), lambda value, now, place: value, whole=True, delay_ns=LATE_NS)}),
    Effect('zero_30_mm', '30 mm', faults={POSITION: FAULTS['zero_30_mm']}),
    Effect('zero_50_mm', '50 mm', faults={POSITION: FAULTS['zero_50_mm']}),
    Effect('dump', '50 %', load=DUMPED),
    Effect('line_losses', '400 kPa', physics=PlantPhysics(line_loss=200e3, line_turbulence=200e3)),
    Effect('bristles', '5 N/um', physics=PlantPhysics(bristles=5e6)),
    Effect('pump_sags', '30 %', physics=PlantPhysics(sag=0.3)),
    Effect('pump_ripples', '300 kPa', physics=PlantPhysics(ripple=300e3)),
    Effect('base_sways', '1 m/s2', physics=PlantPhysics(base_acceleration=1.0)),
    Effect('base_sways_imu', '1 m/s2', physics=PlantPhysics(base_acceleration=1.0), known=_with_imu),
    Effect('boom_bends', '2 Hz', physics=PlantPhysics(bending=2.0)),
    Effect('play_of_pins', '2 mm', physics=PlantPhysics(play=2e-3)),
    Effect('pressures_lag', '20 ms', physics=PlantPhysics(sensor_lag=0.02)),
    Effect('pressure_hysteresis', '50 kPa', physics=PlantPhysics(hysteresis=50e3)),
    Effect('load_holding', '2, 3:1', physics=PlantPhysics(holding=2.0, holding_ratio=3.0)),
    Effect('load_sensing', '2 MPa', physics=PlantPhysics(sensing=2e6)),
    Effect('long_hoses', '4 m', physics=PlantPhysics(hose=4.0)),
    Effect('air_in_oil', '2 %', physics=PlantPhysics(air=0.02)),
    Effect('cold_oil', '2, 10 s', physics=PlantPhysics(cold=1.0, cold_time=10.0)))}
