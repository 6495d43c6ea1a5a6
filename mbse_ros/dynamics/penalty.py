# SPDX-License-Identifier: Apache-2.0
"""The penalty formulation (paper 001 Eqs. 27, 28)."""

from __future__ import annotations

import numpy as np

from ..errors import SingularEquationsError
from .kkt import solve_symmetric
from .massless import UNDETERMINED, undetermined
from .terms_arrays import Accelerations, Terms


def penalty(terms: Terms, alpha: float = 1e7, zeta: float = 1.0, omega: float = 10.0) -> Accelerations:
    """Accelerations with ``lam = alpha (J qdd - c + 2 zeta omega Phidot + omega^2 Phi)`` in place of the constraints.

    ``alpha`` > 0 penalty (1e7 to 1e10), ``zeta`` damping ratio, ``omega`` natural frequency, rad/s. Redundant rows do
    no harm. Solved as ``[M J'; J -I/alpha]``, which is Eq. 28 before lam is eliminated: ``M + alpha J'J`` would lose as
    many digits as alpha has zeros, and those of lam once more. At Phi = Phidot = 0 the result is that of the
    Udwadia-Kalaba recursion with the clearance 1 / alpha. Raises SingularEquationsError for coordinates that neither
    mass nor constraints determine.
    """
    if not 0 < alpha < np.inf:
        raise ValueError(f'alpha: got {alpha}, expected a positive number')
    K = np.block([[terms.M, terms.J.T], [terms.J, -np.eye(terms.m) / alpha]])
    right = np.concatenate([terms.Q, terms.stabilized(zeta, omega).c])
    try:
        x = solve_symmetric(K, right)
    except np.linalg.LinAlgError:
        free = undetermined(terms)
        if free:
            raise SingularEquationsError(UNDETERMINED, free) from None
        x = solve_symmetric(K, right, worst=np.inf)         # redundant rows: alpha alone makes the condition
    return Accelerations(x[:terms.n], x[terms.n:])
