# SPDX-License-Identifier: Apache-2.0
"""Inputs that hold a simulated mechanism up: the coordinates they drive follow sines about the start.

The accelerations are affine in the inputs, ``zdd = a + B u``. For those of the driven coordinates the wish is that of
an oscillator, critically damped, about the sine; the inputs that give it follow (partial feedback linearisation: M. W.
Spong, Partial feedback linearization of underactuated mechanical systems, IROS 1994). What no input drives moves on by
itself. An input held over a sensor period is a command as of any controller: it is published, so known.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from ..compiled import Kernel
from ..description.coordinate_units import unit_of
from ..dynamics.model import Model
from ..errors import SettingError
from ..estimators.filters.parts.model_step import rates
from ..estimators.filters.parts.problem import Problem

STIFFNESS = 2 * np.pi       # rad/s of the oscillator
LEAST = 1e-9                # share of the largest influence from which on an input moves a coordinate


def driven_coordinates(model: Model) -> list[int]:
    """Of each input, the place of the independent coordinate that it drives; -1: none."""
    coordinates = {force.input: force.coordinate for force in model.description.forces.values() if force.input}
    return [model.independent.index(coordinates[name]) if coordinates.get(name) in model.independent else -1
            for name in model.inputs]


def must_follow(model: Model) -> bool:
    """Whether sines of force would drive the mechanism where it cannot go: an input drives a length, whose stroke has
    ends, or acts on a body, where nothing damps it."""
    places = driven_coordinates(model)
    if not 0 < len(places) <= len(model.independent):
        return False
    lengths = [place for place in places if place >= 0 and unit_of(model.description, model.independent[place]) == 'm']
    return bool(lengths) or -1 in places


class Following:
    """``at (q, zd, t)``: inputs (k,) by which the driven coordinates follow ``travel sin(2 pi frequency t)`` about
    the start; each further one has 1.3 times the frequency. Raises SettingError where the inputs cannot."""

    def __init__(self, of: Problem, travel: float, frequency: float) -> None:
        self._travel, self._start = travel, of.model.start.q[of.model.z]
        self._parameters, self._z = np.asarray(of.model.parameters), of.model.z
        self._omega = 2 * np.pi * frequency * 1.3 ** np.arange(len(of.model.inputs))
        self._kernel = Kernel(_influence(of), 'vm')
        self._driven = self._chosen(of.model)

    def at(self, q: np.ndarray, zd: np.ndarray, t: float) -> np.ndarray:
        """Inputs at coordinates (n,) and independent velocities (g,)."""
        driven, w = self._driven, STIFFNESS
        free, B = self._kernel(q, zd, [t], self._parameters)
        B = B.reshape(len(zd), -1)
        phase = self._omega * t
        z = self._start[driven] + self._travel * np.sin(phase)
        rate = self._travel * self._omega * np.cos(phase)
        wish = -self._travel * self._omega ** 2 * np.sin(phase) + w * w * (z - q[self._z][driven]) \
            + 2 * w * (rate - zd[driven])
        return np.linalg.solve(B[driven], wish - free[driven])

    def _chosen(self, model: Model) -> list[int]:
        """The coordinate of each input: the one that it drives, else the free one that it moves most."""
        start = model.start
        _, B = self._kernel(start.q, start.qd[model.z], [start.t], self._parameters)
        B, places = np.abs(B.reshape(len(model.z), -1)), driven_coordinates(model)
        for k, name in enumerate(model.inputs):
            free = [place for place in range(len(model.z)) if place not in places]
            if places[k] < 0:
                if not free or not B[free, k].max() > LEAST * B.max():
                    raise SettingError('motion', 'follow', f'forces: input {name} of {model.description.name} has no '
                                                           'independent coordinate of its own to drive')
                places[k] = free[int(np.argmax(B[free, k]))]
        return places


def _influence(of: Problem) -> ca.Function:
    """``(q, zd, t, p) -> (a (g,), B (g k,), row by row)`` of ``zdd = a + B u``."""
    q, zd, u, t, p = of.symbols('q zd u t p')
    zdd = rates(of, q, zd, u, of.zeros(of.g), t, p).zdd
    B = ca.jacobian(zdd, u)
    free, B = ca.substitute([zdd, B], [u], [of.zeros(u.numel())])
    return ca.Function('mbse_influence', [q, zd, t, p], [free, ca.vec(ca.densify(B).T)], {'cse': True})
