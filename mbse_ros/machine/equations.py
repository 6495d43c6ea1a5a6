# SPDX-License-Identifier: Apache-2.0
"""Equations of a machine's force balance: whose forces are in each, which pressures it needs, and which weigh.

The mass follows from an equation only where sensors measure all pressures that push in it. The model of a valve does
not replace a sensor: its error is not in the file, so it would be in no interval.
"""

from __future__ import annotations

from collections.abc import Collection

import casadi as ca
import numpy as np

from ..errors import DescriptionError
from .machine import Machine

SEVERAL_APART = 'several payloads are weighed apart from the motion, with observer.weighing=apart or the preset paper'


def by_actuator(machine: Machine, g: ca.SX) -> tuple[ca.SX, np.ndarray]:
    """Equations (a,) along the coordinates that actuators move, combined to those with the friction of as few actuators
    each as can be, and whose friction that is (a, actuators)."""
    if machine.separable:
        return ca.solve(machine.piston_rates[:, machine.actuated].T, g), np.eye(len(machine.actuators), dtype=bool)
    return g, machine.moved.T


def measured_equations(machine: Machine, pushes: Collection[str]) -> list[int]:
    """Equations of ``by_actuator``, by their place, of which all pressures and efforts are among ``pushes``."""
    return [k for k, needed in enumerate(machine.push_needs) if needed and needed <= set(pushes)]


def actuators_of(machine: Machine) -> list[tuple[str, ...]]:
    """Names of the actuators whose forces are in each equation of ``by_actuator``."""
    concerns = np.eye(len(machine.actuators), dtype=bool) if machine.separable else machine.moved.T
    return [tuple(name for name, own in zip(machine.actuators.names, row) if own) for row in concerns]


def why_unweighed(machine: Machine) -> str:
    """Why nothing weighs a load of this machine, and what to add; '' where something does."""
    if not machine.description.every_payload:
        return 'the file has no section `payload`: motion alone'
    if machine.weighing:
        return ''
    if not machine.actuators.entries:
        return 'the file has no section `hydraulics`: motion alone'
    if not machine.cylinders:
        return f'of no drive is the effort measured: motion alone; to weigh, add sensors of {missing_words(machine)}'
    return f'of no cylinder are all pressures measured: motion alone; to weigh, add sensors of {missing_words(machine)}'


def check_single(machine: Machine) -> None:
    """Raise DescriptionError for a machine of several payloads: of what needs the mass of all that it carries."""
    if machine.description.payloads:
        _ = machine.payload_data        # raises


def check_weighs(machine: Machine) -> None:
    """Raise DescriptionError where nothing weighs a load of this machine: of what needs a mass."""
    file = machine.description.file
    _ = machine.payload_data        # raises
    if not machine.actuators.entries:
        raise DescriptionError(file, 'hydraulics', None, 'this section, to weigh a load')
    if not machine.weighing:
        wanted = 'all pressures of a cylinder' if machine.cylinders else 'the effort of a drive'
        raise DescriptionError(file, 'sensors', list(machine.measured_pushes),
                               f'{wanted}, to weigh a load; missing: {missing_words(machine)}')


def missing_words(machine: Machine) -> str:
    """Pressures and efforts that the equations that do not weigh lack, by their actuators, in words."""
    return '; or '.join(' and '.join(names) for names in missing_pushes(machine).values())


def missing_pushes(machine: Machine) -> dict[str, list[str]]:
    """By the actuators of each equation that does not weigh: pressures and efforts that no sensor measures."""
    needs, names = machine.push_needs, actuators_of(machine)
    return {' and '.join(names[k]): [name for name in machine.actuators.entries
                                     if name in needed - set(machine.measured_pushes)]
            for k, needed in enumerate(needs) if k not in machine.weighing}


def pressure_pairs(machine: Machine) -> dict[str, tuple[str, str]]:
    """Pressure channels, piston and rod, of the cylinders that have both."""
    volumes = machine.hydraulics.volumes
    chambers = {chamber: f'pressure/{name}' for name, volume in volumes.items() for chamber in volume.chambers}
    found = {name: (chambers.get((name, 'piston'), ''), chambers.get((name, 'rod'), '')) for name in machine.cylinders}
    return {name: pair for name, pair in found.items() if set(pair) <= set(machine.channels)}
