# SPDX-License-Identifier: Apache-2.0
"""The true machine: multibody dynamics, chambers, friction and spools as one stiff system, integrated by RK4.

Paper 003 section 4 ('artificial plant'). State: joints, piston positions, velocities, pressures (MPa), spools (V).
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from ..compiled import Kernel, Scan
from ..dynamics.position_problem import newton_step
from ..errors import DescriptionError, DivergenceError
from ..machine import Machine

MPA = 1e6
STEP_NS = 100_000      # 0.1 ms: 1e-6 relative against an adaptive reference (see test_simulation_plant)
NEWTON = 2             # steps from the last joint angles to the exact ones within one integration step


def plant_rates(machine: Machine, joints: ca.SX, z: ca.SX, zd: ca.SX, p: ca.SX,
                spools: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Consistent joints, piston accelerations, m/s2, and pressure rates, Pa/s, of the machine with its payload."""
    for _ in range(NEWTON):
        joints = newton_step(machine.system, joints, z)
    circuit, reduced = machine.circuit, machine.reduced
    force = circuit.hydraulic_forces(p) - circuit.friction_forces(zd, p) + circuit.end_stop_forces(z, zd)
    at = [machine.system.q, reduced.zd], [ca.vertcat(joints, z), zd]
    Mbar, Qbar = ca.substitute([reduced.Mbar, reduced.Qbar], *at)
    flows = ca.vertcat(*(circuit.valve_flows(name, spools[i], p) for i, name in enumerate(machine.valves)))
    return joints, ca.solve(Mbar, Qbar + force), circuit.pressure_rates(z, zd, flows)


class Plant:
    """Simulated machine with every valve an orifice; advances by whole steps of 0.1 ms.

    ``parameters`` are the true values of the uncertain numbers (default: nominal).
    Raises DescriptionError when the machine has no orifice data.
    """

    def __init__(self, machine: Machine, backend: str = 'auto') -> None:
        if machine.valves_of('orifice') != machine.valves:
            raise DescriptionError(machine.description.file, 'hydraulics.valves', 'unknown',
                                   'valves of kind orifice: a plant needs their data')
        self.machine = machine
        self._sizes = [len(machine.system.joints), *[len(machine.cylinders)] * 2, len(machine.volumes),
                       len(machine.valves)]
        self._scan = Scan(self._step_function(), backend)
        self._static = self._static_balance()

    def start(self, position: np.ndarray, payload: float, parameters: np.ndarray,
              rod_pressure: float = 2e6) -> np.ndarray:
        """State (nx,) at rest and in balance at piston positions (cylinders,), m; rod sides at ``rod_pressure``, Pa.

        Raises PositionProblemError where the cylinders cannot reach.
        """
        q = self.machine.position_problem.solve(position)
        force, areas = self._static(q, np.array([payload]), parameters)
        chambers = np.empty(2 * len(position))
        chambers[1::2] = rod_pressure
        chambers[0::2] = (np.atleast_1d(force) + np.atleast_1d(areas)[1::2] * rod_pressure) / np.atleast_1d(areas)[0::2]
        pressures = self.machine.circuit.T_Vcyl @ chambers
        return np.concatenate([q, np.zeros(len(position)), pressures / MPA, np.zeros(len(self.machine.valves))])

    def advance(self, x: np.ndarray, commands: np.ndarray, steps: int, payload: float,
                parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """State and piston acceleration, m/s2, after ``steps`` steps under held commands (valves,), V.

        Raises DivergenceError when the state leaves the finite numbers.
        """
        p = np.concatenate([[STEP_NS * 1e-9, payload], parameters])
        x, y = self._scan(x, np.tile(commands, (steps, 1)), p)
        if not np.isfinite(x).all():
            raise DivergenceError('plant', steps, 'the state left the finite numbers')
        return x, y[-1]

    def split(self, x: np.ndarray) -> list[np.ndarray]:
        """Joints, positions, velocities, pressures (Pa) and spools of a state."""
        joints, z, zd, p, spools = np.split(x, np.cumsum(self._sizes)[:-1])
        return [joints, z, zd, p * MPA, spools]

    def _step_function(self) -> ca.Function:
        """Classical Runge-Kutta step; the acceleration at its end is the output."""
        x, u = ca.SX.sym('x', sum(self._sizes)), ca.SX.sym('u', len(self.machine.valves))
        h, payload, parameters = ca.SX.sym('h'), ca.SX.sym('payload'), self.machine.parameters.symbol
        rhs = self._rhs(payload)
        k1, _, _ = rhs(x, u, payload, parameters)
        k2, _, _ = rhs(x + h / 2 * k1, u, payload, parameters)
        k3, _, _ = rhs(x + h / 2 * k2, u, payload, parameters)
        k4, _, _ = rhs(x + h * k3, u, payload, parameters)
        end = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        _, joints, zdd = rhs(end, u, payload, parameters)
        end[:joints.numel()] = joints
        return ca.Function('mbse_plant', [x, u, ca.vertcat(h, payload, parameters)], [end, zdd], ['x', 'u', 'p'],
                           ['x_next', 'y'])

    def _rhs(self, payload: ca.SX) -> ca.Function:
        """``(x, u, payload, parameters) -> (xd, consistent joints, zdd)``; joints move only by the position problem."""
        x, u = ca.SX.sym('x', sum(self._sizes)), ca.SX.sym('u', len(self.machine.valves))
        joints, z, zd, p, spools = ca.vertsplit(x, [0, *np.cumsum(self._sizes).tolist()])
        solved, zdd, rates = plant_rates(self.machine, joints, z, zd, p * MPA, spools)
        lag = ca.vertcat(*(self.machine.circuit.spool_rate(name, spools[i], u[i])
                           for i, name in enumerate(self.machine.valves)))
        zdd = ca.substitute(zdd, self.machine.system.payload, payload)
        xd = ca.vertcat(ca.SX.zeros(joints.numel()), zd, zdd, rates / MPA, lag)
        return ca.Function('mbse_plant_rhs', [x, u, payload, self.machine.parameters.symbol], [xd, solved, zdd])

    def _static_balance(self) -> Kernel:
        """``(q, payload, parameters) -> (cylinder forces at rest, chamber areas)``."""
        system, reduced = self.machine.system, self.machine.reduced
        force = ca.substitute(-reduced.Qbar, reduced.zd, ca.SX.zeros(reduced.zd.numel()))
        return Kernel(ca.Function('mbse_static', [system.q, system.payload, self.machine.parameters.symbol],
                                  [force, self.machine.circuit.areas()]), 'vm')
