# SPDX-License-Identifier: Apache-2.0
"""Gates of the mass by the states alone, for an observer that estimates motion and mass together.

Those of ``gates`` except acceleration, which closes no gate here: the observer weighs it. No mass is computed,
so the state counts as exact except for the accelerations, by whose uncertainty the equations are weighed against each
other: of the equations of motion only their derivatives by mass and accelerations are left, a tenth of the work.
"""

from __future__ import annotations

from math import isfinite

import casadi as ca
import numpy as np

from ..compiled import Scan
from ..compiled.cache import built
from ..errors import PositionProblemError
from ..filters.hydraulic_model import coordinate_scale
from ..filters.hydraulic_state import state_names
from ..machine import Machine
from ..machine.machine import NEWTON
from .gates import GATE_NUMBERS, GATES, closed_gate, gate_numbers, passed_gates
from .inverse_dynamics import LARGEST_WRITTEN, residual, weighing
from .payload_settings import PayloadSettings

UNSURE = 0.01       # m/s^2 at a piston


def gates_step(machine: Machine, variance: np.ndarray) -> ca.Function:
    """Gates in one state ``(x, X, p) -> (x+, y)``; ``variance`` (nx,) of X.

    ``x`` = dependent coordinates, start of the position problem; ``p`` = gates, as in ``sample_step``, and uncertain
    parameters; ``y`` = gate that is closed (0: none), information, 1/kg2: not finite where the position problem has no
    solution. The weights are taken at the lower limit of the payload.
    """
    r, parameters, a = residual(machine), machine.parameters.symbol, len(machine.weighing)
    n, low = r.X.numel(), machine.payload_data.limits[0]
    near, P, places = r.near.numel(), ca.SX(ca.DM(np.diag(variance))), np.flatnonzero(variance).tolist()
    rows = ca.SX(n, a)
    rows[places, :] = ca.jacobian(r.g0 + r.G1 * low, r.X[places]).T
    arguments = [r.near, r.X, parameters]
    passed = passed_gates(machine, r.concerns, n)
    gates = ca.SX.sym('gates', GATE_NUMBERS)
    found = passed(r.pistons, r.speeds, r.rates, r.share, r.slopes, P, gates)
    information = weighing(machine, n, a)(0, r.G1, rows, P, found)[0]
    closed = closed_gate(a)(found, 0, information, gates)[0]
    accelerating = GATES.index('accelerating')
    judged = ca.Function('judged', [*arguments, gates], [ca.if_else(closed == accelerating, 0, closed), information],
                         {'cse': True})
    close = ca.Function('close', arguments, [machine.closed(r.near, r.X[:len(machine.coordinates)])[
        machine.system.dependent]])
    kind = ca.SX if judged.n_instructions() < LARGEST_WRITTEN else ca.MX
    x, X, p = kind.sym('x', near), kind.sym('X', n), kind.sym('p', GATE_NUMBERS + parameters.numel())
    solved = close(x, X, p[GATE_NUMBERS:])
    y = ca.vertcat(*judged(solved, X, p[GATE_NUMBERS:], p[:GATE_NUMBERS]))
    return ca.Function('mbse_gates', [x, X, p], [solved, y], ['x', 'u', 'p'], ['x_next', 'y'], {'cse': True})


class StateGates:
    """Gates of one machine; keeps the coordinates between segments as the start of the position problem."""

    def __init__(self, machine: Machine, backend: str = 'auto') -> None:
        self.machine, self._count = machine, len(state_names(machine)[0])
        variance = np.zeros(self._count)
        scale = [np.nan if lever is None else lever for lever in coordinate_scale(machine)]
        for k in machine.actuated:
            variance[2 * len(machine.coordinates) + k] = (UNSURE / scale[k]) ** 2
        made_of = 'gates', machine.made_of, variance.tobytes().hex()
        self.function = built(made_of, lambda: gates_step(machine, variance))
        self._scan = Scan(self.function, backend)
        self._p = np.concatenate([np.zeros(GATE_NUMBERS), machine.parameters.mean])
        self.reset()

    def configure(self, settings: PayloadSettings) -> None:
        """Set the gates."""
        self._p[:GATE_NUMBERS] = gate_numbers(self.machine, settings)

    def reset(self) -> None:
        """Forget the coordinates."""
        self._x: np.ndarray | None = None

    def closed(self, mean: np.ndarray) -> np.ndarray:
        """Numbers (n,) of the gates, as in ``GATES``, that are closed in states (n, nx), SI; 0: none.

        Raises PositionProblemError where the cylinders cannot reach.
        """
        if self._x is None:
            q = self.machine.position(mean[0, :len(self.machine.coordinates)])
            self._x = q[self.machine.system.dependent]
        self._x, y = self._scan(self._x, mean[:, :self._count], self._p)
        if not isfinite(y[-1, 1]):
            self._x = None
            raise PositionProblemError(float('nan'), NEWTON, mean[-1, :len(self.machine.coordinates)])
        return y[:, 0]
