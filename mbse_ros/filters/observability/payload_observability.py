# SPDX-License-Identifier: Apache-2.0
"""Whether the pressures of the cylinders distinguish the mass of a payload from its centre.

The forces that a point mass takes are linear in ``pi = (m, m c)`` at rest, c (d,) leading from the file's centre to its
own, along the axes of its body; their regressor, divided by the noise of the forces that the pressures give, has a
singular value for each direction of pi. In motion, where m c c' comes in, it is the derivative at half the largest mass
and the file's centre. A load is taken as a rigid point. Numbers of the file, friction above all, are taken as known:
what is blind here stays blind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from ...errors import SettingError
from ...machine import Machine
from ...machine.equations import by_cylinder, measured_equations
from .information import InformationWindow, observability
from .machine import Poses
from .mechanism import SHOWN, echelon

LEVER = 1.0     # m: how far the centre may be from the file's, for what is known before


@dataclass(frozen=True)
class PayloadObservability:
    """What pressures say of ``pi`` over some poses: ``window.information`` (1 + d,) in units of what is known before,
    the largest mass and that by a lever of 1 m. ``stddev`` (1 + d,) of mass, kg, and centre, m, after one sample at
    each pose, NaN where they cannot be found; ``body``: in whose frame."""

    window: InformationWindow
    stddev: np.ndarray
    body: str

    @property
    def rank(self) -> int:
        """Directions of pi that are seen."""
        return self.window.rank

    @property
    def least(self) -> float:
        """Least information."""
        return float(self.window.information[0])

    @property
    def blind(self) -> list[str]:
        """Directions that no pressure sees, in words."""
        return [_words(column, self.body) for column in echelon(self.window.blind).T]


def payload_observability(machine: Machine, sensors: Sequence[str], poses: Poses) -> PayloadObservability:
    """Observability of the payload by these sensors over all poses together; positions are taken as known.

    An equation counts whose pressures are all measured. Raises SettingError where there is none, DescriptionError
    without a payload.
    """
    machine.payload     # noqa: B018 (raises where there is none)
    limit, size = machine.payload_data.limits[1], 1 + machine.system.gravity.numel()
    nominal = limit / 2 * np.eye(size)[0]
    rows = weighed_rows(machine, sensors, poses, nominal)
    prior, k = limit * np.array([1.0, *(size - 1) * [LEVER]]), len(rows)
    window, = observability(np.tile(np.eye(size), (k, 1, 1)), rows, np.ones(rows.shape[1]), prior, k)
    stddev = np.full(size, np.nan)
    if window.rank == size:
        root = prior[:, None] * window.directions / np.sqrt(window.information)
        stddev = np.linalg.norm(root, axis=1) / np.array([1.0, *(size - 1) * [nominal[0]]])
    return PayloadObservability(window, stddev, machine.payload_data.body)


def weighed_rows(machine: Machine, sensors: Sequence[str], poses: Poses, nominal: np.ndarray) -> np.ndarray:
    """Regressor (k, e, 1 + d) of the equations whose pressures are measured, in standard deviations of their forces."""
    stddev = {channel.sensor.volume: float(channel.sensor.noise) for channel in machine.all_channels
              if channel.sensor.name in sensors and channel.kind == 'pressure'}
    used, needs = measured_equations(machine, stddev), machine.pressure_needs
    if not used:
        raise SettingError('sensors', list(sensors), 'all pressures of a cylinder, to see the payload: '
                           + '; '.join(', '.join(sorted(needs[k])) for k in range(len(needs))))
    noise = np.array([stddev.get(name, 0.0) for name in machine.volumes])
    function, found = payload_regressor(machine), []
    for q, zd, zdd in zip(poses.q, poses.zd, poses.zdd):
        W, S = (item.full()[used] for item in function(q, zd, zdd, nominal, machine.parameters.mean))
        found.append(W / np.sqrt(((S * noise) ** 2).sum(axis=1))[:, None])
    return np.array(found)


def _pressure_slopes(machine: Machine) -> ca.SX:
    """Derivatives (a, volumes) of the forces in the equations by the pressures, m2 or m3."""
    p = ca.SX.sym('p', len(machine.volumes))
    force = ca.sparsify(machine.piston_rates).T @ machine.circuit.hydraulic_forces(p)
    return ca.jacobian(by_cylinder(machine, force[machine.actuated])[0], p)


def payload_regressor(machine: Machine) -> ca.Function:
    """``(q, zd, zdd, pi, parameters) -> W (a, 1 + d), S (a, volumes)``: derivatives of the forces in the equations
    of the force balance that the payload takes by ``pi = (m, m c)``, kg and kg m, and that pressures give by the
    pressures.

    Raises DescriptionError without a payload.
    """
    system, reduced, parameters = machine.system, machine.reduced, machine.parameters
    payload = machine.payload_data
    pi, zdd = ca.SX.sym('pi', 1 + system.gravity.numel()), ca.SX.sym('zdd', len(machine.coordinates))
    place = system.frames[payload.body].at(system.values.vector(payload.center) + pi[1:] / pi[0])
    velocity = ca.jtimes(place, system.q, system.qd)
    acceleration = (ca.jtimes(velocity, system.q, system.qd)
                    + ca.jtimes(place, system.q, reduced.R @ zdd + reduced.S @ reduced.c))
    force = reduced.R.T @ ca.jtimes(place, system.q, pi[0] * (acceleration - system.gravity), True)
    force, _ = by_cylinder(machine, force[machine.actuated])
    W, = ca.substitute([ca.jacobian(force, pi)], [system.qd], [reduced.qd])
    every = [ca.densify(W), ca.densify(_pressure_slopes(machine))]
    level = [symbol for symbol in parameters.states.values()]       # the base as the file has it, level
    if level:
        every = ca.substitute(every, [ca.vertcat(*level)], [ca.SX.zeros(len(level))])
    return ca.Function('payload_regressor', [system.q, reduced.zd, zdd, pi, parameters.symbol], every)


def _words(direction: np.ndarray, body: str) -> str:
    """A direction (1 + d,) in units of the prior."""
    direction = np.where(np.abs(direction) < SHOWN * np.abs(direction).max(), 0.0, direction)
    mass, moment = direction[0], direction[1:]
    if not moment.any():
        return 'the mass'
    if mass == 0.0:
        return f'the centre along {_vector(moment / np.linalg.norm(moment))} of {body}'
    return (f'the mass against the centre: m c moved by {_vector(LEVER * moment / mass)} m of {body} for each kilogram '
            'more')


def _vector(values: np.ndarray) -> str:
    """A column (d,) along the axes: 'y' where it is one of them."""
    names = 'xyz' if len(values) == 3 else 'xy'
    if np.count_nonzero(values) == 1 and np.isclose(np.abs(values).max(), 1.0):
        return names[int(np.argmax(np.abs(values)))]
    return '(' + ', '.join(f'{value:.2f}'.replace('-0.00', '0.00') for value in values) + ')'
