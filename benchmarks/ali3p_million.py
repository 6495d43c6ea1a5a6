# SPDX-License-Identifier: Apache-2.0
"""One million steps of the free four-bar by ALI3P: constraint violation, energy and time a step.

``python benchmarks/ali3p_million.py [steps]``
"""

from __future__ import annotations

import sys
from time import perf_counter

import numpy as np

from mbse_ros.dynamics.model import load_model
from mbse_ros.dynamics.motion import simulate

DT = 1e-3


def main(steps: int) -> int:
    """Run; 1 where the violation is 1e-9 or more."""
    model = load_model('four_bar')
    simulate(model, DT, DT, 'ali3p')        # compiled before the clock runs
    begin = perf_counter()
    motion = simulate(model, steps * DT, DT, 'ali3p')
    seconds = perf_counter() - begin
    print(f'{steps} steps of {1e3 * DT:g} ms in {seconds:.1f} s, {1e6 * seconds / steps:.2f} us a step, '
          f'{motion.evaluations / steps:.2f} iterations a step')
    print(f'violation of positions {motion.violation.max():.2e}, of velocities {motion.violation_rate.max():.2e}')
    print(f'energy: {motion.energy[0]:.6f} J at the start, largest departure {np.abs(motion.balance).max():.3e} J, '
          f'at the end {motion.balance[-1]:.3e} J')
    return int(not motion.violation.max() < 1e-9)


if __name__ == '__main__':
    sys.exit(main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000))
