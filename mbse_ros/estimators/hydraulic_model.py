# SPDX-License-Identifier: Apache-2.0
"""State-space model of the kinematic observer: random-walk accelerations over the pressure network.

Paper 003 Eq. 18. A valve of kind 'orifice' adds its spool, one of kind 'unknown' its two flows as random walks.
Inside, pressures are in MPa and flows in l/s, as the paper does for scaling.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import casadi as ca
import numpy as np

from ..machine import Machine

MPA = 1e6
LITRE = 1e-3
NOISES = ('acceleration_psd', 'pressure_psd', 'spool_psd', 'flow_psd')


@dataclass(frozen=True)
class HydraulicModel:
    """Expressions of the observer's model.

    ``X`` (nx,) state, ``U`` (nu,) commands, V; ``f`` (nx,) its rate, ``A`` (nx, nx) the exact Jacobian, ``W`` (nx, nx)
    the spectral density of the noise as a function of ``psd`` (4,); ``scale`` (nx,) takes the state to SI;
    ``measured`` gives the place in X of each channel.
    """

    names: tuple[str, ...]
    X: ca.SX
    U: ca.SX
    psd: ca.SX
    f: ca.SX
    A: ca.SX
    W: ca.SX
    scale: np.ndarray
    measured: tuple[int, ...]


def hydraulic_model(machine: Machine) -> HydraulicModel:
    """Model of a machine's hydraulics for the observer."""
    names, scale = state_names(machine)
    X = ca.SX.sym('X', len(names))
    U = ca.SX.sym('U_in', len(machine.commands))
    part = {kind: X[[i for i, name in enumerate(names) if name.startswith(kind)]]
            for kind in ('position', 'velocity', 'acceleration', 'pressure', 'spool', 'flow')}
    flows = _flows(machine, part['pressure'] * MPA, part['spool'], part['flow'] * LITRE)
    rates = machine.circuit.pressure_rates(part['position'], part['velocity'], flows) / MPA
    f = ca.vertcat(part['velocity'], part['acceleration'], ca.SX.zeros(len(machine.cylinders)), rates,
                   _spool_rates(machine, part['spool'], U), ca.SX.zeros(part['flow'].numel()))
    psd = ca.SX.sym('psd', len(NOISES))
    measured = tuple(names.index(channel) for channel in machine.channels)
    return HydraulicModel(names, X, U, psd, f, ca.jacobian(f, X), _noise(machine, names, psd), scale, measured)


def state_names(machine: Machine) -> tuple[tuple[str, ...], np.ndarray]:
    """Names of the state's entries and the factors that take them to SI."""
    orifices, unknown = machine.valves_of('orifice'), machine.valves_of('unknown')
    names = [f'{kind}/{c}' for kind in ('position', 'velocity', 'acceleration') for c in machine.cylinders]
    names += [f'pressure/{v}' for v in machine.volumes] + [f'spool/{v}' for v in orifices]
    names += [f'flow/{v}.{port}' for v in unknown for port in 'ab']
    unit = {'pressure': MPA, 'flow': LITRE}
    return tuple(names), np.array([unit.get(name.split('/')[0], 1.0) for name in names])


def fastest_rate(machine: Machine, model: HydraulicModel) -> float:
    """Bound on the rates of fluid and spools, 1/s: valves full open, pressures at the supplies, over the stroke.

    It decides whether a step is stiff. The kinematic part is a chain of integrators and adds none; fluid and spools
    are blocks on the diagonal of A, so that what couples them does not count.
    """
    blocks = [[i for i, name in enumerate(model.names) if name.startswith(kind)] for kind in ('pressure/', 'spool/')]
    norms = [ca.norm_inf(model.A[block, block]) for block in blocks if block]
    rate = ca.Function('mbse_rate', [model.X, machine.parameters.symbol], [ca.mmax(ca.vertcat(*norms))])
    hydraulics, parameters = machine.description.hydraulics, machine.parameters.mean
    spools = [valve.command_limit.value for valve in hydraulics.valves.values() if valve.kind == 'orifice']
    pressures = [supply.value / MPA for supply in hydraulics.supplies.values()] or [0.0]
    X, rates = np.zeros(len(model.names)), [0.0]
    for share, pressure, sign in product((0.0, 0.5, 1.0), pressures, (-1.0, 1.0)):
        X[:len(machine.cylinders)] = machine.stroke @ [1 - share, share]
        X[blocks[0]] = pressure
        X[blocks[1]] = sign * np.array(spools)
        rates.append(float(rate(X, parameters)))
    return max(rates)


def _flows(machine: Machine, p: ca.SX, spools: ca.SX, walks: ca.SX) -> ca.SX:
    """Flows a, b of all valves in the machine's order, m3/s."""
    flows = []
    for name in machine.valves:
        if name in machine.valves_of('orifice'):
            flows.append(machine.circuit.valve_flows(name, spools[machine.valves_of('orifice').index(name)], p))
        else:
            k = machine.valves_of('unknown').index(name)
            flows.append(walks[2 * k:2 * k + 2])
    return ca.vertcat(*flows)


def _spool_rates(machine: Machine, spools: ca.SX, commands: ca.SX) -> ca.SX:
    """Rates of the modelled spools, V/s."""
    return ca.vertcat(*(machine.circuit.spool_rate(name, spools[k], commands[k])
                        for k, name in enumerate(machine.valves_of('orifice'))))


def _noise(machine: Machine, names: tuple[str, ...], psd: ca.SX) -> ca.SX:
    """Diagonal spectral density (paper 003 Eqs. 43, 44); a flow's is that of a piston speed times the area squared."""
    areas = machine.circuit.areas()
    by_volume = {volume: ca.dot(ca.SX(machine.circuit.T_Vcyl[i]), areas) for i, volume in enumerate(machine.volumes)}
    density = {'position': 0, 'velocity': 0, 'acceleration': psd[0], 'pressure': psd[1], 'spool': psd[2]}
    diagonal = []
    for name in names:
        kind, owner = name.split('/')
        if kind == 'flow':
            valve, port = owner.rsplit('.', 1)
            volume = getattr(machine.description.hydraulics.valves[valve], port)
            diagonal.append(psd[3] * (by_volume[volume] / LITRE) ** 2)
        else:
            diagonal.append(density[kind])
    return ca.diag(ca.vertcat(*diagonal))
