# SPDX-License-Identifier: Apache-2.0
"""States of a machine that carries a known mass without noise, for the tests of the payload estimator."""

from __future__ import annotations

import casadi as ca
import numpy as np

from mbse_ros.filters.hydraulic_state import state_names
from mbse_ros.machine import Machine


class Carrier:
    """Residual of a machine's equations of motion, and states (SI) in which it is zero."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.names = machine, state_names(machine)[0]
        r, c, s, S = machine.reduced, machine.circuit, machine.system, machine.piston_rates
        zdd, p = ca.SX.sym('zdd', len(machine.coordinates)), ca.SX.sym('p', len(machine.volumes))
        force = c.hydraulic_forces(p) - c.friction_forces(S @ r.zd, p)
        g = r.Mbar @ zdd - r.Qbar - S.T @ force
        inputs = [s.q, r.zd, zdd, p, machine.payload, machine.parameters.symbol]
        self._g = ca.Function('g', inputs, [g[machine.actuated], S[:, machine.actuated]])
        self._areas = np.array(ca.evalf(c.areas()))[::2, 0]

    def part(self, X: np.ndarray, kind: str) -> np.ndarray:
        return X[[name.startswith(kind) for name in self.names]]

    def residual(self, X: np.ndarray, mass: float, parameters: np.ndarray | None = None) -> np.ndarray:
        """Force that is missing along each coordinate that cylinders move, N or N m (Pyrhönen et al., mass estimation,
        Eq. 55)."""
        return self._terms(X, mass, parameters)[0][:, 0]

    def behind(self, X: np.ndarray, number: str, error: float) -> np.ndarray:
        """The state behind the same samples where a sensor's offset, bias or gain is off by so much."""
        _, name, kind = number.split('.')
        channel = next(channel for channel in self.machine.all_channels if channel.sensor.name == name)
        k, X = self.names.index(channel.name), X.copy()
        X[k] = X[k] / (1 + error) if kind == 'gain' else X[k] - error
        return X

    def state(self, z: np.ndarray, zd: np.ndarray, zdd: np.ndarray, mass: float, rod: float = 2e6) -> np.ndarray:
        """State that carries the mass: the piston sides take the balance."""
        X, kinds = np.zeros(len(self.names)), np.array([name.split('/')[0] for name in self.names])
        X[kinds == 'position'], X[kinds == 'velocity'], X[kinds == 'acceleration'] = z, zd, zdd
        X[kinds == 'pressure'] = rod
        piston = np.flatnonzero(kinds == 'pressure')[::2]
        for _ in range(60):
            missing, S = self._terms(X, mass, None)
            missing = np.linalg.solve(S.T, missing[:, 0])
            X[piston] += missing / self._areas
            if np.abs(missing).max() < 1e-9:
                break
        return X

    def _terms(self, X: np.ndarray, mass: float, parameters: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        p = self.machine.parameters.mean if parameters is None else parameters
        q = self.machine.position(self.part(X, 'position'))
        g, S = self._g(q, self.part(X, 'velocity'), self.part(X, 'acceleration'), self.part(X, 'pressure'), mass, p)
        return g.full(), S.full()
