# SPDX-License-Identifier: Apache-2.0
"""How well the equations of a machine that weigh can say the mass, by the numbers of its file that are uncertain.

At a pose, in a slow motion, the pressures are those that balance; an error of a number is an error of the mass by the
implicit function theorem. Noise of the sensors counts with one second of samples, since a mass takes longer than one.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ...errors import DescriptionError
from ...machine import Machine
from ...machine.equations import check_weighs, cylinders_of, missing_words
from ..force_balance import force_balance
from ..hydraulic_state import state_names
from .machine_poses import Poses, all_poses, in_motion

NORMAL = 1.959964       # 95 % quantile, two sides
SAMPLES = 100           # of the sensors' noise
LARGEST_SHARE = 0.05    # of the full scale: half-width of a set of sensors whose loads count
LEAST_PRESSURE = 2e6    # Pa, in chambers before they balance


@dataclass(frozen=True)
class MassAccuracy:
    """Half-widths of 95 % intervals, kg, in the middle (median) of poses: of ``each`` equation alone, by its cylinders,
    and of ``all`` together; infinite where the mass does not show."""

    each: dict[str, float]
    all: float


def mass_accuracy(machine: Machine, poses: Poses | None = None) -> MassAccuracy:
    """Of the sensors that the file has, at half of the largest mass; ``poses``: default, all coordinates over their
    ranges. Raises DescriptionError without a payload."""
    function, (low, high) = _terms(machine), machine.payload_data.limits
    looked = in_motion(all_poses(machine)) if poses is None else poses
    names, g = state_names(machine)[0], len(machine.coordinates)
    pressures = [i for i, name in enumerate(names) if name.startswith('pressure/')]
    noise = {c.sensor.volume: float(c.sensor.noise) for c in machine.all_channels if c.kind == 'pressure'}
    spread = np.array([noise.get(name, 0.0) for name in machine.volumes]) / np.sqrt(SAMPLES)
    factor, found = machine.parameters.factor(), []
    for q, zd in zip(looked.q, looked.zd):
        X = np.zeros(len(names))
        X[:g], X[g:2 * g], X[pressures] = q[machine.model.z], zd, LEAST_PRESSURE
        near = q[machine.system.dependent]
        for _ in range(3):          # friction depends on the pressures
            r, G, J, S = (item.full() for item in function(near, X, (low + high) / 2, machine.parameters.mean))
            X[pressures] -= np.linalg.lstsq(S, r[:, 0], rcond=None)[0]
        C = J @ factor @ (J @ factor).T + (S * spread ** 2) @ S.T
        with np.errstate(divide='ignore'):
            alone = np.sqrt(np.diag(C)) / np.abs(G[:, 0])
            together = 1.0 / np.sqrt(G[:, 0] @ np.linalg.pinv(C, hermitian=True) @ G[:, 0])
        found.append([*alone, together])
    middle = NORMAL * np.median(found, axis=0)
    owners = cylinders_of(machine)
    return MassAccuracy({' and '.join(owners[k]): float(value) for k, value in zip(machine.weighing, middle)},
                        float(middle[-1]))


def check_counts(machine: Machine) -> None:
    """Raise DescriptionError where loads of a machine cannot be counted: nothing weighs, or only cylinders that say too
    little of the mass, and rest while others take or lift the load."""
    check_weighs(machine)
    missing = missing_words(machine)
    if not missing:
        return
    low, high = machine.payload_data.limits
    largest, found = LARGEST_SHARE * (high - low), mass_accuracy(machine).all
    if not found <= largest:
        raise DescriptionError(machine.description.file, 'sensors', f'pressures that weigh to +- {found:.0f} kg',
                               f'{largest:.0f} kg or less to count loads ({LARGEST_SHARE:.0%} of payload.limits); '
                               f'missing: {missing}')


def _terms(machine: Machine) -> ca.Function:
    """``(near, X, mass, parameters)`` -> what the equations lack (a, 1), its derivatives by the mass (a, 1), by the
    parameters (a, k) and by the pressures (a, volumes), SI."""
    names, _ = state_names(machine)
    balance = force_balance(machine, names)
    pressures = balance.X[[i for i, name in enumerate(names) if name.startswith('pressure/')]]
    g, p = balance.g, machine.parameters.symbol
    slopes = [ca.densify(ca.jacobian(g, by)) for by in (machine.payload, p, pressures)]
    return ca.Function('mass_accuracy', [balance.near, balance.X, machine.payload, p], [g, *slopes], {'cse': True})
