# SPDX-License-Identifier: Apache-2.0
"""Typical values of what a tape measure and a data plate do not give: friction of cylinders, oil, hoses, valves.

Their deviations are wide, and their ``source`` says that they are assumed.

- Friction: cylinders of working machines have a mechanical efficiency of 0.90 to 0.98 (data sheets of makers; the
  measured lift of a PATU 655 shows 7 % of the piston's force), so that a seal takes some 5 % of the force of the
  pressure, between a half and twice as much. Coulomb's and the viscous part follow the circumference of the seal: 3 kN
  and 5 kN s/m per metre of the bore, which a PATU 655 (2.1 and 3.3 kN/m) and the excavators of this package have too.
- Oil: isentropic secant bulk modulus of mineral oils by A. T. J. Hayward, How to estimate the bulk modulus of hydraulic
  fluids, Hydraulic Pneumatic Power 16, 1970: at 20 degC 1.57 + 0.15 log10(viscosity, mm^2/s), GPa, less by a factor
  10^(0.0024 K) for each kelvin more. His rule holds to 5 %; air in the oil takes more (H. Gholizadeh, R. Burton and
  G. Schoenau, Fluid bulk modulus: a literature survey, International Journal of Fluid Power 12(3), 2011).
- Drives: joints of robots have gears of high ratio, whose Coulomb friction is 1 to 6 % of the largest effort and whose
  viscous part is about as large at 1 rad/s (identified friction of a UR10, a Panda and a KUKA iiwa in the literature).
- Hoses, valves, supplies: ours, from the machines of this package. Lines hold 15 % of the swept volume of their
  cylinder; a full stroke takes some 4 s at full command, at a pressure drop of 12 MPa.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from .basics import ZERO, Scalar
from .language.quantity import not_negative
from .machine_parts import Cylinder, DriveFriction, Friction, Hose, Valve, Volume

ASSUMED = 'assumed'     # begins the source of every number that the file leaves out
TYPICAL = f'{ASSUMED}, typical'
NAME = 'typical'        # as the file asks for it
SHARE = 0.05            # of the force of the pressure: friction
COULOMB, STATIC, VISCOUS, SPEED = 3e3, 4.5e3, 5e3, 5e-3      # N/m, N/m, N s/m^2 per metre of the bore; m/s
FRICTION_SPREAD = 0.5   # standard deviation of its scale
DRIVE_COULOMB, DRIVE_VISCOUS, DRIVE_SPEED = 0.03, 0.03, 0.02    # shares of the largest effort, per rad/s; rad/s
VISCOSITY = {'hlp22': 54.0, 'hlp32': 87.0, 'hlp46': 134.0, 'hlp68': 212.0, 'hlp100': 340.0,
             'hvlp32': 75.0, 'hvlp46': 115.0, 'hvlp68': 180.0}
"""mm^2/s at 20 degC, of mineral oils (DIN 51524) by their grade (ISO 3448, viscosity index 100; hvlp 150)."""
OIL, CELSIUS = 'hlp46', 40.0
OIL_SPREAD = 0.1
COLDEST, HOTTEST = -40.0, 120.0         # degC
HOSE_SHARE, HOSE_SPREAD = 0.15, 0.5     # of the swept volume; standard deviation, as a share of it
HOSE_MODULUS, WALL_MODULUS = 7e8, 2.1e11    # Pa, of the machines of this package
STROKE_TIME = 7.5       # s of a full stroke at the nominal flow, 4 s at a drop of 12 MPa
DROP, COMMAND, LAG, LAMINAR, MAKE_UP = 3.5e6, 10.0, 0.03, 2e5, 1e5      # Pa, V, s, Pa, Pa
GAINS = {'pump_a': 1.0, 'b_tank': 0.5, 'pump_b': 0.6, 'a_tank': 0.6}    # the weight does not run ahead of the pump
SUPPLIES = {'pump': 25e6, 'tank': 2e5}      # Pa
SIDES = ('piston', 'rod')


def typical_friction(cylinder: str, bore: float, source: str = TYPICAL) -> Friction:
    """Of one cylinder with this bore, m; its ``scale`` is 1 with a wide deviation."""
    def number(name: str, value: float, stddev: float = 0.0) -> Scalar:
        return Scalar(value, stddev=stddev, key=f'cylinders.{cylinder}.friction.{name}', source=source,
                      range=not_negative('1').ends if name == 'scale' else (0.0, math.inf))
    return Friction(number('coulomb', COULOMB * bore), number('static', STATIC * bore),
                    number('transition_velocity', SPEED), number('viscous', VISCOUS * bore),
                    number('pressure_difference', SHARE * math.pi / 4.0 * bore ** 2), ZERO,
                    number('scale', 1.0, FRICTION_SPREAD))


def typical_drive_friction(drive: str, largest: float, source: str = TYPICAL) -> DriveFriction:
    """Of a drive with this largest effort, N m or N; its ``scale`` is 1 with a wide deviation."""
    def number(name: str, value: float, stddev: float = 0.0) -> Scalar:
        return Scalar(value, stddev=stddev, key=f'drives.{drive}.friction.{name}', source=source,
                      range=not_negative('1').ends if name == 'scale' else (0.0, math.inf))
    return DriveFriction(number('coulomb', DRIVE_COULOMB * largest), number('static', DRIVE_COULOMB * largest),
                         number('transition_velocity', DRIVE_SPEED), number('viscous', DRIVE_VISCOUS * largest), ZERO,
                         number('scale', 1.0, FRICTION_SPREAD))


def typical_oil(grade: str = OIL, celsius: float = CELSIUS, source: str = TYPICAL) -> Scalar:
    """Bulk modulus, Pa, of an oil of ``VISCOSITY`` at a temperature, degC (Hayward, see above)."""
    at_20 = 1.57e9 + 0.15e9 * math.log10(VISCOSITY[grade])
    value = float(f'{at_20 * 10.0 ** (-0.0024 * (celsius - 20.0)):.3g}')
    return Scalar(value, stddev=OIL_SPREAD * value, key='hydraulics.oil_bulk_modulus', source=source)


def typical_volume(cylinder: Cylinder, side: str) -> Volume:
    """Of one chamber, with the lines of all cylinders side by side."""
    name = f'{cylinder.name}_{side}'
    size = HOSE_SHARE * cylinder.stroke.value * cylinder.piston_area
    hose = Scalar(size, stddev=HOSE_SPREAD * size, key=f'hydraulics.volumes.{name}.hoses[0].volume', source=TYPICAL)
    return Volume(name, ((cylinder.name, side),), Scalar(WALL_MODULUS, source=TYPICAL),
                  (Hose(hose, Scalar(HOSE_MODULUS, source=TYPICAL)),))


def typical_valve(cylinder: Cylinder, a: str, b: str, pump: str, tank: str) -> Valve:
    """Of kind 'unknown', so that its flows are estimated; the simulated machine has it as an orifice."""
    flow, drop, command, limit, lag, laminar, make_up = (
        Scalar(value, source=TYPICAL) for value in (flow_of(cylinder), DROP, COMMAND, COMMAND, LAG, LAMINAR, MAKE_UP))
    return Valve(f'{cylinder.name}_valve', 'unknown', a, b, pump, tank, flow, drop, command, limit, lag, laminar,
                 make_up=make_up, gains={edge: Scalar(gain, source=TYPICAL) for edge, gain in GAINS.items()})


def flow_of(cylinder: Cylinder) -> float:
    """Nominal flow of its valve, m^3/s."""
    return cylinder.stroke.value * cylinder.piston_area / STROKE_TIME


def with_supplies(given: Mapping[str, Scalar]) -> tuple[dict[str, Scalar], str, str]:
    """Supplies with typical ones for what is missing, and the names of pump and tank: those of these names, else the
    highest and the lowest of several."""
    ends = sorted(given, key=lambda name: given[name].value)
    pump, tank = (name if name in given or len(ends) < 2 else ends[place] for name, place in (
        ('pump', -1), ('tank', 0)))
    typical = {name: Scalar(SUPPLIES[name], source=TYPICAL) for name in (pump, tank) if name not in given}
    return {**given, **typical}, pump, tank
