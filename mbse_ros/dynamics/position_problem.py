# SPDX-License-Identifier: Apache-2.0
"""Position problem: all coordinates from the independent ones, by Newton's method (paper 000 Eq. 7)."""

from __future__ import annotations

from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from ..compiled import Kernel
from ..errors import PositionProblemError, SingularConfigurationError
from ..mechanism.parameters import ParameterSet
from ..mechanism.machine_system import MachineSystem

SINGULAR = 1e-6   # smallest relative pivot of the dependent Jacobian that still determines the motion


def newton_step(system: MachineSystem, joints: ca.SX, pistons: ca.SX) -> ca.SX:
    """One Newton step on the joint coordinates (m,) for given piston positions (g,).

    At a solution its derivative is the exact derivative of the solution (implicit function theorem),
    also with respect to the parameters.
    """
    J_d = ca.jacobian(system.Phi, system.q)[:, system.dependent]
    step = ca.solve(ca.densify(J_d), system.Phi)
    return joints - ca.substitute(step, system.q, ca.vertcat(joints, pistons))


@dataclass
class PositionProblem:
    """Solver of ``Phi(q) = 0`` for given piston positions."""

    system: MachineSystem
    parameters: ParameterSet
    tolerance: float = 1e-13
    iterations: int = 50
    _kernel: Kernel = field(init=False, repr=False)

    def __post_init__(self) -> None:
        joints, pistons = ca.SX.sym('joints', len(self.system.joints)), ca.SX.sym('z', len(self.system.cylinders))
        q = ca.vertcat(joints, pistons)
        J_d = ca.jacobian(self.system.Phi, self.system.q)[:, self.system.dependent]
        out = ca.substitute([self.system.Phi, J_d], [self.system.q], [q])
        self._kernel = Kernel(ca.Function('mbse_position', [joints, pistons, self.parameters.symbol], out), 'vm')

    def solve(self, pistons: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
        """Coordinates q (n,) at piston positions (g,), m, from joint values near ``start``.

        Raises PositionProblemError (out of reach) or SingularConfigurationError (dead point).
        """
        joints = np.array(self.system.start if start is None else start, dtype=float)
        pistons = np.atleast_1d(np.asarray(pistons, dtype=float))
        residual = np.inf
        for _ in range(self.iterations):
            phi, J_d = self._kernel(joints, pistons, self.parameters.mean)
            J_d = J_d.reshape(len(joints), len(joints))     # a (1, 1) output comes as (1,)
            residual = float(np.max(np.abs(phi)))
            if not np.isfinite(residual):
                break
            self._refuse_singular(J_d, residual)
            if residual < self.tolerance:
                return np.concatenate([joints, pistons])
            joints = joints - np.clip(np.linalg.solve(J_d, phi), -0.5, 0.5)
        raise PositionProblemError(residual, self.iterations, [*joints, *pistons])

    def _refuse_singular(self, J_d: np.ndarray, residual: float) -> None:
        smallest = float(np.linalg.svd(J_d, compute_uv=False)[-1])
        if smallest < SINGULAR and residual < self.tolerance:
            raise SingularConfigurationError(self.system.cylinders, 1.0 / max(smallest, 1e-300))
        if smallest == 0.0:
            raise SingularConfigurationError(self.system.cylinders, np.inf)
