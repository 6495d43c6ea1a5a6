# SPDX-License-Identifier: Apache-2.0
"""The observer of Pyrhönen et al., mass estimation as printed, in NumPy, with its Jacobian by hand (Eqs. 18, 23-32,
38-42).

The reference that tests compare the derived model with, and the 'numpy' row of the kernel benchmark. Orifice valves
only. State: positions m, velocities, accelerations, pressures MPa, spools V.
"""

from __future__ import annotations

import numpy as np

from mbse_ros.machine import Machine
from mbse_ros.transition.exponential import transition
from mbse_ros.transition.noise import van_loan

MPA = 1e6


class PaperModel:
    """``f`` (Eq. 18) and ``A`` (Eq. 23) of a machine at nominal parameters."""

    def __init__(self, machine: Machine) -> None:
        d, c, hydraulics = machine.description, machine.circuit, machine.hydraulics
        self.T_sz, self.T_V, self.T_pQ = c.T_sz, c.T_Vcyl, c.T_pQ
        self.areas = np.array([a for y in d.cylinders.values() for a in (y.piston_area, y.rod_area)])
        self.stroke = np.array([y.stroke.value for y in d.cylinders.values()])
        self.oil = hydraulics.oil_bulk_modulus.value
        volumes, valves = hydraulics.volumes.values(), hydraulics.valves.values()
        self.wall = np.array([v.cylinder_bulk_modulus.value for v in volumes])
        self.hose = np.array([sum(h.volume.value for h in v.hoses) for v in volumes])
        self.hose_compliance = np.array([sum(h.volume.value / h.bulk_modulus.value for h in v.hoses) for v in volumes])
        nominal = [[getattr(v, f'nominal_{s}').value for s in ('flow', 'command', 'pressure')] for v in valves]
        self.Cv = np.array([flow / command / pressure ** 0.5 for flow, command, pressure in nominal])
        self.limit, self.tau = (np.array([getattr(v, s).value for v in valves])
                                for s in ('laminar_pressure', 'time_constant'))
        supplies = hydraulics.supplies
        self.pump, self.tank = (np.array([supplies[getattr(v, s)].value for v in valves]) for s in ('pump', 'tank'))
        self.count = (len(self.stroke), len(self.wall), len(self.tau))

    def rates(self, X: np.ndarray, U_in: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``f(X, U_in)`` (nx,) and ``A`` (nx, nx)."""
        n, v, u = self.count
        z, zd, zdd, p, U = np.split(X, [n, 2 * n, 3 * n, 3 * n + v])
        s, sd = self._heights(z), self.T_sz @ zd
        chamber = self.areas * s
        V = self.hose + self.T_V @ chamber
        B = 1 / (1 / self.oil + (self.hose_compliance + self.T_V @ chamber / self.wall) / V)
        Q, dQ_dp, dQ_dU = self._flows(p * MPA, U)
        net = self.T_pQ @ Q - self.T_V @ (self.areas * sd)
        f = np.concatenate([zd, zdd, np.zeros(n), B / V * net / MPA, (U_in - U) / self.tau])
        A = np.zeros((len(X), len(X)))
        A[:n, n:2 * n] = A[n:2 * n, 2 * n:3 * n] = np.eye(n)
        rows = slice(3 * n, 3 * n + v)
        compliance = np.add.outer(1 / self.wall, np.full(2 * n, 1 / self.oil))
        A[rows, :n] = (-(B / V) ** 2 * net)[:, None] * compliance * self.areas * self.T_V @ self.T_sz / MPA   # Eq. 27
        A[rows, n:2 * n] = -(B / V)[:, None] * self.areas * self.T_V @ self.T_sz / MPA                        # Eq. 28
        A[rows, rows] = (B / V)[:, None] * self.T_pQ @ (dQ_dp[:, None] * -self.T_pQ.T)                    # Eqs. 29-31
        A[rows, 3 * n + v:] = (B / V)[:, None] * self.T_pQ @ dQ_dU / MPA                                      # Eq. 32
        A[3 * n + v:, 3 * n + v:] = -np.diag(1 / self.tau)
        return f, A

    def _heights(self, z: np.ndarray) -> np.ndarray:
        """Chamber heights (chambers,), m."""
        return np.ravel(np.column_stack([z, self.stroke - z]))

    def _flows(self, p: np.ndarray, U: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Flows (flows,), m3/s, their derivative by the pressure drop, and by the spools (flows, valves)."""
        forward = U > 0
        source = np.ravel(np.column_stack([np.where(forward, self.pump, self.tank),
                                           np.where(forward, self.tank, self.pump)]))
        Cv, limit, opening = np.repeat(self.Cv, 2), np.repeat(self.limit, 2), np.repeat(np.abs(U), 2)
        drop = source - self.T_pQ.T @ p
        turbulent = np.abs(drop) > limit
        root = np.where(turbulent, np.sqrt(np.abs(drop)) * np.sign(drop), drop / np.sqrt(limit))
        slope = np.where(turbulent, 0.5 / np.sqrt(np.maximum(np.abs(drop), limit)), 1 / np.sqrt(limit))   # Eq. 30
        dQ_dU = np.zeros((len(drop), len(U)))
        dQ_dU[np.arange(len(drop)), np.arange(len(drop)) // 2] = np.repeat(np.sign(U), 2) * Cv * root     # Eq. 32
        return opening * Cv * root, opening * Cv * slope, dQ_dU


def paper_step(model: PaperModel, X: np.ndarray, P: np.ndarray, U_in: np.ndarray, W: np.ndarray, dt: float,
               H: np.ndarray, Y: np.ndarray, R: np.ndarray, order: str = 'exact') -> tuple[np.ndarray, np.ndarray]:
    """State and covariance after one step with measurements Y (ny,) = H X (Eqs. 38-42, the update as one block)."""
    f, A = model.rates(X, U_in)
    F, G = transition(A, dt, order)
    X = X + G @ f
    P = F @ P @ F.T + van_loan(A, W, dt)[1]
    S = H @ P @ H.T + R
    K = np.linalg.solve(S, H @ P).T
    return X + K @ (Y - H @ X), P - K @ S @ K.T
