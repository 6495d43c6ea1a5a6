# SPDX-License-Identifier: Apache-2.0
"""A boom and a jib (`two_cylinders.yaml`) with a payload at the tip of each, and its masses from the print alone.

``TwoMasses`` is Pyrhönen et al., mass estimation, Eqs. 50 to 57, in NumPy: no code of the package.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import yaml
from core_support import TWO_CYLINDERS

from mbse_ros.description.load import parse_mechanism
from mbse_ros.machine import Machine

ONE = 'payload: {point: jib.tip, limits: [0, 1000]}\n'
TWO = 'payloads:\n  boom: {point: boom.tip, limits: [0, 500]}\n  jib: {point: jib.tip, limits: [0, 1000]}\n'
EPSILON = 1e-2      # kg, Eq. 57


def text_with(section: str = TWO) -> str:
    """The file with another section than its `payload`."""
    assert ONE in TWO_CYLINDERS
    return TWO_CYLINDERS.replace(ONE, section)


@cache
def two_payloads(section: str = TWO) -> Machine:
    """That machine."""
    return Machine(parse_mechanism(text_with(section), 'two.yaml'))


class TwoMasses:
    """Residual g of the equations of motion in the pistons' positions, and Newton's iteration for the masses."""

    def __init__(self) -> None:
        file = yaml.safe_load(TWO_CYLINDERS)
        self.points = {f'{body}.{name}': np.array(point)[[0, 2]] for body in ('boom', 'jib')
                       for name, point in file['bodies'][body]['points'].items()}
        self.base, self.gravity = np.array([0.26, -1.04]), 9.8066
        self.bodies = {name: (float(body['mass']['value'].split()[0]), np.array(body['center_of_mass'])[[0, 2]],
                              float(body['inertia']['yy'])) for name, body in file['bodies'].items()}
        self.closed, bores, rods = np.array([0.82, 1.1]), np.array([0.1, 0.08]), np.array([0.056, 0.045])
        self.areas = np.pi / 4 * np.column_stack([bores ** 2, bores ** 2 - rods ** 2])      # (2, 2): piston, rod
        self.start = np.deg2rad([5.0, -25.0])

    def places(self, angles: np.ndarray, *names: tuple[str, np.ndarray]) -> np.ndarray:
        """Points of bodies (k, 2) at the angles of boom and jib; complex angles allowed."""
        def turn(a: complex) -> np.ndarray:
            return np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
        boom, jib = turn(angles[0]), turn(angles[0] + angles[1])
        tip = boom @ self.points['boom.tip']
        return np.array([boom @ point if body == 'boom' else tip + jib @ point for body, point in names])

    def pistons(self, angles: np.ndarray) -> np.ndarray:
        """Positions of the pistons (2,), m."""
        p = self.points
        eye, base, far = self.places(angles, ('boom', p['boom.eye']), ('boom', p['boom.base']), ('jib', p['jib.eye']))
        spans = np.array([eye - self.base, far - base])
        return np.sqrt((spans ** 2).sum(axis=1)) - self.closed

    def angles(self, z: np.ndarray) -> np.ndarray:
        """Angles at piston positions, on the branch of the start."""
        found = self.start.copy()
        for _ in range(50):
            found = found - np.linalg.solve(slopes(self.pistons, found), self.pistons(found) - z)
        return found

    def mass_matrix(self, angles: np.ndarray, m: np.ndarray) -> np.ndarray:
        """Of boom, jib and the masses, by the angles."""
        M: np.ndarray = 0.0
        for mass, body, place, inertia in self._parts(m):
            J = slopes(lambda a, body=body, place=place: self.places(a, (body, place))[0], angles)
            turns = np.array([1.0, float(body == 'jib')])
            M = M + mass * J.T @ J + inertia * np.outer(turns, turns)
        return M

    def _parts(self, m: np.ndarray) -> list[tuple[float, str, np.ndarray, float]]:
        return [*((mass, body, centre, inertia) for body, (mass, centre, inertia) in self.bodies.items()),
                (m[0], 'boom', self.points['boom.tip'], 0.0), (m[1], 'jib', self.points['jib.tip'], 0.0)]

    def residual(self, z: np.ndarray, zd: np.ndarray, zdd: np.ndarray, p: np.ndarray, m: np.ndarray) -> np.ndarray:
        """g (2,), N, of Eq. 55 at positions, speeds, accelerations and pressures (2, 2), Pa: piston and rod side."""
        a = self.angles(z)
        S = slopes(self.pistons, a)
        ad = np.linalg.solve(S, zd)
        S_d = (slopes(self.pistons, a + 1e-5 * ad) - slopes(self.pistons, a - 1e-5 * ad)) / 2e-5
        add = np.linalg.solve(S, zdd - S_d @ ad)
        h = 1e-5
        dM = np.array([(self.mass_matrix(a + h * e, m) - self.mass_matrix(a - h * e, m)) / (2 * h) for e in np.eye(2)])
        height = slopes(lambda q: np.array([sum(mass * self.places(q, (body, place))[0, 1]
                                                for mass, body, place, _ in self._parts(m))]), a)[0]
        Q = (-self.gravity * height - np.einsum('kij,k,j->i', dM, ad, ad) + 0.5 * np.einsum('kij,i,j->k', dM, ad, ad))
        return np.linalg.solve(S.T, self.mass_matrix(a, m) @ add - Q) - self.force(zd, p)

    def force(self, zd: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Of the cylinders (2,), N (Eqs. 50 to 54); the sign of Eq. 52 is the tanh of the paper's own plant."""
        Fc, Fs, vs, viscous, difference, rod = 210.0, 300.0, 0.005, 330.0, 5e-4, 1e-4
        ratio = zd / vs
        brown_mcphee = Fc * np.tanh(4 * ratio) + (Fs - Fc) * ratio / (ratio ** 2 / 4 + 3 / 4) ** 2 + viscous * zd
        by_pressure = (np.abs(p[:, 0] - p[:, 1]) * difference + p[:, 1] * rod) * np.tanh(4 * ratio)
        return self.areas[:, 0] * p[:, 0] - self.areas[:, 1] * p[:, 1] - brown_mcphee - by_pressure


def newton(g: Callable[[np.ndarray], np.ndarray], start: np.ndarray) -> np.ndarray:
    """Masses (k,), kg, by Eqs. 56 and 57, from those of the step before: forward differences of ``EPSILON``."""
    m = np.array(start, dtype=float)
    for _ in range(20):
        value = g(m)
        jacobian = np.column_stack([(g(m + EPSILON * e) - value) / EPSILON for e in np.eye(len(m))])
        step = np.linalg.solve(jacobian, value)
        m = m - step
        if np.abs(step).max() < 1e-10:
            break
    return m


def slopes(f: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """Derivatives of ``f`` (n,) by ``x`` (k,), by a complex step."""
    return np.column_stack([f(x + 1e-30j * e).imag / 1e-30 for e in np.eye(len(x))])
