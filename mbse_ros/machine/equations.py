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


def by_cylinder(machine: Machine, g: ca.SX) -> tuple[ca.SX, np.ndarray]:
    """Equations (a,) along the coordinates that cylinders move, combined to those with the friction of as few cylinders
    each as can be, and whose friction that is (a, cylinders)."""
    if machine.separable:
        return ca.solve(machine.piston_rates[:, machine.actuated].T, g), np.eye(len(machine.cylinders), dtype=bool)
    return g, machine.moved.T


def measured_equations(machine: Machine, volumes: Collection[str]) -> list[int]:
    """Equations of ``by_cylinder``, by their place, of which all pressures are among ``volumes``."""
    return [k for k, needed in enumerate(machine.pressure_needs) if needed and needed <= set(volumes)]


def cylinders_of(machine: Machine) -> list[tuple[str, ...]]:
    """Names of the cylinders whose forces are in each equation of ``by_cylinder``."""
    concerns = np.eye(len(machine.cylinders), dtype=bool) if machine.separable else machine.moved.T
    return [tuple(name for name, own in zip(machine.cylinders, row) if own) for row in concerns]


def why_unweighed(machine: Machine) -> str:
    """Why nothing weighs a load of this machine, and what to add; '' where something does."""
    if not machine.description.every_payload:
        return 'the file has no section `payload`: motion alone'
    if machine.weighing:
        return ''
    if not machine.volumes:
        return 'the file has no section `hydraulics`: motion alone'
    return f'of no cylinder are all pressures measured: motion alone; to weigh, add sensors of {missing_words(machine)}'


def check_single(machine: Machine) -> None:
    """Raise DescriptionError for a machine of several payloads: of what needs the mass of all that it carries."""
    if machine.description.payloads:
        _ = machine.payload_data        # raises


def check_weighs(machine: Machine) -> None:
    """Raise DescriptionError where nothing weighs a load of this machine: of what needs a mass."""
    file = machine.description.file
    _ = machine.payload_data        # raises
    if not machine.volumes:
        raise DescriptionError(file, 'hydraulics', None, 'this section, to weigh a load')
    if not machine.weighing:
        measured = [f'pressure/{name}' for name in machine.measured_volumes]
        raise DescriptionError(file, 'sensors', measured, 'all pressures of a cylinder, to weigh a load; missing: '
                               + missing_words(machine))


def missing_words(machine: Machine) -> str:
    """Pressures that the equations that do not weigh lack, by their cylinders, in words."""
    lacking = missing_pressures(machine)
    return '; or '.join(' and '.join(f'pressure/{name}' for name in names) for names in lacking.values())


def missing_pressures(machine: Machine) -> dict[str, list[str]]:
    """By the cylinders of each equation that does not weigh: volumes whose pressures no sensor measures."""
    needs, names = machine.pressure_needs, cylinders_of(machine)
    return {' and '.join(names[k]): [name for name in machine.volumes if name in needed - set(machine.measured_volumes)]
            for k, needed in enumerate(needs) if k not in machine.weighing}


def pressure_pairs(machine: Machine) -> dict[str, tuple[str, str]]:
    """Pressure channels, piston and rod, of the cylinders that have both."""
    volumes = machine.hydraulics.volumes
    chambers = {chamber: f'pressure/{name}' for name, volume in volumes.items() for chamber in volume.chambers}
    found = {name: (chambers.get((name, 'piston'), ''), chambers.get((name, 'rod'), '')) for name in machine.cylinders}
    return {name: pair for name, pair in found.items() if set(pair) <= set(machine.channels)}
