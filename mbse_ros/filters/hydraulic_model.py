# SPDX-License-Identifier: Apache-2.0
"""State-space model of the kinematic observer: random-walk accelerations over the pressure network.

Pyrhönen et al., mass estimation, Eq. 18, in any independent coordinates: the pistons' positions and speeds in the
pressure equations are functions of them, through the loops. A valve that is modelled adds its spool, an unknown one its
two flows as random walks; measured supplies and inclinations of the base are slow random walks. Inside, pressures are
in MPa and flows in l/s, as the paper does for scaling.

``coordinate_scale``: levers between coordinates and pistons, so that one tuning serves strokes and angles.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import casadi as ca
import numpy as np

from ..errors import PositionProblemError, SingularConfigurationError
from ..machine import Machine
from .force_balance import swing_noise, swing_rates
from .hydraulic_error import own_accelerations
from .hydraulic_state import LITRE, MASS, MPA, Measurement, measurements, state_names, state_parts

NOISES = ('acceleration_psd', 'pressure_psd', 'spool_psd', 'flow_psd', 'free_psd', 'supply_psd', 'inclination_psd',
          'payload_psd', 'base_psd', 'effort_psd')
CAVITATES = 1e3     # MPa^2/s: density of a pressure's noise below its tank's, where oil cavitates or is drawn in
BRIEFLY = 0.3       # s for which that counts: a sensor that continues to read nothing is wrong
ATMOSPHERE = 1e5     # Pa, where no tank is stated
PAYLOAD = 'moment', 'payload'       # kinds of the state's last entries
SHARES = np.linspace(0.05, 0.95, 7)     # of the range of a coordinate, the others at the start


@dataclass(frozen=True)
class HydraulicModel:
    """Expressions of the observer's model.

    ``X`` (nx,) state, ``U`` (nu,) commands, V, ``dependent`` coordinates (n - g,) of the mechanism, (0,) where nothing
    depends on them; ``f`` (nx,) the state's rate, ``A`` (nx, nx) the exact Jacobian along the loops, ``W`` (nx, nx) the
    spectral density of the noise as a function of ``psd`` (10,); ``scale`` (nx,) takes the state to SI; ``measured``
    gives the model of each channel. Of errorEKF_FE ``own`` (g,), SI, are the accelerations by the machine's
    own equations of motion, and ``slopes`` (g, nx) their derivatives; those in ``X`` are then their errors: see
    ``hydraulic_error``; ``deviation`` (actuators,) is of the pistons' speeds. Else all have no rows.

    A pressure that no sensor measures stays anywhere between 0 and the largest supply, and the flow to it is unknown: a
    valve's model alone, or a random walk, would say more than anybody knows, and lead out of all bounds.
    """

    names: tuple[str, ...]
    X: ca.SX
    U: ca.SX
    dependent: ca.SX
    psd: ca.SX
    f: ca.SX
    A: ca.SX
    W: ca.SX
    scale: np.ndarray
    measured: tuple[Measurement, ...]
    own: ca.SX
    slopes: ca.SX
    deviation: ca.SX

    @property
    def driven(self) -> bool:
        """Whether the machine's own equations of motion predict the state."""
        return bool(self.own.numel())

    @property
    def weighs(self) -> bool:
        """Whether the mass of the payload is the state's last entry."""
        return self.names[-1] == MASS

    @property
    def unknowns(self) -> int:
        """How many entries at the state's end are of the payload: its mass, and before it its moments."""
        return sum(name.partition('/')[0] in PAYLOAD for name in self.names)

    def consider(self, machine: Machine) -> list[int]:
        """Places of the consider parameters: those of the machine where the observer weighs, else none."""
        return machine.parameters.consider.tolist() if self.weighs else []

    @property
    def indirect(self) -> bool:
        """Whether a sensor measures something else than an entry of the state."""
        return any(item.index is None for item in self.measured)


def hydraulic_model(machine: Machine, weighs: bool = False, driven: bool = False) -> HydraulicModel:
    """Model of a machine's hydraulics for the observer; ``weighs``: with the mass of the payload, and its moments about
    the centre that the file gives where the file calls that uncertain; ``driven``: of errorEKF_FE, which does not."""
    names, scale = state_names(machine, weighs)
    X, g = ca.SX.sym('X', len(names)), len(machine.coordinates)
    U = ca.SX.sym('U_in', len(machine.commands))
    part = state_parts(names, X)
    c, drives = len(machine.cylinders), len(machine.description.drives)
    rates = _pressure_rates(machine, part, machine.system.q[machine.pistons[:c]],
                            (machine.piston_rates @ part['velocity'])[:c])
    f = ca.vertcat(part['velocity'], part['acceleration'], ca.SX.zeros(g), rates / MPA, ca.SX.zeros(drives),
                   _spool_rates(machine, part['spool'], U))
    f = ca.vertcat(f, ca.SX.zeros(len(names) - f.numel()))
    if part['swing'].numel():
        first = names.index(f'swing/{machine.swings[0]}')
        f[first:first + 2 * len(machine.swings)] = _swing_rates(machine, part)
    A = ca.jacobian(f, X)
    A[:, :g] = A[:, :g] + ca.jacobian(f, machine.system.q) @ machine.reduced.R
    deviation = ca.SX.sym('deviation', len(machine.actuators) * driven)
    own, slopes = own_accelerations(machine, names, X, deviation) if driven else (ca.SX(0, 1), ca.SX(0, len(names)))
    f[g:g + own.numel()] += own
    A[g:g + own.numel(), :] += slopes
    measured = measurements(machine, names, X)
    every = ca.vertcat(f, ca.vec(A), *(ca.vertcat(item.h, ca.vec(item.H)) for item in measured if item.index is None))
    dependent = ca.SX.sym('dependent', len(machine.system.dependent))
    if not weighs and not ca.depends_on(every, machine.system.q[machine.system.dependent]):
        dependent = ca.SX(0, 1)
    q = machine.joined(dependent if dependent.numel() else machine.system.q[machine.system.dependent], X[:g])
    f, A, own, slopes = ca.substitute([f, A, own, slopes], [machine.system.q], [q])
    measured = tuple(item.at(machine.system.q, q) for item in measured)
    psd = ca.SX.sym('psd', len(NOISES))
    return HydraulicModel(names, X, U, dependent, psd, f, A, _noise(machine, names, psd), scale, measured,
                          own, slopes, deviation)


def _swing_rates(machine: Machine, part: dict[str, ca.SX]) -> ca.SX:
    """Of a load that hangs: rates of its place and of its speed (2 s,)."""
    states = [machine.parameters.states[key] for key in machine.base_states.values()]
    rates = swing_rates(machine, part['velocity'], part['acceleration'], part['swing'], part['swing_rate'])
    return ca.substitute(rates, ca.vertcat(*states), part['base'])


def largest_pressure(machine: Machine) -> float:
    """The largest supply of the file, Pa; 20 MPa where it names none."""
    return max((supply.value for supply in machine.hydraulics.supplies.values()), default=20e6)


def fastest_rate(machine: Machine) -> float:
    """Bound on the rates of fluid and spools, 1/s: valves full open, pressures at the supplies, over the strokes.

    It decides whether a step is stiff. The kinematic part is a chain of integrators and adds none; fluid and spools
    are blocks on the diagonal of A, so that what couples them does not count.
    """
    names, _ = state_names(machine)
    X, s = ca.SX.sym('X', len(names)), ca.SX.sym('s', len(machine.cylinders))
    part, U = state_parts(names, X), ca.SX.sym('U', len(machine.commands))
    fluid = _pressure_rates(machine, part, s, ca.SX.zeros(s.numel())) / MPA
    norms = [ca.norm_inf(ca.jacobian(rate, part[kind])) for kind, rate in (
        ('pressure', fluid), ('spool', _spool_rates(machine, part['spool'], U))) if part[kind].numel()]
    if not norms:
        return 0.0
    rate = ca.Function('mbse_rate', [X, s, machine.parameters.symbol], [ca.mmax(ca.vertcat(*norms))])
    hydraulics, parameters = machine.hydraulics, machine.parameters.mean
    valves = [hydraulics.valves[name] for name in machine.modelled_valves]
    limits = [valve.command_limit.value for valve in valves if valve.command_limit is not None]
    pressures = [supply.value / MPA for supply in hydraulics.supplies.values()] or [0.0]
    places = {kind: [i for i, name in enumerate(names) if name.startswith(f'{kind}/')]
              for kind in ('pressure', 'spool', 'supply')}
    X, rates = np.zeros(len(names)), [0.0]
    X[places['supply']] = [hydraulics.supplies[name].value / MPA for name in machine.measured_supplies]
    for share, pressure, sign in product((0.0, 0.5, 1.0), pressures, (-1.0, 1.0)):
        X[places['pressure']] = pressure
        X[places['spool']] = sign * np.array(limits)
        rates.append(float(rate(X, machine.stroke @ [1 - share, share], parameters)))
    return max(rates)


def _pressure_rates(machine: Machine, part: dict[str, ca.SX], s: ca.SX, sd: ca.SX) -> ca.SX:
    """Rates of the pressures, Pa/s, at piston positions, m, and speeds, m/s."""
    p = part['pressure'] * MPA
    supplies = {name: part['supply'][i] * MPA for i, name in enumerate(machine.measured_supplies)}
    flows = []
    for name in machine.valves:
        if name in machine.modelled_valves:
            spool = part['spool'][machine.modelled_valves.index(name)]
            flows.append(machine.circuit.valve_flows(name, spool, p, supplies))
        else:
            k = machine.unknown_valves.index(name)
            flows.append(part['flow'][2 * k:2 * k + 2] * LITRE)
    rates = machine.circuit.pressure_rates(s, sd, ca.vertcat(*flows))
    return ca.vertcat(*(rates[i] if volume in machine.measured_volumes else 0
                        for i, volume in enumerate(machine.volumes)))


def _spool_rates(machine: Machine, spools: ca.SX, commands: ca.SX) -> ca.SX:
    """Rates of the modelled spools, V/s."""
    return ca.vertcat(*(machine.circuit.spool_rate(name, spools[k], commands[k])
                        for k, name in enumerate(machine.modelled_valves)))


def _noise(machine: Machine, names: tuple[str, ...], psd: ca.SX) -> ca.SX:
    """Diagonal spectral density (Pyrhönen et al., mass estimation, Eqs. 43, 44).

    That of an acceleration is the pistons' by the lever of the coordinate; a flow's is that of a piston speed times the
    area squared.
    """
    areas, scale = machine.circuit.areas(), dict(zip(machine.coordinates, coordinate_scale(machine)))
    by_volume = {volume: ca.dot(ca.SX(machine.circuit.T_Vcyl[i]), areas) for i, volume in enumerate(machine.volumes)}
    efforts = {name: drive.largest for name, drive in machine.description.drives.items()}
    density = {'position': 0, 'velocity': 0, 'pressure': psd[1], 'spool': psd[2], 'supply': psd[5],
               'inclination': psd[6], 'base_acceleration': psd[8], 'moment': 0, 'payload': psd[7], 'swing': 0}
    if machine.swings:
        density['swing_rate'] = swing_noise(machine)
    diagonal = []
    for name in names:
        kind, owner = name.split('/')
        if kind == 'flow':
            valve, port = owner.rsplit('.', 1)
            volume = getattr(machine.hydraulics.valves[valve], port)
            measured = volume in machine.measured_volumes
            diagonal.append(psd[3] * (by_volume[volume] / LITRE) ** 2 if measured else 0)
        elif kind == 'pressure':
            diagonal.append(psd[1] if owner in machine.measured_volumes else 0)
        elif kind == 'effort':
            diagonal.append(psd[9] * efforts[owner] ** 2)
        elif kind == 'acceleration':
            lever = scale[owner]
            diagonal.append(psd[4] if lever is None else psd[0] if lever == 1.0 else psd[0] / lever ** 2)
        else:
            diagonal.append(density[kind])
    return ca.diag(ca.vertcat(*diagonal))


def below_tank(machine: Machine, names: tuple[str, ...], X: ca.SX) -> ca.SX:
    """Whether (volumes,), 1 or 0, pressures of a state ``X`` (nx,) are below the tank's.

    There the oil cavitates, or anti-cavitation valves open that the file does not name.
    """
    hydraulics = machine.hydraulics
    tanks: dict[str, ca.SX] = {}
    for valve in hydraulics.valves.values():
        supply = f'supply/{valve.tank}'
        stated = hydraulics.supplies[valve.tank].value if valve.tank in hydraulics.supplies else ATMOSPHERE
        tank = X[names.index(supply)] if supply in names else stated / MPA
        tanks |= {port: tank for port in (valve.a, valve.b)}
    return ca.vertcat(*(X[names.index(f'pressure/{volume}')] < tanks[volume] if volume in tanks else ca.SX(0)
                        for volume in machine.volumes))


def cavitation(machine: Machine, names: tuple[str, ...], X: ca.SX, empty: ca.SX) -> ca.SX:
    """What comes to the spectral densities (nx,) of pressures below the tank's: the model of such a pressure would draw
    the motion along. ``empty`` (volumes,), s: for how long it has been so."""
    low = below_tank(machine, names, X) * (empty < BRIEFLY)
    found = {f'pressure/{volume}': CAVITATES * low[k] for k, volume in enumerate(machine.volumes)}
    return ca.vertcat(*(found.get(name, ca.SX(0)) for name in names))


def coordinate_scale(machine: Machine) -> list[float | None]:
    """Metres of piston motion for a unit of each coordinate (g,): 1 for a piston, None where no cylinder moves it.

    Of an angle the root of the mean square over its range, as far as the mechanism reaches.
    """
    found: list[float | None] = []
    rates = None
    for k, (_, place) in enumerate(zip(machine.coordinates, machine.model.z)):
        if place in machine.pistons:
            found.append(1.0)
        elif k not in machine.actuated:
            found.append(None)
        else:
            rates = rates or ca.Function('rates', [machine.system.q, machine.parameters.symbol],
                                         [ca.densify(machine.piston_rates)])
            found.append(_lever(machine, k, rates))
    return found


def _lever(machine: Machine, k: int, rates: ca.Function) -> float:
    """Root mean square of the pistons' speeds for a unit speed of coordinate ``k``."""
    start, squares = machine.model.start.q, []
    low, high = machine.range[k]
    for share in SHARES:
        z = start[machine.model.z].copy()
        z[k] = low + share * (high - low)
        try:
            q = machine.position(z)
        except (PositionProblemError, SingularConfigurationError):
            continue
        squares.append(float(np.sum(rates(q, machine.parameters.mean).full()[:, k] ** 2)))
    if not squares:
        squares = [float(np.sum(rates(start, machine.parameters.mean).full()[:, k] ** 2))]
    return float(np.sqrt(np.mean(squares)))
