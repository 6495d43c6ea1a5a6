# SPDX-License-Identifier: Apache-2.0
"""Physics of real machines that their files do not describe, as options of a plant; all are nothing by default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from ..description.basics import ZERO, Scalar
from ..description.machine_parts import Cylinder, Parallel
from ..description.model import MechanismDescription
from ..errors import SettingError, check_choice
from ..settings import Settings, setting

GRAVITY = 'gravity[0]'
SHORTEST = 0.5          # m of a hose: of a shorter one the plant's steps are too long


@dataclass(frozen=True)
class PlantPhysics(Settings):
    """What a plant has beyond its file; 0: nothing."""

    line_loss: float = setting(0.0, 'Pressure between a chamber and its sensor at the valve, in proportion to the '
                               'flow; at the nominal flow', 'Pa', 0.0, 1e7)
    line_turbulence: float = setting(0.0, 'The same, in proportion to the square of the flow', 'Pa', 0.0, 1e7)
    bristles: float = setting(0.0, "Stiffness of the friction's bristles, LuGre instead of Brown-McPhee", 'N/m', 0.0,
                              2e7)
    sag: float = setting(0.0, "Share of the pumps' pressure that is missing at the nominal flow of their valves", '',
                         0.0, 0.9)
    ripple: float = setting(0.0, "Amplitude of the pumps' ripple", 'Pa', 0.0, 5e6)
    ripple_rate: float = setting(225.0, 'Its frequency: 9 pistons at 1500 1/min', 'Hz', 1.0, 500.0)
    base_acceleration: float = setting(0.0, 'Amplitude of the acceleration of the base along its x axis', 'm/s2', 0.0,
                                       20.0)
    base_rate: float = setting(1.5, 'Its frequency', 'Hz', 0.01, 50.0)
    bending: float = setting(0.0, 'Frequency of the boom that bends under a fifth of the largest payload', 'Hz', 0.0,
                             50.0)
    play: float = setting(0.0, 'Play of pins between the mechanism and the sensors of its positions', 'm or rad', 0.0,
                          0.05)
    sensor_lag: float = setting(0.0, 'Time constant of the pressure sensors', 's', 0.0, 1.0)
    hysteresis: float = setting(0.0, 'Half the difference of a pressure that is read while it falls and rises', 'Pa',
                                0.0, 5e6)
    holding: float = setting(0.0, "Cracking pressure of load-holding valves of all piston sides, over the pumps' "
                             'pressure', '', 0.0, 5.0)
    holding_ratio: float = setting(4.0, "Their pilot ratio: so much weighs the rod side's pressure", '', 0.0, 20.0)
    sensing: float = setting(0.0, "Margin of pumps that follow the largest load, up to the file's pressure", 'Pa', 0.0,
                             2e7)
    hose: float = setting(0.0, 'Length of the hoses between valves and cylinders, with inertia, elasticity and loss',
                          'm', 0.0, 20.0)
    air: float = setting(0.0, "Share of air in the oil at the atmosphere's pressure", '', 0.0, 0.2)
    cold: float = setting(0.0, 'Friction of cold oil at the start beyond that of the file, as a share of it', '', 0.0,
                          10.0)
    cold_time: float = setting(300.0, 'Time constant with which it warms up', 's', 0.1, 1e5)
    damper: float = setting(0.0, 'Damping beside each piston, beyond that of the file', 'N*s/m', 0.0, 1e7)

    def __post_init__(self) -> None:
        """Raises SettingError."""
        super().__post_init__()
        if 0.0 < self.hose < SHORTEST:
            raise SettingError('hose', self.hose, f'0, or from {SHORTEST:g} to 20 m')

    @property
    def reads(self) -> bool:
        """Whether sensors see something else than the plant's own positions and pressures."""
        return any((self.line_loss, self.line_turbulence, self.play, self.sensor_lag, self.hysteresis, self.hose))

    def described(self, description: MechanismDescription) -> MechanismDescription:
        """The machine, with dampers beside its pistons, and gravity along x a symbol where its base is accelerated."""
        if self.damper:
            description = replace(description, cylinders={
                name: _damped(item, self.damper) for name, item in description.cylinders.items()})
        if not self.base_acceleration:
            return description
        x, *rest = description.gravity
        return replace(description, gravity=(replace(x, stddev=1.0, key=GRAVITY), *rest))


NOTHING = PlantPhysics()


def physics_of(options: Mapping[str, float]) -> PlantPhysics:
    """Physics by the names of its numbers; raises SettingError, of ``physics: NAME``."""
    for name in options:
        check_choice('physics', name, [item.name for item in fields(PlantPhysics)])
    try:
        return PlantPhysics(**options)
    except SettingError as error:
        raise SettingError(f'physics: {error.name}', error.value, error.expected) from None


def _damped(cylinder: Cylinder, damping: float) -> Cylinder:
    own = cylinder.parallel or Parallel(ZERO, ZERO, ZERO, ZERO, ZERO)
    return replace(cylinder, parallel=replace(own, damping=Scalar(own.damping.value + damping)))


def of_payload(payload: float | Mapping[str, float]) -> float:
    """One mass, kg, of one payload or the first of several."""
    return next(iter(payload.values())) if isinstance(payload, Mapping) else payload
